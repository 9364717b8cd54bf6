"""The image as instructors get it: built, started as compose.yaml says, used, killed and restarted. `make image-test`.

It needs root on a Debian or Ubuntu with apt, or buildah, podman, runc and debootstrap in place; no Docker engine. Between
runs it keeps a base image in a folder of its own (WORKPLACE in engine.py); KEEP=1 keeps the built images as well.
"""
