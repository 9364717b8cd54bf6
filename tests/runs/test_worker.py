"""Workers that are told to stop, killed, stopped or cut off from the database, with a launcher that launches nothing."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from app.db import Database
from app.errors import AppError, RunNotFound
from app.runs.queue import Cancelled
from app.runs.store import State
from app.runs.worker import Lane, run_worker
from app.settings import Settings
from app.tables import runs
from kernels.spec import RunReport, RunSpec
from tests.databases import migrated, running_postgres, sqlite_url
from tests.no_room import NO_ROOM, no_room, small_disk
from tests.runs import made_up
from tests.runs.asking import PATIENCE, ask, cancel, get, spec, take, wait_for, wait_for_storage
from tests.runs.made_up import MadeUpLauncher
from tests.runs.worker_process import running

KEEP = timedelta(days=90)
LONG = 3600.0  # seconds of a run that a test ends


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The data folder of one worker."""
    (tmp_path / "worker").mkdir()
    return tmp_path / "worker"


@contextmanager
def lane(database: Database, folder: Path, launcher: MadeUpLauncher) -> Iterator[threading.Event]:
    """One lane of this process at work; the event tells it to stop."""
    stopping = threading.Event()
    thread = threading.Thread(target=Lane(database, folder, lambda: launcher, stopping, KEEP).serve)
    thread.start()
    try:
        yield stopping
    finally:
        stopping.set()
        thread.join()


def journal(folder: Path) -> list[list[str]]:
    """The words of each line: start, cancel or end; the run; the worker's pid; when."""
    file = folder / "journal"
    return [line.split() for line in file.read_text().splitlines()] if file.exists() else []


def wait_for_starts(folder: Path, count: int) -> None:
    wait_for_lines(folder, "start", count)


def wait_until_refused(folder: Path) -> None:
    """Until the worker has tried in vain to store what it has."""
    deadline = time.monotonic() + PATIENCE
    while "storage refuses the worker" not in (folder.parent / "worker.log").read_text():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def wait_for_lines(folder: Path, word: str, count: int) -> None:
    deadline = time.monotonic() + PATIENCE
    while sum(words[0] == word for words in journal(folder)) < count:
        assert time.monotonic() < deadline, journal(folder)
        time.sleep(0.02)


def test_a_run_is_carried_out_and_recorded_with_its_seconds(database: Database, folder: Path) -> None:
    asked = ask(database, "ada", spec())
    with lane(database, folder, MadeUpLauncher()):
        run = wait_for(database, asked.run_id, State.DONE)
    assert run.report == made_up.report(run.spec)
    assert run.environment == made_up.ENVIRONMENT
    assert [result["strategy"] for result in run.results] == ["data_parallel"]
    assert set(run.seconds) == {"queued", "launching", "warming_up", "measuring"}
    assert run.seconds["measuring"] == 0.03
    assert ask(database, "bob", spec()).shared == "earlier"


def test_a_result_without_a_verdict_is_stored_but_not_shared(database: Database, folder: Path) -> None:
    asked = ask(database, "ada", spec())

    def make(wanted: RunSpec) -> RunReport:
        return made_up.report(wanted, agreeing=1)

    with lane(database, folder, MadeUpLauncher(make=make)):
        assert wait_for(database, asked.run_id, State.DONE).results[0]["verdict"] == "inconclusive"
    assert ask(database, "ada", spec()).shared == "new"


def test_weights_that_overflowed_are_stored_as_null(database: Database, folder: Path) -> None:
    def make(wanted: RunSpec) -> RunReport:
        report = made_up.report(wanted)
        return replace(report, experiments=(replace(report.experiments[0], weights_max_difference=float("nan")),))

    asked = ask(database, "ada", spec())
    with lane(database, folder, MadeUpLauncher(make=make)):
        run = wait_for(database, asked.run_id, State.DONE)
    assert run.results[0]["measured"]["weights"]["max_difference"] is None


def test_progress_can_be_watched_and_a_running_run_cancelled(database: Database, folder: Path) -> None:
    asked = ask(database, "ada", spec())
    with lane(database, folder, MadeUpLauncher(over=lambda: False)):
        deadline = time.monotonic() + PATIENCE
        while (progress := get(database, asked.run_id).progress) is None or progress.phase != "measuring":
            assert time.monotonic() < deadline
            time.sleep(0.02)
        assert (progress.strategy, progress.repetition, progress.repetitions) == ("data_parallel", 1, 3)
        assert cancel(database, asked.run_id, "ada") is Cancelled.ENDING
        run = wait_for(database, asked.run_id, State.CANCELLED)
        following = ask(database, "ada", spec(2))
        cancel(database, following.run_id, "ada")
        wait_for(database, following.run_id, State.CANCELLED)
    assert run.failure is not None
    assert "cancelled while measuring" in run.failure.message


