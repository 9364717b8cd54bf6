"""The commands as a user types them: what they print and how they exit."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from app import cli, terminal, texts
from app.__main__ import INTERRUPTED
from app.runs import verify
from app.runs.launch import Cancelled, Event, LocalLauncher, OnEvent, ignore, never
from app.theory import FORMULAS
from kernels.spec import STRATEGY_SPECS, RunReport, RunSpec
from tests.runs.made_up import MadeUpLauncher


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    status = cli.main(words)
    captured = capsys.readouterr()
    return status, captured.out, captured.err


@pytest.mark.parametrize(("words", "mean"), [
    (("data_parallel",), 48), (("tensor_parallel",), 24), (("data_parallel", "-P", "8"), 56), (("tensor_megatron",), 12),
])
def test_predict_gives_the_flagship_numbers(capsys: pytest.CaptureFixture[str], words: tuple[str, ...], mean: int) -> None:
    status, out, _ = run(capsys, "predict", *words, "--json")
    assert status == 0
    assert json.loads(out)["predicted"]["per_gpu_elements"]["mean"] == mean


def test_predict_of_a_pipeline_gives_eight_elements_in_all(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "predict", "pipeline_gpipe", "--json")
    assert json.loads(out)["predicted"]["total_elements"] == 8


def test_predict_speaks_of_clusters_larger_than_this_machine(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, "predict", "data_parallel", "-P", "1024", "-L", "96", "-H", "12288", "--json")
    assert status == 0
    assert json.loads(out)["predicted"]["per_gpu_elements"]["mean"] == 2 * 1023 * 96 * 12288**2 / 1024


@pytest.mark.parametrize("strategy", STRATEGY_SPECS)
def test_every_strategy_can_be_predicted_as_text(capsys: pytest.CaptureFixture[str], strategy: str) -> None:
    status, out, _ = run(capsys, "predict", strategy)
    assert status == 0
    assert STRATEGY_SPECS[strategy].title in out


@pytest.mark.parametrize(("words", "said"), [
    (("measure", "data_parallel", "-P", "9"), ("P = 9", "from 1 to 8")),
    (("measure", "tensor_parallel", "-P", "3"), ("P = 3", "does not divide H = 4", "1, 2 or 4")),
    (("measure", "data_parallel", "-L", "0"), ("L = 0", "from 1 to")),
    (("measure", "no_such_strategy"), ("strategy = no_such_strategy", "data_parallel")),
    (("measure", "tensor_dtensor", "-P", "3"), ("P = 3", "P must divide H")),
    (("measure", "tensor_megatron", "-L", "3"), ("L = 3", "even")),
    (("measure", "data_parallel", "-m", "2"), ("m = 2", "no micro-batches")),
    (("measure", "data_parallel", "--collective", "broadcast"), ("collective = broadcast", "does not take it")),
    (("measure", "ring_all_reduce", "--collective", "gossip"), ("collective = gossip", "all_gather")),
    (("measure", "pipeline_torch", "--schedule", "1f1b", "-L", "4"), ("m = 1", "4 or more")),
    (("measure", "data_parallel", "--run-seconds", "0"), ("--run-seconds=0", "5 to 3600")),
    (("predict", "data_parallel", "--backend", "mpi"), ("backend = mpi", "gloo, nccl")),
    (("formula", "no.such"), ("no.such", "worldsize formula")),
    (("formula", "data_parallel.volume", "P=8"), ("L is missing",)),
    (("formula", "data_parallel.volume", "P=0", "L=2", "H=4"), ("P = 0",)),
    (("formula", "data_parallel.volume", "P"), ("key=value",)),
    (("formula", "data_parallel.volume", "P=4", "P=8"), ("P=8", "given twice")),
    (("formula", "data_parallel.volume", "P=1e400", "L=2", "H=4"), ("P = 1e400", "larger than")),
    (("formula", "data_parallel.volume", f"P={'9' * 5000}", "L=2", "H=4"), (f"P = {'9' * 36}...", "larger than")),
    (("check", "--content-dirs", "/no/such/folder", "--json"), ("--content-dirs=/no/such/folder", "folders that exist")),
    (("serve", "--port", "0"), ("--port=0", "from 1 to 65535")),
    (("worker", "--concurrency", "none"), ("--concurrency=none", "from 1 to 64")),
    (("verify", "--quick", "--max-world-size", "0"), ("--max-world-size=0", "from 1 to 8")),
    (("verify", "--quick", "--max-world-size", "9"), ("--max-world-size=9", "from 1 to 8")),
])
def test_bad_input_names_field_value_and_remedy_and_exits_2(
        capsys: pytest.CaptureFixture[str], words: tuple[str, ...], said: tuple[str, ...]) -> None:
    status, out, err = run(capsys, *words)
    assert status == 2
    assert out == ""
    for part in said:
        assert part in err
    assert "Traceback" not in err


@pytest.mark.parametrize(("words", "said"), [
    (("predict",), "worldsize predict: the following arguments are required: STRATEGY"),
    (("predict", "data_parallel", "-P", "four"), "worldsize predict: argument -P: four is no whole number"),
    (("measure", "ddp", "--bucket_bytes", "x", "--json"), "worldsize measure: argument --bucket_bytes: x is no whole number"),
    (("predict", "data_parallel", "-P", "9" * 5000), f"argument -P: {'9' * 36}... is no whole number"),
    (("verify", "--seed", "1.5"), "worldsize verify: argument --seed: 1.5 is no whole number"),
    (("predict", "data_parallel", "more"), "worldsize: unrecognized arguments: more"),
    (("fly",), "worldsize: argument COMMAND: invalid choice: 'fly' (choose from"),
    ((), "worldsize: the following arguments are required: COMMAND"),
])
def test_words_that_make_no_command_are_told_in_two_lines_and_exit_2(
        capsys: pytest.CaptureFixture[str], words: tuple[str, ...], said: str) -> None:
    with pytest.raises(SystemExit) as exited:
        cli.main(words)
    out, err = capsys.readouterr()
    assert (exited.value.code, out) == (2, "")
    assert said in err
    assert err.count("\n") == 2
    assert "--help" in err


def test_formula_evaluates_exactly(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "formula", "data_parallel.volume", "P=8", "L=2", "H=4")[1].startswith("56 elements")
    _, out, _ = run(capsys, "formula", "data_parallel.volume", "P=3", "L=2", "H=4", "--json")
    assert json.loads(out)["value"] == pytest.approx(128 / 3)


def test_formula_lists_every_formula(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "formula")
    assert all(name in out for name in FORMULAS)


@pytest.mark.parametrize("name", FORMULAS)
def test_every_formula_has_a_card(capsys: pytest.CaptureFixture[str], name: str) -> None:
    status, out, _ = run(capsys, "formula", name, "--json")
    assert status == 0
    assert json.loads(out)["title"] == FORMULAS[name].title


def test_a_card_as_text_gives_symbols_assumptions_and_source(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, "formula", "data_parallel.volume")
    assert status == 0
    for part in ("P            GPUs", "Gives elements, sent by each GPU.", "Assumes: ", "Source: ", "P=... L=... H=..."):
        assert part in out


def test_every_sign_on_a_card_has_a_nearest_one_in_ascii() -> None:
    signs = set("".join(texts.formula_card(formula) for formula in FORMULAS.values()))
    assert {sign for sign in signs if not sign.isascii()} <= {chr(code) for code in terminal.NEAREST}


def test_a_fraction_may_be_given_and_is_a_number_in_json(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, "formula", "units.bytes", "elements=1/2", "dtype=fp32", "--json")
    assert status == 0
    assert (json.loads(out)["given"], json.loads(out)["value"]) == ({"elements": 0.5, "dtype": "fp32"}, 2)


def test_a_reader_that_has_seen_enough_sees_no_traceback() -> None:
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-m", "app", "formula", "--json"], **streams) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        err = process.stderr.read()
    assert (process.returncode, err) == (cli.MISSED, b"")


def shell(*words: str, stdout: int = subprocess.PIPE, **environment: str) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "app", *words]
    return subprocess.run(command, stdout=stdout, stderr=subprocess.PIPE, env={**os.environ, **environment}, check=False)


@pytest.mark.parametrize("environment", [
    {"PYTHONIOENCODING": "ascii"}, {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
])
def test_a_terminal_without_unicode_gets_what_it_can_show(environment: dict[str, str]) -> None:
    assert shell("formula", **environment).returncode == 0
    assert json.loads(shell("formula", "--json", **environment).stdout) == json.loads(shell("formula", "--json").stdout)


def test_a_word_that_the_terminal_cannot_show_is_told_in_the_nearest_signs() -> None:
    refused = shell("predict", "2\u00d72\u2019s \u4e16", PYTHONIOENCODING="ascii")
    assert refused.returncode == 2
    assert refused.stderr.startswith(b"worldsize: strategy = 2x2's \\u4e16: unknown")


def test_a_full_disk_is_said_in_words() -> None:
    with open("/dev/full", "w") as full:
        ended = shell("predict", "data_parallel", stdout=full.fileno())
    assert ended.returncode == cli.MISSED
    assert ended.stderr == b"worldsize: The output could not be written: No space left on device.\n"


@pytest.mark.parametrize("words", [
    ("predict", "tensor_parallel", "-P", "8"), ("formula", "data_parallel.volume"), ("formula",), ("--help",),
])
def test_a_narrow_terminal_gets_no_line_that_is_wider_but_for_addresses_and_commands(words: tuple[str, ...]) -> None:
    wide = [line for line in shell(*words, COLUMNS="60").stdout.decode().splitlines() if len(line) > 60]
    assert [line for line in wide if not line.lstrip().startswith(("https://", "Evaluate it with: "))] == []


def test_a_port_that_is_taken_is_said_in_words(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        ended = shell("web", "--port", port, "--data-dir", str(tmp_path))
    assert ended.returncode == cli.MISSED
    assert f"worldsize: Nothing can listen on 127.0.0.1, port {port}: Address already in use. " in ended.stderr.decode()


INTERRUPTED_IMPORT = """
import os, signal, sys
class AtTheory:
    def find_spec(self, name, path, target=None):
        if name == "app.theory":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, AtTheory())
