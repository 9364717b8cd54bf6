"""The ledger: every formula, the figures it reproduces, and the last verification of this machine."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from app import cli
from app.errors import StorageRefused
from app.runs.store import State
from app.runs.verification import FILE, Verification, VerificationUnreadable, load, store, summarise
from app.runs.verify import Row
from app.theory import FORMULAS
from app.web.ledger import MEASURES, shown
from kernels.spec import STRATEGY_SPECS
from tests.runs.made_up import ENVIRONMENT
from tests.web.runs_made_up import end, finish, press, run_id_of, take
from tests.web.sites import make_app

ROWS = (
    Row("data_parallel", 118, 118, 0, 0, 0, ("uneven_chunks",)),
    Row("tensor_parallel", 96, 95, 1, 0, 0, ("idle_gpus", "uneven_chunks")),
)


def verified(*rows: Row) -> Verification:
    made = summarise(rows, [], published=4, published_held=4, quick=True, largest=4, seconds=61.25)
    return Verification(**{**made.__dict__, "environment": ENVIRONMENT})


@pytest.fixture
def app(tmp_path: Path) -> Iterator[FastAPI]:
    app = make_app(tmp_path)
    yield app
    app.state.site.database.close()


@pytest.fixture
def page(app: FastAPI) -> TestClient:
    return TestClient(app)


def test_every_formula_stands_there_with_mathml_and_a_source(page: TestClient) -> None:
    html = page.get("/ledger").text
    for formula in FORMULAS.values():
        assert f"<code>{formula.name}</code>" in html
        for source in formula.sources:
            assert source.url in html
    assert html.count('<details class="formula') == len(FORMULAS)
    assert html.count("<math") > 2 * len(FORMULAS)


def test_a_concept_shows_its_own_formulas_alone(page: TestClient) -> None:
    html = page.get("/ledger?concept=pipeline_parallel").text
    assert "<code>pipeline_parallel.stages</code>" in html
    assert "<code>data_parallel.volume</code>" not in html
    assert '<a href="/ledger?concept=pipeline_parallel#formulas" aria-current="page">' in html


def test_an_unknown_concept_is_not_found(page: TestClient) -> None:
    assert page.get("/ledger?concept=astrology").status_code == 404


def test_a_figure_rounded_otherwise_in_print_comes_with_the_reason(page: TestClient) -> None:
    html = page.get("/ledger?concept=batch").text
    assert "The paper prints 1538 sequences; its configuration multiplies to 4 × 32 × 12 = 1536." in html
    assert "<td data-l=\"Printed\">1538</td>" in html


def test_before_a_verification_the_page_says_how_to_make_one(page: TestClient) -> None:
    html = page.get("/ledger").text
    assert "Nothing has been verified on this machine yet." in html
    assert "worldsize verify --quick" in html


def test_the_last_verification_stands_there_with_verdict_gap_and_cause(app: FastAPI, page: TestClient) -> None:
    store(app.state.site.settings.data_dir, verified(*ROWS))
    html = page.get("/ledger").text
    assert "214 settings, a part of the grid, on one to four GPUs." in html
    assert "<mark>Not everything held</mark>" in html
    assert "<mark>1 different</mark>" in html
    assert "Idle GPUs; Uneven chunks" in html
    assert "<dt>Measured</dt><dd>Data parallel: 118 of 118 equal</dd>" in html
    assert "PyTorch 2.13.0, gloo over loopback TCP" in html


def test_what_learners_measured_counts_before_any_verification(app: FastAPI, page: TestClient) -> None:
    for values in ({"P": 4}, {"P": 8}):
        finish(app, take(app, run_id_of(press(page, **values))))
    html = page.get("/ledger").text
    assert "Nothing has been verified" not in html
    assert "The grid of all strategies has not been verified on this machine yet." in html
    assert "2 runs asked for here ended with a measurement." in html
    row = re.compile(r'</svg>([A-Z][a-z]+) parallel.*?</th>\s*<td data-l="GPUs">8.*?data-l="Verdict">(.*?)</td>', re.DOTALL)
    rows = dict(row.findall(html))
    assert rows == {"Data": "equal", "Tensor": "<mark>as gloo predicts; 512 B under the formula</mark>", "Pipeline": "equal"}


def test_of_several_variants_in_a_run_one_that_departs_stands_for_the_strategy(app: FastAPI, page: TestClient) -> None:
    both = [{"strategy": "tensor_megatron", "T": 4, "options": {"activations": "sequence_parallel", "collectives": collectives}}
            for collectives in ("ring", "library")]
    finish(app, take(app, page.post("/api/runs", json={"P": 4, "experiments": both}).json()["id"]))
    assert "<mark>as gloo predicts; 384 B over the formula</mark>" in page.get("/ledger").text


def test_a_run_that_brought_nothing_stands_for_no_strategy(app: FastAPI, page: TestClient) -> None:
    assert "In learners" not in page.get("/ledger").text
    end(app, take(app, run_id_of(press(page, P=4))), State.FAILED)
    assert "In learners" not in page.get("/ledger").text


def test_when_all_held_the_page_says_so(app: FastAPI, page: TestClient) -> None:
    store(app.state.site.settings.data_dir, verified(ROWS[0]))
    assert "Every byte was where it was predicted." in page.get("/ledger").text


def test_a_summary_is_read_back_as_it_was_stored(tmp_path: Path) -> None:
    wrote = verified(*ROWS)
    store(tmp_path, wrote)
    assert load(tmp_path) == wrote
    assert [path.name for path in tmp_path.iterdir()] == [FILE]


def test_a_later_summary_takes_the_place_of_the_earlier(tmp_path: Path) -> None:
    store(tmp_path, verified(*ROWS))
    later = verified(ROWS[0])
    store(tmp_path, later)
    assert load(tmp_path) == later


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"rows": [], "environment": null}'])
def test_a_summary_that_cannot_be_read_is_said_on_the_page(app: FastAPI, page: TestClient, text: str) -> None:
    (app.state.site.settings.data_dir / FILE).write_text(text)
    with pytest.raises(VerificationUnreadable):
        load(app.state.site.settings.data_dir)
    response = page.get("/ledger")
    assert response.status_code == 200
    assert "cannot be read; run worldsize verify again" in response.text


def test_a_folder_that_cannot_be_written_keeps_the_earlier_summary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    earlier = verified(*ROWS)
    store(tmp_path, earlier)

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageRefused, match="No space left"):
        store(tmp_path, verified(ROWS[0]))
    assert load(tmp_path) == earlier
    assert [path.name for path in tmp_path.iterdir()] == [FILE]


def test_every_strategy_in_the_table_of_checks_and_every_formula_exists() -> None:
    assert set(MEASURES) <= set(STRATEGY_SPECS)
    assert {name for names in MEASURES.values() for name in names} <= set(FORMULAS)


@pytest.mark.parametrize(("number", "text"), [(1920, "1,920"), (0.25, "0.25"), (1 / 3, "0.333333"), (2.5e-7, "2.5e-07")])
def test_numbers_are_shown_whole_or_to_six_digits(number: float, text: str) -> None:
    assert shown(number) == text


@pytest.mark.torchrun
def test_worldsize_verify_stores_what_the_ledger_shows(
    app: FastAPI, page: TestClient, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WORLDSIZE_DATA_DIR", str(app.state.site.settings.data_dir))
    assert cli.main(["verify", "--quick", "--max-world-size", "2"]) == 0
    assert "Everything holds." in capsys.readouterr().out
    stored = load(app.state.site.settings.data_dir)
    assert stored is not None
    assert (stored.quick, stored.largest, stored.holds) == (True, 2, True)
    assert {row.strategy for row in stored.rows} >= {"data_parallel", "tensor_parallel", "pipeline_gpipe"}
    html = page.get("/ledger").text
    assert "Every byte was where it was predicted." in html
    assert "Data parallel: " in html
