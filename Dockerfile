# World Size: one image for the web process and for the worker.
#
#   docker build -t worldsize .                           torch as the registry has it: CUDA on Linux
#   docker build -t worldsize --build-arg TORCH=cpu .     torch built for the CPU, a fraction of the size
#   docker build -t worldsize --build-arg TORCH=none .    no torch: the lessons are served, runs are off
#   docker run -p 127.0.0.1:8000:8000 -v worldsize:/data worldsize          web and worker together
#   docker run ... worldsize web | worker | measure data_parallel -P 4      any other command of worldsize
#
# Only building needs a network. The root file system may be read-only; /data and /tmp must be writable.
ARG TORCH=cuda

# Fonts and htmx, checked and cut down as everywhere.
FROM python:3.11-slim-bookworm AS assets
WORKDIR /opt/worldsize
COPY app/__init__.py app/assets.py app/
RUN python3 -m app.assets

# The environment without torch. The packages are installed in place, so all that is needed of them is where they will lie.
FROM python:3.11-slim-bookworm AS torch-none
# hadolint ignore=DL3008
RUN apt-get update \
 && apt-get install --yes --no-install-recommends tini \
 && rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/log/apt /var/log/dpkg.log \
 && useradd --system --uid 10001 --user-group --home-dir /data --no-create-home --shell /usr/sbin/nologin worldsize \
 && install --directory --owner worldsize --group worldsize --mode 0700 /data /secret
ENV PATH=/opt/venv/bin:/usr/local/bin:/usr/bin:/bin \
    PYTHONUNBUFFERED=1
WORKDIR /opt/worldsize
COPY pyproject.toml constraints.txt ./
COPY app/__init__.py app/
COPY kernels/__init__.py kernels/
RUN touch README.md LICENSE \
 && python3 -m venv /opt/venv \
 && pip install --no-cache-dir --disable-pip-version-check --constraint constraints.txt --editable .
ENV WORLDSIZE_RUNS=off

FROM torch-none AS torch-cpu
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu
RUN PIP_EXTRA_INDEX_URL="$TORCH_INDEX" \
    pip install --no-cache-dir --disable-pip-version-check --constraint constraints.txt --editable '.[lab]'
ENV WORLDSIZE_RUNS=on

FROM torch-none AS torch-cuda
RUN pip install --no-cache-dir --disable-pip-version-check --constraint constraints.txt --editable '.[lab]'
ENV WORLDSIZE_RUNS=on

# What changes most often comes last, and is small.
# hadolint ignore=DL3006
FROM torch-${TORCH}
WORKDIR /opt/worldsize
COPY --from=assets /opt/worldsize/static/vendor static/vendor
COPY static static
COPY templates templates
COPY lessons lessons
COPY kernels kernels
COPY app app
RUN python3 -m compileall -q app kernels
ENV WORLDSIZE_HOST=0.0.0.0 \
    WORLDSIZE_DATA_DIR=/data
USER 10001:10001
VOLUME /data
EXPOSE 8000
# Ready means that an answer can be stored, not only that the process is there. Not by urllib, which would ask a proxy.
HEALTHCHECK --interval=30s --timeout=5s --start-period=20s \
  CMD ["python3", "-c", "import os, sys; from http.client import HTTPConnection as To; web = To('127.0.0.1', os.environ.get('WORLDSIZE_PORT', 8000), timeout=4); web.request('GET', '/readyz'); sys.exit(web.getresponse().status != 200)"]
# An init as process 1: it hands signals on and reaps the children of killed runs.
ENTRYPOINT ["/usr/bin/tini", "--", "worldsize"]
CMD ["serve"]
