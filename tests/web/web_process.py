"""`worldsize web` as a process of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from app import settings

START = """
import sys
from pathlib import Path
from app import settings
from app.serve import run_web
from app.web import arrival
settings.COURSE_DIR = Path(sys.argv[2])
arrival.ARRIVAL_SECONDS = float(sys.argv[4])
run_web(settings.Settings.load(data_dir=Path(sys.argv[1]), port=int(sys.argv[3])))
"""


@contextmanager
def web_process(folder: Path, port: int, arrival_seconds: float = 30) -> Iterator[subprocess.Popen[str]]:
    """With its data below a folder, and a course of which every lesson is still to come but the flagship."""
    course = folder / "course"
    course.mkdir()
    (course / "course.yaml").write_text((settings.COURSE_DIR / "course.yaml").read_text())
    (course / "split-three-ways").symlink_to(settings.COURSE_DIR / "split-three-ways")
    command = [sys.executable, "-c", START, str(folder / "var"), str(course), str(port), str(arrival_seconds)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as started:
        assert started.stderr is not None
        for line in started.stderr:
            if "Uvicorn running" in line:
                break
        try:
            yield started
        finally:
            started.kill()
