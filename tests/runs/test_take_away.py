"""What is taken away runs outside the course and prints the numbers of the page."""

from __future__ import annotations

import ast
import code
import contextlib
import io
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from app.db import Database
from app.errors import RunFailed
from app.runs import take_away
from app.runs.launch import LocalLauncher
from app.runs.store import Run, State
from app.runs.stored import Failure
from kernels.spec import Experiment, RunSpec, to_json
from tests.databases import migrated, sqlite_url
from tests.runs.asking import ask, end, get, take
from tests.web.runs_made_up import as_predicted

SPEC = RunSpec(2, (Experiment("data_parallel"), Experiment("ring_all_reduce", options={"collective": "all_gather"})))
SHOWN = """data_parallel: P = 2, L = 2, H = 4, T = 1, m = 1
  payload bytes by rank: 128 128; 256 in all
"""


@pytest.fixture(scope="module")
def run(launcher: LocalLauncher, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """A run that was carried out for real and stored."""
    with migrated(sqlite_url(tmp_path_factory.mktemp("stored"))) as database:
        yield stored(database, launcher)


def stored(database: Database, launcher: LocalLauncher) -> Run:
    asked = ask(database, "ada", SPEC)
    lease = take(database)
    report = launcher.run(SPEC)
    assert end(database, lease, State.DONE, report=to_json(report))
    return get(database, asked.run_id)


def told(printed: str, run: Run) -> None:
    """The numbers of the page, and the word that they are the same."""
    assert printed.startswith(SHOWN)
    for result in run.results:
        payload = result["measured"]["payload_bytes_by_rank"]
        assert f"payload bytes by rank: {' '.join(map(str, payload))}; {sum(payload)} in all\n" in printed
    assert printed.count("the same payload, from each rank to each, as on the page") == len(run.results)


def cells(run: Run, kind: str) -> list[str]:
    return ["".join(cell["source"]) for cell in json.loads(take_away.notebook(run))["cells"] if cell["cell_type"] == kind]


@pytest.mark.torchrun
def test_the_script_prints_the_numbers_of_the_page_and_leaves_no_logs(run: Run, tmp_path: Path) -> None:
    file, temporary = tmp_path / "run.py", tmp_path / "temporary"
    file.write_text(take_away.script(run))
    temporary.mkdir()
    job = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, check=True, timeout=600,
                         env={**os.environ, "TMPDIR": str(temporary)})
    told(job.stdout, run)
    assert list(temporary.glob("torchelastic_*")) == []  # torch keeps an empty cache folder for all its programs


@pytest.mark.torchrun
def test_the_script_of_a_run_that_failed_repeats_it_elsewhere(tmp_path: Path) -> None:
    with LocalLauncher(extra_strategies="tests.rogues.last_rank_raises") as launcher, pytest.raises(RunFailed) as ended:
        launcher.run(SPEC)
    error = ended.value
    with migrated(sqlite_url(tmp_path)) as database:
        asked = ask(database, "ada", SPEC)
        why = Failure(str(error), rank=error.rank, exit=error.exit, phase=error.phase, log_tail=error.log_tail)
        assert end(database, take(database), State.FAILED, failure=why)
        run = get(database, asked.run_id)
    assert (run.results, error.rank) == ((), 1)
    file = tmp_path / "run.py"
    file.write_text(take_away.script(run))
    job = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, check=True, timeout=600)
    assert job.stdout.startswith(SHOWN)
    assert "on the page" not in job.stdout, "there is nothing to compare with"


@pytest.mark.torchrun
def test_the_notebook_run_cell_by_cell_prints_the_numbers_of_the_page(run: Run) -> None:
    printed, kernel = io.StringIO(), code.InteractiveInterpreter()
    with contextlib.redirect_stdout(printed):
        for cell in cells(run, "code"):
            kernel.runcode(compile(cell, "cell", "exec", dont_inherit=True))
    told(printed.getvalue(), run)


@pytest.mark.torchrun
def test_the_command_measures_the_same(run: Run) -> None:
    command = take_away.command(run.spec).replace("torchrun", f"{sys.executable} -m torch.distributed.run", 1)
    job = subprocess.run(command, shell=True, capture_output=True, text=True, check=True, timeout=600)
    report = json.loads(job.stdout.splitlines()[-1])
    assert [one["payload_matrix"] for one in report["experiments"]] == [one["measured"]["matrix"] for one in run.results]