def test_a_run_that_this_version_cannot_carry_out_fails_in_words(database: Database, folder: Path) -> None:
    asked = ask(database, "ada", spec())
    lease = take(database)
    with database.writing() as session:
        stored = {"P": 2, "experiments": [{"strategy": "data_parallel", "L": 1000}]}
        session.execute(runs.update().where(runs.c.id == lease.run.id).values(spec=stored, state="queued"))
    with lane(database, folder, MadeUpLauncher()):
        run = wait_for(database, asked.run_id, State.FAILED)
    assert run.failure is not None
    assert "This version cannot run what was asked for" in run.failure.message


def test_a_lane_told_to_stop_gives_its_run_back_and_the_next_one_takes_it_up(database: Database, folder: Path) -> None:
    asked = ask(database, "ada", spec())
    launcher = MadeUpLauncher(over=lambda: False)
    with lane(database, folder, launcher):
        assert launcher.started.wait(PATIENCE)
    assert get(database, asked.run_id).state is State.QUEUED
    with lane(database, folder, MadeUpLauncher()):
        assert wait_for(database, asked.run_id, State.DONE).losses == 0


def test_runs_that_ended_long_ago_are_deleted_at_the_start_and_others_are_carried_out(database: Database, folder: Path) -> None:
    old, young = (ask(database, "ada", spec(tokens)).run_id for tokens in (1, 2))
    for run_id, age in ((old, KEEP + timedelta(minutes=1)), (young, KEEP - timedelta(minutes=1))):
        cancel(database, run_id, "ada")
        with database.writing() as session:
            session.execute(runs.update().where(runs.c.id == run_id).values(ended_at=datetime.now(UTC) - age))
    asked = ask(database, "ada", spec(3))
    with lane(database, folder, MadeUpLauncher()):
        wait_for(database, asked.run_id, State.DONE)
    with pytest.raises(RunNotFound):
        get(database, old)
    assert get(database, young).state is State.CANCELLED


def test_a_fault_of_our_own_ends_the_worker_instead_of_being_hidden(tmp_path: Path) -> None:
    class Broken(MadeUpLauncher):
        def run(self, *_: object) -> RunReport:  # type: ignore[override]
            raise ZeroDivisionError

    url = sqlite_url(tmp_path)
    with migrated(url) as database:
        ask(database, "ada", spec())
    with pytest.raises(ZeroDivisionError):
        run_worker(Settings(data_dir=tmp_path, database_url=url), Broken)


def test_a_worker_with_nothing_to_do_here_says_so() -> None:
    with pytest.raises(AppError, match="switched off"):
        run_worker(Settings(runs=False))


def test_a_worker_process_ends_in_good_order_on_sigterm_and_its_run_is_taken_up(
    database: Database, database_url: str, folder: Path
) -> None:
    asked = ask(database, "ada", spec())
    with running(folder, database_url, seconds=LONG, journal=str(folder / "journal")) as worker:
        wait_for_starts(folder, 1)
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(PATIENCE) == 0
    assert get(database, asked.run_id).state is State.QUEUED
    with running(folder, database_url):
        assert wait_for(database, asked.run_id, State.DONE).losses == 0


def test_a_killed_worker_started_again_takes_its_run_up_and_ends_it_once(
    database: Database, database_url: str, folder: Path
) -> None:
    """Without waiting for a silence: it knows the slot of its predecessor."""
    asked = ask(database, "ada", spec())
    with running(folder, database_url, seconds=LONG, journal=str(folder / "journal")) as worker:
        wait_for_starts(folder, 1)
        worker.kill()
        worker.wait()
    with running(folder, database_url, journal=str(folder / "journal")):
        assert wait_for(database, asked.run_id, State.DONE).losses == 1
    assert [words[0] for words in journal(folder)] == ["start", "start", "end"]


def test_a_worker_beside_a_killed_one_takes_its_run_up_without_waiting_for_a_silence(
    database: Database, database_url: str, folder: Path
) -> None:
    asked = ask(database, "ada", spec())
    with running(folder, database_url, seconds=LONG, journal=str(folder / "journal")) as killed:
        wait_for_starts(folder, 1)
        with running(folder, database_url, journal=str(folder / "journal")):
            second = ask(database, "ada", spec(2))
            wait_for(database, second.run_id, State.DONE)  # It is there, and leaves a living worker's run alone.
            assert get(database, asked.run_id).state is State.RUNNING
            killed.kill()
            killed.wait()
            assert wait_for(database, asked.run_id, State.DONE).losses == 1


