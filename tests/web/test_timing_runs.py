"""A run that takes times, from the button of its lesson to its own page: what it shows, and what it does not claim."""

from __future__ import annotations

import re
from code import InteractiveInterpreter
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from dataclasses import asdict, replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from httpx import Response

from app.figures import alpha_beta
from app.runs import leases, replay, take_away, timing
from app.runs.store import State
from app.runs.stored import Failure, Progress
from app.runs.worker import _done
from app.theory import latency
from app.web.timing_views import timing_view
from kernels.spec import RunReport, to_json
from tests.runs import made_up
from tests.runs.asking import VERSIONS, show_worker
from tests.web import runs_made_up
from tests.web.runs_made_up import HTMX, database_of, end, read, run_id_of, take, tell
from tests.web.sites import make_app

SLUG, EXPERIMENT = "ring-all-reduce", "ring-all-reduce/own-machine"
LESSON = f"/lessons/{SLUG}"
ALPHA, BANDWIDTH = 50e-6, 2e9


@pytest.fixture
def app(tmp_path: Path) -> Iterator[FastAPI]:
    app = make_app(tmp_path, lessons=[SLUG])
    yield app
    app.state.site.database.close()


@pytest.fixture
def learner(app: FastAPI) -> TestClient:
    return TestClient(app, follow_redirects=False)


def model(P: int) -> Callable[[int], float]:
    """A machine that keeps to the formula."""
    return lambda n: latency.ring_all_reduce_seconds(P, n, ALPHA, BANDWIDTH)


def falling(n: int) -> float:
    """A machine on which larger buffers are faster: no line has that."""
    return 1 / n


def test_the_note_knows_how_long_it_takes_and_of_no_cap_beyond_its_figure(app: FastAPI, learner: TestClient) -> None:
    show_worker(database_of(app))
    told = learner.get(f"{LESSON}/experiments/own-machine/note", params={"alpha_beta.P": "4"}).text
    assert "One real process for each GPU of the figure. 11 sizes, 25 calls of each: it takes about ten seconds." in told


def press(client: TestClient, P: int, *, htmx: bool = True) -> Response:
    form = {"experiment": EXPERIMENT, "alpha_beta.P": str(P)}
    response: Response = client.post("/runs", data=form, headers=HTMX if htmx else {})
    return response


def finish(app: FastAPI, run_id: str, seconds: Callable[[int], float]) -> None:
    """As the worker ends it when calls took so long."""
    lease = take(app, run_id)
    outcome = replace(_done(lease.run.spec, made_up.timed_report(lease.run.spec, seconds), 1.0), versions=VERSIONS)
    with database_of(app).writing() as session:
        assert leases.end(session, lease, outcome)


def place_of(html: str) -> str:
    """The place of the run in its page, up to the figure after it."""
    return html.partition('id="run-own-machine"')[2].partition('id="ring_or_tree"')[0]


