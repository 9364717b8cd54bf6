"""A run to take away: the command, a script and a notebook that repeat it outside this course and print the same numbers.

Values go in as JSON inside a string, never formatted into code.
"""

from __future__ import annotations

import hashlib
import json
import shlex
from pathlib import Path
from typing import Any

from app.runs import replay
from app.runs.results import DEFAULT_BACKEND, Result, number, predicted
from app.runs.store import Run
from app.runs.timing import PURPOSE, fit_json
from kernels.spec import RunSpec, experiment_arguments, to_json

NOTEBOOK_FORMAT = (4, 5)


def command(spec: RunSpec) -> str:
    """What repeats the launch in a shell, from the folder of a checkout; readable flags where there is one experiment."""
    words = ["torchrun", "--nproc-per-node", str(spec.P), "--rdzv-backend", "c10d", "--rdzv-endpoint", "127.0.0.1:0",
             "--local-addr", "127.0.0.1", "-m", "kernels.train"]
    if spec == RunSpec(spec.P, spec.experiments[:1], time_limit_seconds=spec.time_limit_seconds):
        only = spec.experiments[0]
        words += ["--strategy", only.strategy, *experiment_arguments(spec.P, only)]
    else:
        words += ["--spec", json.dumps(to_json(spec))]
    return shlex.join(words)


def script(run: Run) -> str:
    """A Python file: python FILE."""
    return "\n".join((_source(), "", _values(run), "", 'if __name__ == "__main__":', f"    {_call(run)}", ""))


def _call(run: Run) -> str:
    show = "show_times" if run.spec.purpose == PURPOSE else "show"
    return f"{show}(measure(SPEC), SEEN)"


def notebook(run: Run) -> str:
    """A Jupyter notebook, as JSON (nbformat 4.5)."""
    introduction = (
        "# A World Size run\n\n"
        f"{_counted(len(run.spec.experiments), 'experiment')} on {_counted(run.spec.P, 'process')}; each stands for a GPU. "
        "Run all cells to repeat the measurement on this machine.\n\n"
        "It needs torch and the kernels of World Size: open this notebook in the folder of a checkout, or run "
        "`pip install '.[lab]'` there once."
    )
    cells = [
        _cell("markdown", introduction, run),
        _cell("code", _source(), run),
        _cell("markdown", "What is run, and what the page showed. Change a value in `SPEC` to measure something else.", run),
        _cell("code", _values(run), run),
        _cell("code", _call(run), run),
    ]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    major, minor = NOTEBOOK_FORMAT
    return json.dumps({"cells": cells, "metadata": metadata, "nbformat": major, "nbformat_minor": minor}, indent=1)


def _counted(count: int, noun: str) -> str:
    plural = f"{noun}es" if noun.endswith("s") else f"{noun}s"
    return f"{count} {noun if count == 1 else plural}"


def _source() -> str:
    return Path(replay.__file__).read_text(encoding="utf-8").rstrip()


def _values(run: Run) -> str:
    return f"SPEC = json.loads({_literal(to_json(run.spec))})\nSEEN = json.loads({_literal(_seen(run))})"


def _seen(run: Run) -> list[dict[str, Any]]:
    """What the page showed: of each experiment the prediction, and who sent what to whom; of a timing run the two constants."""
    if run.spec.purpose == PURPOSE:
        fit = None if run.report is None else fit_json(run.report)
        return [] if fit is None else [{name: fit[name] for name in ("alpha_seconds", "bandwidth_bytes_per_second")}]
    backend = DEFAULT_BACKEND if run.environment is None else run.environment.backend
    matrices = [result["measured"]["matrix"] for result in run.results] or [None] * len(run.spec.experiments)
    return [{**_predicted(predicted(run.spec.P, one, backend)), "backend": backend, "matrix": matrix}
            for one, matrix in zip(run.spec.experiments, matrices, strict=True)]


def _predicted(result: Result) -> dict[str, Any]:
    size, exact = result.bytes_per_element, result.prediction.exact
    return {
        "formula_bytes": number(result.prediction.taught.total * size),
        "predicted_bytes": number(exact.total * size),
        "predicted_bytes_by_rank": None if exact.by_rank is None else [number(count * size) for count in exact.by_rank],
    }


def _literal(value: Any) -> str:
    """JSON inside a string literal: JSON's own rules for strings, in ASCII, are also Python's."""
    return json.dumps(json.dumps(value))


def _cell(kind: str, text: str, run: Run) -> dict[str, Any]:
    identity = hashlib.sha256(f"{run.id} {kind} {text}".encode()).hexdigest()[:12]
    cell: dict[str, Any] = {"cell_type": kind, "id": identity, "metadata": {}, "source": text.splitlines(keepends=True)}
    if kind == "code":
        cell |= {"execution_count": None, "outputs": []}
    return cell