def test_a_stopped_worker_loses_its_run_to_one_elsewhere_and_cannot_end_it_later(
    database: Database, database_url: str, tmp_path: Path
) -> None:
    here, elsewhere = tmp_path / "here", tmp_path / "elsewhere"
    here.mkdir()
    elsewhere.mkdir()
    asked = ask(database, "ada", spec())
    with running(here, database_url, journal=str(here / "journal"), stops=True) as stopped:
        os.waitid(os.P_PID, stopped.pid, os.WSTOPPED | os.WNOWAIT)
        with running(elsewhere, database_url, silent_seconds=2.0, journal=str(elsewhere / "journal")):
            run = wait_for(database, asked.run_id, State.DONE)
            stopped.send_signal(signal.SIGCONT)
            other = ask(database, "ada", spec(2))
            wait_for(database, other.run_id, State.DONE)
    assert get(database, asked.run_id) == run
    assert [words[0] for words in journal(elsewhere)][:2] == ["start", "end"]


def test_workers_share_the_runs_and_none_is_carried_out_twice(database: Database, database_url: str, folder: Path) -> None:
    asked = [ask(database, f"learner {number % 5}", spec(number)).run_id for number in range(1, 25)]
    told = {"journal": str(folder / "journal"), "go": str(folder / "go")}
    with running(folder, database_url, concurrency=2, **told), running(folder, database_url, **told):
        wait_for_starts(folder, 3)
        (folder / "go").touch()
        for run_id in asked:
            wait_for(database, run_id, State.DONE)
    starts = Counter(words[1] for words in journal(folder) if words[0] == "start")
    assert starts == {str(number): 1 for number in range(1, 25)}
    assert len({words[2] for words in journal(folder)}) == 2


def test_a_run_outlives_a_locked_database_and_the_worker_does_not_spin(tmp_path: Path, folder: Path) -> None:
    url = sqlite_url(tmp_path)
    told = {"journal": str(folder / "journal"), "go": str(folder / "go")}
    with migrated(url) as database, running(folder, url, **told) as worker:
        asked = ask(database, "ada", spec())
        wait_for_starts(folder, 1)
        assert database.file is not None
        lock = sqlite3.connect(database.file, isolation_level=None, timeout=PATIENCE)
        lock.execute("BEGIN EXCLUSIVE")
        (folder / "go").touch()
        assert share_of_cpu(worker) < 0.3
        lock.execute("ROLLBACK")
        lock.close()
        assert wait_for(database, asked.run_id, State.DONE).losses == 0
    assert [words[0] for words in journal(folder)] == ["start", "end"]


@pytest.mark.parametrize("how", NO_ROOM)
def test_a_full_disk_keeps_the_result_until_there_is_room(tmp_path: Path, folder: Path, how: str) -> None:
    with ExitStack() as undo:
        disk = undo.enter_context(small_disk(how, tmp_path))
        url = sqlite_url(disk)
        database = undo.enter_context(migrated(url))
        worker = undo.enter_context(running(folder, url, journal=str(folder / "journal"), go=str(folder / "go")))
        asked = ask(database, "ada", spec())
        wait_for_starts(folder, 1)
        with no_room(how, disk, worker):
            (folder / "go").touch()
            wait_for_lines(folder, "end", 1)
            assert share_of_cpu(worker) < 0.3
            assert get(database, asked.run_id).state is State.RUNNING
        assert wait_for_storage(database, asked.run_id, State.DONE).losses == 0
    assert [words[0] for words in journal(folder)] == ["start", "end"]


@pytest.mark.postgres
def test_a_run_outlives_a_restart_of_the_database_server(folder: Path) -> None:
    with running_postgres() as server:
        server.execute("CREATE DATABASE runs")
        url = server.url("runs")
        told = {"journal": str(folder / "journal"), "go": str(folder / "go")}
        with migrated(url) as database, running(folder, url, **told):
            asked = ask(database, "ada", spec())
            wait_for_starts(folder, 1)
            server.stop()
            (folder / "go").touch()
            wait_until_refused(folder)
            server.start()
            assert wait_for_storage(database, asked.run_id, State.DONE).losses == 0
    assert [words[0] for words in journal(folder)] == ["start", "end"]


def test_a_worker_nobody_hears_stops_its_run_and_starts_it_again_later(tmp_path: Path, folder: Path) -> None:
    """So that it never runs at the same time as where another worker has taken it up."""
    url = sqlite_url(tmp_path)
    with migrated(url) as database, running(folder, url, seconds=3.0, journal=str(folder / "journal"), mute_seconds=0.0):
        asked = ask(database, "ada", spec())
        wait_for_starts(folder, 2)  # With no patience at all, the first sign of life that takes a moment is one too many.
        assert get(database, asked.run_id).losses == 0
    assert [words[0] for words in journal(folder)][:3] == ["start", "cancel", "start"]


def share_of_cpu(process: subprocess.Popen[bytes], seconds: float = 3.0) -> float:
    """Of one processor, over a while: close to one if it spins and nobody else wants to work."""
    began, before = time.monotonic(), cpu_seconds(process)
    threading.Event().wait(seconds)
    return (cpu_seconds(process) - before) / (time.monotonic() - began)


def cpu_seconds(process: subprocess.Popen[bytes]) -> float:
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