sys.argv = ["worldsize", "predict", "data_parallel"]
from app.__main__ import main
sys.exit(main())
"""


def test_ctrl_c_while_the_command_is_still_loading_is_answered_in_words() -> None:
    ended = subprocess.run([sys.executable, "-c", INTERRUPTED_IMPORT], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (INTERRUPTED, "")
    assert ended.stderr == "worldsize: stopped; nothing is left running.\n"


@pytest.mark.parametrize("words", [
    ("--help",), ("predict", "data_parallel"), ("formula", "data_parallel.volume", "P=8", "L=2", "H=4"),
])
def test_commands_that_only_reckon_load_no_server_no_database_and_no_markdown(words: tuple[str, ...]) -> None:
    code = (
        "import atexit, sys; from app.__main__ import main; sys.argv[0] = 'worldsize'\n"
        "heavy = {'pydantic', 'sqlalchemy', 'structlog', 'starlette', 'markdown_it'}\n"
        "atexit.register(lambda: print(heavy & set(sys.modules)))\n"
        "sys.exit(main())"
    )
    ended = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=True)
    assert ended.stdout.endswith("\nset()\n")


@pytest.mark.torchrun
def test_measure_finds_192_bytes_on_each_of_four_ranks(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, "measure", "data_parallel", "-P", "4", "-L", "2", "-H", "4", "--json")
    result = json.loads(out)
    assert status == 0
    assert result["verdict"] == "equal"
    assert result["predicted"]["per_gpu_elements"]["mean"] == 48
    assert result["measured"]["payload_bytes_by_rank"] == [192, 192, 192, 192]


@pytest.mark.torchrun
def test_measure_as_text_shows_prediction_measurement_matrix_and_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, "measure", "tensor_parallel")
    assert status == 0
    for part in ("the lesson’s formula", "measured payload", "on the wire", "from rank 3", "3 of 3 readings agree", "equal: "):
        assert part in out


@pytest.mark.torchrun
@pytest.mark.parametrize("rogue", ["one_more_through_comm", "one_more_past_comm", "other_weights"])
def test_measure_exits_1_when_a_strategy_does_not_keep_its_word(
        capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, rogue: str) -> None:
    monkeypatch.setattr(cli, "LocalLauncher", partial(LocalLauncher, extra_strategies=f"tests.rogues.{rogue}"))
    assert run(capsys, "measure", "data_parallel")[0] == 1


class InterruptedLauncher(MadeUpLauncher):
    """Ctrl-C comes while the second repetition of the second run is measured."""

    def run(self, spec: RunSpec, on_event: OnEvent = ignore, cancelled: Cancelled = never) -> RunReport:
        on_event(Event("phase", {"phase": "measuring", "experiment": 0, "strategy": spec.experiments[0].strategy,
                                 "dtype": "fp64", "repetition": 2, "repetitions": 3}))
        raise KeyboardInterrupt


@pytest.mark.parametrize(("words", "doing"), [
    (("measure", "data_parallel"), "measuring data_parallel in fp64, repetition 2 of 3"),
    (("verify", "--quick"), f"measuring setting 1 of {verify.QUICK_CELLS} at P = 1"),
])
def test_ctrl_c_says_what_was_going_on_and_exits_as_without_a_verdict(
        capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], doing: str) -> None:
    monkeypatch.setattr(cli, "LocalLauncher", InterruptedLauncher)
    status, out, err = run(capsys, *words)
    assert (status, out) == (cli.MISSED, "")
    assert err == f"worldsize: Stopped by Ctrl-C while {doing}: no verdict. Nothing is left running.\n"


@pytest.mark.torchrun
def test_ctrl_c_during_a_measurement_says_so_and_leaves_nothing() -> None:
    """In a session of its own, so that the signal goes to the command alone, as Ctrl-C goes to a shell's foreground job."""
    command = [sys.executable, "-m", "app", "measure", "data_parallel", "-P", "8"]
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, **streams, text=True, start_new_session=True) as process:
        host = os.pidfd_open(_first_child(process.pid))
        os.killpg(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=240)
    assert process.returncode == cli.MISSED
    assert err.startswith("worldsize: Stopped by Ctrl-C while starting ")
    assert err.endswith(": no verdict. Nothing is left running.\n")
    ended, _, _ = select.select([host], [], [], 240)  # readable once the process has ended
    assert ended
    os.close(host)


def _first_child(pid: int) -> int:
    """Wait until the command has started its launch host; it polls, for Linux tells nobody of a stranger's children."""
    while True:
        with open(f"/proc/{pid}/task/{pid}/children") as children:
            found = children.read().split()
        if found:
            return int(found[0])