def words(html: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", html).replace("\N{NO-BREAK SPACE}", " ").split())


def test_the_button_asks_for_times_at_the_figure_s_number_of_processes(app: FastAPI, learner: TestClient) -> None:
    run = read(app, run_id_of(press(learner, 3)))
    assert run.spec.P == 3
    assert run.spec.purpose == "timing"
    assert run.spec.experiments == timing.timing_run(3).experiments
    assert len(run.spec.experiments) >= 8


def test_a_run_shows_alpha_and_B_the_line_what_is_left_over_and_every_size(app: FastAPI, learner: TestClient) -> None:
    run_id = run_id_of(press(learner, 4))
    finish(app, run_id, model(4))
    shown = words(place_of(learner.get(LESSON).text))
    assert "Measured on this server just now. P = 4, 4 KiB to 4 MiB." in shown
    assert "50 µs α, for a message 2 GB/s B, in one direction" in shown
    assert "Between 4 processes the line misses the measured time by 0 % on average." in shown
    assert "A dot stands for 25 calls" in shown
    assert "measured less fitted line" in shown
    assert f"4 KiB {_us(4096)} {_us(4096)} 0 % {_us(4096)}" in shown, "measured, by the line, apart, median"


def _us(n: int) -> str:
    return f"{model(4)(n) * 1e6:.0f} µs"


@pytest.mark.parametrize("address", ["/runs/{}?of=" + EXPERIMENT.replace("/", "%2F"), "/runs/{}"])
def test_its_own_page_shows_the_same_and_speaks_of_no_bytes(app: FastAPI, learner: TestClient, address: str) -> None:
    run_id = run_id_of(press(learner, 2, htmx=False))
    finish(app, run_id, model(2))
    page = learner.get(address.format(run_id)).text
    told = words(page[page.index("<main"):])
    assert "An all-reduce, timed on two GPUs" in told
    assert "Eleven sizes of buffer, from 4 KiB to 4 MiB." in told
    assert "50 µs α, for a message 2 GB/s B, in one direction" in told
    for claim in ("equal", "differs", "inconclusive", "No verdict", "readings", "Payload", "not measured"):
        assert claim not in told, claim


def test_before_any_run_the_recorded_times_are_shown_as_recorded(learner: TestClient) -> None:
    shown = words(place_of(learner.get(LESSON).text))
    fit = alpha_beta.best_fit(4)
    assert "Recorded on 29 November 2026, on a machine with 2 CPU cores" in shown
    assert "It ships with the lesson; nothing was measured on this server." in shown
    assert f"{fit.alpha_seconds * 1e6:.0f} µs α, for a message" in shown
    assert "A dot stands for 150 calls" in shown


def test_recorded_and_measured_times_go_by_the_same_statistic() -> None:
    """The same calls give the same view, whichever way they came in."""
    report = made_up.timed_report(timing.timing_run(2), model(2))
    rows = [asdict(latency.timed(4 * int(one.experiment.options["elements"]), timing.call_seconds(one)))
            for one in report.experiments]
    recorded = timing_view("t", 2, [latency.Timed(**row) for row in rows])
    assert recorded == timing_view("t", 2, timing.timed_sizes(report))
    assert set(rows[0]) | {"P"} == set(alpha_beta.recording()["rows"][0])


def test_under_way_it_says_which_size_it_is_at_and_outlines_no_bytes(app: FastAPI, learner: TestClient) -> None:
    run_id = run_id_of(press(learner, 2))
    lease = take(app, run_id)
    tell(app, lease, Progress("measuring", 11, experiment=2, strategy="ring_all_reduce", dtype="fp32", repetition=1,
                              repetitions=1))
    shown = words(place_of(learner.get(LESSON).text))
    assert "All-reduce of 16 KiB, call after call." in shown
    assert "size 3 of 11" in shown
    assert "not measured yet" not in shown


@pytest.mark.parametrize(("state", "said"), [(State.FAILED, "Rank 1 stopped"), (State.CANCELLED, "This run was cancelled.")])
def test_without_a_result_the_reason_is_told_and_the_recorded_times_stay(
    app: FastAPI, learner: TestClient, state: State, said: str
) -> None:
    run_id = run_id_of(press(learner, 2))
    end(app, take(app, run_id), state, Failure("It ended.", rank=1, exit="exit code 3", phase="measuring"))
    shown = words(place_of(learner.get(f"/runs/{run_id}/status", params={"of": EXPERIMENT}, headers=HTMX).text))
    assert said in shown
    assert "Recorded on" in shown
    assert words(learner.get(f"/runs/{run_id}").text).count(said) == 1


def test_a_waiting_run_is_cancelled_like_any_other(learner: TestClient) -> None:
    run_id = run_id_of(press(learner, 2))
    response = learner.post(f"/runs/{run_id}/cancel", params={"of": EXPERIMENT}, headers=HTMX)
    assert "This run was cancelled." in response.text


def test_times_without_a_line_are_shown_as_points_and_said_to_have_none(app: FastAPI, learner: TestClient) -> None:
    run_id = run_id_of(press(learner, 2))
    finish(app, run_id, falling)
    shown = words(place_of(learner.get(LESSON).text))
    assert "These times follow no line with a positive α and B." in shown
    assert "4 KiB 244 µs none" in shown
    assert "for a message" not in shown
    fit = learner.get(f"/api/runs/{run_id}").json()["fit"]
    assert fit["alpha_seconds"] is None
    assert len(fit["points"]) == len(timing.SIZES)


def test_a_run_with_a_line_is_shown_to_the_next_who_asks_and_one_without_is_not(app: FastAPI, learner: TestClient) -> None:
    for P, seconds, again in ((2, model(2), True), (3, falling, False)):
        first = run_id_of(press(learner, P))
        finish(app, first, seconds)
        other = TestClient(app, follow_redirects=False)
        assert (run_id_of(press(other, P)) == first) is again, P


def test_the_api_tells_the_fit_and_gives_no_verdict_on_bytes(app: FastAPI, learner: TestClient) -> None:
    run_id = run_id_of(press(learner, 4))
    assert learner.get(f"/api/runs/{run_id}").json()["fit"] is None
    finish(app, run_id, model(4))
    run = learner.get(f"/api/runs/{run_id}").json()
    assert run["fit"]["alpha_seconds"] == pytest.approx(ALPHA)
    assert run["fit"]["bandwidth_bytes_per_second"] == pytest.approx(BANDWIDTH)
    assert [one["buffer_bytes"] for one in run["fit"]["points"]] == [4 * size for size in timing.SIZES]
    assert {one["verdict"] for one in run["reports"]} == {"inconclusive"}
    assert all("counts calls, not sockets" in one["explanation"] for one in run["reports"])


def printed(source: str, report: dict[str, Any]) -> str:
    """What a script prints when its launch brings this report."""
    shell = InteractiveInterpreter({"__name__": "taken away", "REPORT": report})
    told = StringIO()
    with redirect_stdout(told):
        for text in (source, "show_times(REPORT, SEEN)"):
            shell.runcode(compile(text, "script", "exec", dont_inherit=True))
    return told.getvalue()


def test_script_and_notebook_print_times_and_both_constants(app: FastAPI, learner: TestClient) -> None:
    run_id = run_id_of(press(learner, 4))
    finish(app, run_id, model(4))
    run = read(app, run_id)
    script = take_away.script(run)
    assert script.rstrip().endswith("show_times(measure(SPEC), SEEN)")
    assert "show_times(measure(SPEC), SEEN)" in take_away.notebook(run)
    assert run.report is not None
    told = printed(script, to_json(run.report))
    constants = replay.constants(ALPHA, BANDWIDTH)
    assert f"here:        {constants}" in told
    assert f"on the page: {constants}" in told
    assert told.count(" bytes:") == len(timing.SIZES)
    assert re.search(rf"4,096 bytes: +{model(4)(4096) * 1e6:.1f} us measured, +{model(4)(4096) * 1e6:.1f} us by the line", told)


def scattered(report: RunReport) -> RunReport:
    """Each call of a size a little slower than the one before."""
    return replace(report, experiments=tuple(
        replace(one, timeline=tuple(replace(interval, end_seconds=interval.end_seconds * (1 + 1e-7 * interval.start_seconds))
                                    for interval in one.timeline))
        for one in report.experiments))


def test_a_script_sums_up_and_fits_as_the_page_does() -> None:
    report = scattered(made_up.timed_report(timing.timing_run(4), lambda n: model(4)(n) * (1.2 if n % 3 == 1 else 0.9)))
    fit = timing.fit(report)
    told = StringIO()
    with redirect_stdout(told):
        replay.show_times(to_json(report), [])
    assert replay.constants(fit.alpha_seconds, fit.bandwidth_bytes_per_second) in told.getvalue()
    for one in timing.timed_sizes(report):
        assert one.fastest_seconds < one.first_decile_seconds < one.median_seconds
        assert f"{one.first_decile_seconds * 1e6:9.1f} us measured" in told.getvalue()


def test_where_runs_are_off_a_command_takes_the_times(tmp_path: Path) -> None:
    app = make_app(tmp_path / "off", lessons=[SLUG], runs=False)
    page = words(TestClient(app).get(LESSON).text)
    assert "4 processes start, and their calls are timed. python -m app.runs.timing 4" in page
    app.state.site.database.close()


@pytest.mark.parametrize("given", [[], ["x"], ["1"], ["99"], ["2", "3"]])
def test_the_command_says_what_it_takes(given: list[str]) -> None:
    with pytest.raises(SystemExit, match=r"usage|one rank sends no message|must be a whole number"):
        timing.main(given)


def test_counted_bytes_of_the_same_collective_do_not_take_the_place_of_times(app: FastAPI, learner: TestClient) -> None:
    body = {"strategy": "ring_all_reduce", "P": 2, "options": {"collective": "all_reduce", "implementation": "library"}}
    run_id = learner.post("/api/runs", json=body).json()["id"]
    runs_made_up.finish(app, take(app, run_id))
    page = learner.get(LESSON).text
    assert "Recorded on" in place_of(page)
    assert "Measured on this server" in page, "it stands at the collectives"


def test_a_counting_run_has_no_fit(app: FastAPI, learner: TestClient) -> None:
    run_id = learner.post("/api/runs", json={"strategy": "data_parallel", "P": 2}).json()["id"]
    runs_made_up.finish(app, take(app, run_id))
    assert learner.get(f"/api/runs/{run_id}").json()["fit"] is None