def test_a_single_experiment_is_a_command_with_flags_that_can_be_read() -> None:
    command = take_away.command(RunSpec(4, (Experiment("pipeline_torch", m=4, options={"schedule": "1f1b"}),)))
    assert command.endswith("-m kernels.train --strategy pipeline_torch -P 4 -L 2 -H 4 -T 1 -m 4 --schedule 1f1b")
    assert command.startswith("torchrun --nproc-per-node 4 ")


def test_a_command_with_flags_says_nothing_else_than_the_spec() -> None:
    """Whatever flags cannot say goes in as JSON."""
    plain = RunSpec(2, (Experiment("single"),))
    for other in (replace(plain, seed=1), replace(plain, repetitions=5), replace(plain, purpose="timing")):
        assert "--spec" in take_away.command(other)
    assert "--spec" not in take_away.command(replace(plain, time_limit_seconds=5.0))


def test_a_notebook_has_the_parts_its_format_asks_for(run: Run) -> None:
    notebook = json.loads(take_away.notebook(run))
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    assert set(notebook) == {"cells", "metadata", "nbformat", "nbformat_minor"}
    identities = [cell["id"] for cell in notebook["cells"]]
    assert len(set(identities)) == len(identities)
    for cell in notebook["cells"]:
        code_only = {"execution_count", "outputs"} if cell["cell_type"] == "code" else set()
        assert set(cell) == {"cell_type", "id", "metadata", "source"} | code_only
        assert 1 <= len(cell["id"]) <= 64


def values_of(script: str) -> list[str]:
    """The JSON of SPEC and of SEEN."""
    calls = [node for node in ast.walk(ast.parse(script)) if isinstance(node, ast.Call)]
    loads = [call.args[0] for call in calls if ast.unparse(call.func) == "json.loads"]
    return [ast.literal_eval(text) for text in loads if isinstance(text, ast.Constant)]


def test_values_stay_values_whatever_they_contain(run: Run) -> None:
    """Nothing that could be in a spec ends the string it stands in."""
    evil = "');import os#\"\"\"\\\u2028'''\n\N{SNOWMAN}"
    spec = replace(run.spec, purpose=evil)
    texts = values_of(take_away.script(replace(run, spec=spec, results=())))
    assert json.loads(json.dumps(to_json(spec))) in [json.loads(text) for text in texts]


def test_a_run_without_a_result_can_be_taken_away_too(run: Run) -> None:
    script = take_away.script(replace(run, results=(), report=None, state=State.FAILED))
    seen = json.loads(values_of(script)[1])
    assert [(one["predicted_bytes"], one["matrix"]) for one in seen] == [(256, None), (128, None)]


PAIRS = tuple(Experiment("tensor_megatron", T=4, options={"activations": "sequence_parallel", "collectives": collectives})
              for collectives in ("ring", "library"))


def printed(spec: RunSpec, run: Run, change: Callable[[int], int] = lambda count: count) -> str:
    """What a script prints when its launch brings what was predicted, but for a change to every count."""
    report = to_json(as_predicted(spec))
    for one in report["experiments"]:
        one["payload_matrix"] = [[change(count) for count in row] for row in one["payload_matrix"]]
    shell, told = code.InteractiveInterpreter({"__name__": "taken away", "REPORT": report}), io.StringIO()
    with contextlib.redirect_stdout(told):
        for text in (take_away.script(replace(run, spec=spec, results=())), "show(REPORT, SEEN)"):
            shell.runcode(compile(text, "script", "exec", dont_inherit=True))
    return told.getvalue()


def test_a_script_tells_its_experiments_apart_and_says_what_was_predicted(run: Run) -> None:
    told = printed(RunSpec(4, PAIRS), run)
    numbers = "tensor_megatron: P = 4, L = 2, H = 4, T = 4, m = 1, activations = sequence_parallel"
    assert f"{numbers}, collectives = ring\n" in told
    library = told[told.index(f"{numbers}, collectives = library\n"):]
    assert library.splitlines()[1:5] == [
        "  payload bytes by rank: 288 288 288 288; 1152 in all",
        "  predicted for gloo:    288 288 288 288; 1152 in all",
        "  the formula:           768 in all",
        "  verdict:               as predicted, to the byte, 384 bytes over the formula",
    ]


def test_a_script_whose_bytes_are_others_says_so(run: Run) -> None:
    told = printed(RunSpec(4, PAIRS), run, change=lambda count: count + 4 if count else 0)
    assert told.count("verdict:               differs from what was predicted") == len(PAIRS)
