"""The launch host spoken to directly: JSON lines in, JSON lines out."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kernels.spec import Experiment, RunSpec, to_json

pytestmark = pytest.mark.torchrun

FAULTY = "tests.runs.faulty_strategies"
LAST = ("report", "failed", "timed_out", "cancelled")


class Talk:
    """One host, and all it has said."""

    def __init__(self, scratch: Path) -> None:
        self.scratch = scratch
        self.process = subprocess.Popen(
            [sys.executable, "-m", "kernels.host", "--scratch", str(scratch), "--extra-strategies", FAULTY],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        self.ready = self.next()

    def ask(self, run: str, experiment: Experiment, world_size: int = 2) -> None:
        self.send({"run": run, "spec": to_json(RunSpec(world_size, (experiment,)))})

    def send(self, request: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()

    def next(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        event: dict[str, Any] = json.loads(self.process.stdout.readline())
        return event

    def until(self, *names: str) -> list[dict[str, Any]]:
        events = [self.next()]
        while events[-1]["event"] not in names:
            events.append(self.next())
        return events

    def close(self) -> int:
        self.process.communicate()
        return self.process.returncode


@pytest.fixture(scope="module")
def talk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Talk]:
    host = Talk(tmp_path_factory.mktemp("host"))
    yield host
    host.close()


def test_a_host_has_one_thread_when_it_is_ready(talk: Talk) -> None:
    assert talk.ready["event"] == "ready"
    assert talk.ready["pid"] == talk.process.pid
    assert len(list(Path(f"/proc/{talk.process.pid}/task").iterdir())) == 1


def test_events_name_every_process_with_its_start_and_end_with_the_report(talk: Talk) -> None:
    talk.ask("a", Experiment("data_parallel"), world_size=3)
    events = talk.until(*LAST)
    assert {event["run"] for event in events} == {"a"}
    born = [event for event in events if event["event"] in ("started", "rank")]
    assert [event.get("rank") for event in born[:1]] == [None]
    assert sorted(event["rank"] for event in born[1:]) == [0, 1, 2]
    assert len({event["pid"] for event in born}) == 4
    assert all(event["started"] >= talk.ready["started"] for event in born)
    assert events[-1]["event"] == "report"
    assert events[-1]["report"]["environment"]["launcher"] == "launch host"


def test_runs_wait_for_each_other(talk: Talk) -> None:
    talk.ask("first", Experiment("data_parallel"))
    talk.ask("second", Experiment("single"))
    order = [event["run"] for event in talk.until(*LAST) + talk.until(*LAST)]
    assert order == sorted(order)


def test_a_waiting_run_is_cancelled_without_being_started(talk: Talk) -> None:
    talk.ask("running", Experiment("faulty", options={"fault": "hangs"}))
    talk.ask("waiting", Experiment("single"))
    talk.until("rank")
    talk.send({"cancel": "waiting"})
    assert [event["event"] for event in talk.until("cancelled") if event["run"] == "waiting"] == ["cancelled"]
    talk.send({"cancel": "running"})
    assert talk.until("cancelled")[-1] == {"run": "running", "event": "cancelled"}


def test_what_a_rank_prints_does_not_mix_with_the_events(talk: Talk) -> None:
    talk.ask("loud", Experiment("faulty", options={"fault": "prints"}))
    assert talk.until(*LAST)[-1]["event"] == "report"


def test_a_rank_is_polite_and_keeps_to_its_folder(talk: Talk) -> None:
    talk.ask("where", Experiment("faulty", options={"fault": "describes itself"}))
    failed = talk.until(*LAST)[-1]
    described = json.loads(failed["error"].removeprefix("ValueError: "))
    folder = Path(described["folder"])
    assert folder.parent == talk.scratch
    assert described["temporary"] == str(folder)
    assert not folder.exists()
    assert described["nice"] == os.getpriority(os.PRIO_PROCESS, 0) + 10
    assert described["threads"] == "1"
    assert described["interface"].startswith("lo")
    assert described["name"] == "127.0.0.1"


def test_a_spec_that_cannot_be_read_is_refused_and_the_host_lives_on(talk: Talk) -> None:
    talk.send({"run": "odd", "spec": {"P": 2, "experiments": [], "colour": "red"}})
    refused = talk.until(*LAST)[-1]
    assert refused["event"] == "failed"
    assert "colour" in refused["error"]
    talk.ask("next", Experiment("single"), world_size=1)
    assert talk.until(*LAST)[-1]["event"] == "report"


def test_a_run_without_room_for_its_folder_is_told_so_and_the_next_one_runs(tmp_path: Path) -> None:
    host = Talk(tmp_path / "scratch")
    (host.scratch / f"run-1-{host.process.pid}").touch()  # where its folder should be
    host.ask("first", Experiment("single"), world_size=1)
    host.ask("second", Experiment("single"), world_size=1)
    refused, done = host.until(*LAST)[-1], host.until(*LAST)[-1]
    assert (refused["event"], done["event"]) == ("failed", "report")
    assert "nothing could be started" in refused["error"]
    assert "File exists" in refused["error"]
    assert host.close() == 0


@pytest.mark.parametrize("how", ["end of input", "SIGTERM"])
def test_a_host_that_ends_takes_its_run_and_its_folder_with_it(tmp_path: Path, how: str) -> None:
    host = Talk(tmp_path / "scratch")
    host.ask("a", Experiment("faulty", options={"fault": "hangs"}))
    pids = [event["pid"] for event in host.until("phase") if event["event"] in ("started", "rank")]
    if how == "SIGTERM":
        host.process.send_signal(signal.SIGTERM)
    assert host.close() == 0
    assert not [pid for pid in pids if Path(f"/proc/{pid}").exists()]
    assert list(tmp_path.iterdir()) == []


def test_a_host_given_a_folder_in_use_deletes_only_what_is_its_own(tmp_path: Path) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.txt").write_text("years of work")
    host = Talk(tmp_path)
    host.ask("a", Experiment("faulty", options={"fault": "hangs"}))
    host.until("phase")
    (tmp_path / "left.tmp").touch()
    assert host.close() == 0
    assert [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*")] == ["thesis", "thesis/chapter.txt"]
