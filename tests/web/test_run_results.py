"""Strategies side by side: the table that compares them, which one is seen first, and the sentence over all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from app.course import figure_fields
from app.course.load import load_course
from app.runs.results import compare, result_json
from app.theory.volume import UNEVEN, Cause
from app.web.run_contexts import Results
from app.web.run_results import CAUSE_CLAUSE, causes_of, results_of
from app.web.run_views import recorded_view
from kernels.spec import COLLECTIVES, IMPLEMENTATIONS, Experiment, RunSpec
from tests.web.runs_made_up import as_predicted

ROOT = Path(__file__).parents[2]
CUTS = (Experiment("data_parallel"), Experiment("tensor_parallel"), Experiment("pipeline_gpipe"))
PAIRS = tuple(Experiment("tensor_megatron", T=4, options=options) for options in (
    {"activations": "replicated"},
    {"activations": "sequence_parallel", "collectives": "ring"},
    {"activations": "sequence_parallel", "collectives": "library"},
))
TITLES = ("All tokens", "Over our ring", "Over gloo")


def reports(P: int, *experiments: Experiment) -> list[dict[str, Any]]:
    """With exactly what was predicted on the sockets."""
    return [result_json(one) for one in compare(as_predicted(RunSpec(P, experiments)))]


def collectives(P: int) -> Results:
    experiments = [Experiment("ring_all_reduce", options={"collective": collective, "implementation": way, "elements": 32})
                   for collective in COLLECTIVES for way in IMPLEMENTATIONS]
    titles = [f"{one.options['collective']} {one.options['implementation']}" for one in experiments]
    return results_of("all", "All", reports(P, *experiments), titles)


def halves() -> Results:
    return results_of("halves", "Halves", reports(4, *PAIRS), TITLES)


def test_what_is_not_the_formula_is_never_called_equal_alone() -> None:
    rows = {one.title: one for one in halves().strategies}
    apart = rows["Over gloo"]
    assert (apart.formula_total, apart.predicted_total, apart.measured_total) == ("768 B", "1,152 B", "1,152 B")
    assert apart.standing == "as gloo predicts; 384 B over the formula"
    assert (rows["Over our ring"].standing, rows["Over our ring"].measured_total) == ("equal", "768 B")
    assert [one.departs for one in halves().strategies] == [False, False, True]


def test_less_than_the_formula_is_under_it() -> None:
    alone = results_of("one", "One", reports(1, *CUTS), ("Data", "Tensor", "Pipeline"))
    assert alone.strategies[2].standing == "as gloo predicts; 32 B under the formula"


@pytest.mark.parametrize(("verdict", "words"), [("differs", "differs"), ("inconclusive", "no verdict")])
def test_a_verdict_other_than_equal_is_what_a_row_says(verdict: str, words: str) -> None:
    made = [{**one, "verdict": verdict} for one in reports(4, *PAIRS)]
    assert {one.standing for one in results_of("halves", "", made, TITLES).strategies} == {words}


def test_the_first_that_departs_is_opened() -> None:
    assert halves().opened == 2
    assert results_of("cuts", "", reports(4, *CUTS), TITLES).opened == 0


def test_the_sentence_over_all_names_the_cause() -> None:
    assert str(halves().headline) == (
        "All three send what was predicted for this backend, to the byte. <mark>Over gloo departs from the formula</mark>, "
        "because a reduce-scatter runs as an all-reduce.")


def test_each_reason_has_a_sentence_of_its_own() -> None:
    told = str(results_of("cuts", "", reports(8, *CUTS, *PAIRS[2:]), ("Data", "Tensor", "Pipeline", "Over gloo")).headline)
    assert "<mark>Tensor departs from the formula</mark>, because some GPUs hold nothing." in told
    assert told.endswith("because some GPUs hold nothing and a reduce-scatter runs as an all-reduce.")


def test_every_cause_that_opens_a_gap_has_a_clause() -> None:
    assert set(CAUSE_CLAUSE) == set(Cause) - UNEVEN
    assert causes_of(reports(8, *CUTS)[1]) == (Cause.IDLE_GPUS,)


def test_variants_of_one_axis_are_compared_first_and_different_strategies_after() -> None:
    assert halves().compared
    assert not results_of("cuts", "", reports(4, *CUTS), TITLES).compared
    assert not results_of("one", "", reports(4, *CUTS[:1]), TITLES[:1]).compared


def test_of_many_only_what_departs_is_shown_in_full() -> None:
    twelve = collectives(4)
    assert (len(twelve.strategies), twelve.compared) == (12, True)
    assert [one.title for one in twelve.in_full] == ["reduce_scatter library"]
    assert [cause.name for cause in twelve.causes] == ["Reduce-scatter as all-reduce"]


def test_only_what_changes_the_total_is_a_cause_below_the_table() -> None:
    """Chunks are uneven at P = 3, and gloo pads an all-gather; unevenness alone moves no total."""
    causes = [cause.name for cause in collectives(3).causes]
    assert "Padding" in causes
    assert all("neven" not in name for name in causes)


def test_what_each_sends_is_said_once_where_it_is_the_same() -> None:
    strategies = results_of("cuts", "", reports(4, *CUTS), TITLES).strategies
    assert [one.by_rank.replace("\N{NO-BREAK SPACE}", "") for one in strategies] == ["192 each", "96 64 96 128", "16 16 0 0"]


def test_headers_grow_with_the_messages_and_ddp_sends_what_one_piece_sends() -> None:
    """As the lesson says below the table: four layers, so four messages for one, or two buckets; a pair of layers in each."""
    lesson = load_course([ROOT / "lessons"], figure_fields()).lesson("data-parallel")
    ways = None if lesson is None else lesson.find_experiment("ways")
    assert ways is not None
    measured = [report["measured"] for run in ways.strategies if (report := ways.recorded_report(run)) is not None]
    headers = [sum(one["wire_bytes_by_rank"]) - sum(one["payload_bytes_by_rank"]) for one in measured]
    piece, by_parameter, buckets, ddp = headers
    assert (by_parameter, buckets, ddp) == (4 * piece, 2 * piece, piece)


def test_recorded_runs_of_all_lessons_name_their_transport_as_a_run_does_today() -> None:
    lessons = load_course([ROOT / "lessons"], figure_fields()).lessons
    recorded = [view for lesson in lessons for one in lesson.experiments if (view := recorded_view(one)) is not None]
    assert len(recorded) > len(lessons)
    assert {"gloo over loopback TCP, " in view.sentence for view in recorded} == {True}


@pytest.mark.parametrize(("slug", "experiment"), [
    ("ring-all-reduce", "six-collectives"), ("data-parallel", "ways"), ("tensor-parallel", "two-halves")])
def test_lessons_ship_a_row_for_each_of_their_strategies(slug: str, experiment: str) -> None:
    lesson = load_course([ROOT / "lessons"], figure_fields()).lesson(slug)
    found = None if lesson is None else lesson.find_experiment(experiment)
    assert found is not None
    recorded = recorded_view(found)
    assert recorded is not None
    assert recorded.results is not None
    assert [one.title for one in recorded.results.strategies] == list(found.labels)
    assert all(one.standing == "equal" or one.standing.startswith("as gloo predicts") for one in recorded.results.strategies)
