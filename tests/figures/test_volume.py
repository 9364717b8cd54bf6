"""Volume: the flagship's numbers, what differs as run, and one sentence that is true at all values."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.figures import FIGURES
from app.figures.amounts import Setting
from app.figures.engine import figure_state
from app.figures.svg import Box
from app.figures.volume import VolumeView
from app.figures.volume_chart import Chart
from app.figures.volume_lines import frame
from app.figures.volume_words import Measure
from app.theory import predict

VOLUME = FIGURES["volume"]
values = st.fixed_dictionaries({
    "P": st.integers(1, 64), "L": st.integers(1, 16), "H": st.integers(2, 64), "T": st.integers(1, 16),
})
switches = st.fixed_dictionaries({
    "scope": st.sampled_from(["stated", "gpu", "all"]), "unit": st.sampled_from(["elements", "fp32"]),
    "batch": st.sampled_from(["taught", "equal"]),
    "strategy": st.sampled_from(["data_parallel", "tensor_parallel", "pipeline_parallel"]),
})


def volume(**query: Any) -> VolumeView:
    state = figure_state(VOLUME, {name: str(value) for name, value in query.items()})
    assert not state.errors
    assert isinstance(state.view, VolumeView)
    return state.view


def numbers(view: VolumeView) -> list[str]:
    return [row.number for row in view.rows]


def as_number(text: str) -> Fraction:
    return Fraction(text.replace(",", ""))


@pytest.mark.parametrize(("query", "shown"), [
    ({}, ["48.0", "24.0", "8.0"]),
    ({"P": 8}, ["56.0", "28.0", "8.0"]),
    ({"scope": "gpu"}, ["48.0", "24.0", "4.0"]),
    ({"scope": "all"}, ["192.0", "96.0", "8.0"]),
    ({"batch": "equal"}, ["48.0", "96.0", "32.0"]),
    ({"unit": "fp32"}, ["192.0", "96.0", "32.0"]),
    ({"L": 8}, ["192.0", "96.0", "56.0"]),
    ({"P": 1}, ["0.0", "0.0", "8.0"]),
    ({"T": 2}, ["48.0", "48.0", "16.0"]),
    ({"P": 64, "L": 16, "H": 64, "T": 16, "scope": "all"}, ["8,257,536", "4,128,768", "30,720"]),
])
def test_the_three_numbers_are_the_lessons(query: dict[str, Any], shown: list[str]) -> None:
    assert numbers(volume(**query)) == shown


def test_each_number_says_whose_traffic_it_is() -> None:
    assert [row.scope for row in volume().rows] == ["sent by each GPU", "sent by each GPU", "sent by all GPUs together"]
    assert {row.scope for row in volume(scope="all").rows} == {"sent by all GPUs together"}
    assert volume(scope="gpu").rows[2].scope == "sent by the busiest GPU"
    assert volume().rows[2].detail == ": 4 by GPU 0, 4 by GPU 1"


def test_on_eight_gpus_tensor_shows_the_exact_24_beside_its_28_and_says_why() -> None:
    tensor = volume(P=8).rows[1]
    assert tensor.difference == "exactly 24 on 4 of 8 GPUs"
    assert "4 rows give 4 GPUs one each" in tensor.why
    assert not volume(P=4).rows[1].difference


def test_eight_layers_on_four_gpus_show_56_and_the_exact_24() -> None:
    pipeline = volume(L=8).rows[2]
    assert (pipeline.number, pipeline.difference) == ("56.0", "exactly 24")
    assert "3 of 7 boundaries lie between GPUs" in pipeline.why


def test_one_gpu_shows_exactly_0_for_all_three_beside_what_the_formulas_give() -> None:
    assert [row.difference for row in volume(P=1).rows] == ["exactly 0"] * 3
    assert volume(P=1).finding.strong == "exactly 0"


def test_a_split_that_no_run_can_make_is_shown_as_the_formulas_alone() -> None:
    tensor = volume(P=3).rows[1]
    assert tensor.difference == "cannot run"
    assert "3 GPUs cannot share 4 rows equally" in tensor.why
    assert not tensor.bar.solid
    assert tensor.bar.open is not None


def test_tensor_passes_data_where_t_is_above_half_of_h() -> None:
    assert volume(T=2).finding.strong == "exactly as much"
    assert volume(T=1).finding.axis == "data"
    assert volume(T=3).finding.axis == "tensor"


def test_the_cut_by_rank_is_gloos() -> None:
    assert [rank.text for rank in volume(strategy="tensor_parallel").ranks.rows] == ["24", "16", "24", "32"]
    assert [rank.text for rank in volume(strategy="pipeline_parallel").ranks.rows] == ["4", "4", "idle", "idle"]
    squares = [rank.squares.count("M") for rank in volume(strategy="tensor_parallel").ranks.rows]
    assert squares == [24, 16, 24, 32]


def test_more_than_64_squares_give_way_to_a_bar_and_more_than_eight_gpus_to_columns() -> None:
    assert not any(rank.squares for rank in volume(H=16).ranks.rows)
    panel = volume(P=9).ranks
    assert not panel.rows
    assert len(panel.columns) == 9


def test_a_total_is_cut_where_its_gpus_divide() -> None:
    assert len(volume(scope="all").rows[0].bar.solid) == 4
    assert len(volume().rows[2].bar.solid) == 2
    assert len(volume().rows[0].bar.solid) == 1


# The finding: what it claims is read out of the sentence and computed again, from theory alone.


class Sent:
    """What really is sent at some values, by formulas and predictions and not by the figure's own code."""

    def __init__(self, P: int, L: int, H: int, T: int, scope: str, batch: str, unit: str, **_: str) -> None:
        self.P, self.L, self.H, self.scope, self.batch = P, L, H, scope, batch
        self.width = 4 if unit == "fp32" else 1
        self.runs = H % min(P, H) == 0
        self.tokens, self.m = (P * T, P) if batch == "equal" else (T, 1)
        self.data = predict("data_parallel", P=P, L=L, H=H).exact
        self.tensor = predict("tensor_parallel", P=P, L=L, H=H, T=self.tokens).exact
        self.pipeline = predict("pipeline_gpipe", P=P, L=L, H=H, T=T, m=self.m).exact

    def of(self, cut: str) -> Fraction:
        volume = {"batch": self.data, "matrices": self.tensor, "layers": self.pipeline}[cut]
        if self.scope == "all":
            return volume.total
        if cut == "layers":
            return volume.total if self.scope == "stated" else Fraction(volume.max or 0)
        return volume.mean


WORDS = {"twice": 2, "three times": 3, "four times": 4, "five times": 5, "six times": 6, "seven times": 7, "eight times": 8,
         "nine times": 9, "ten times": 10}
FACTOR = r"(about )?(twice|[a-z]+ times|[\d.,]+ times)"


def claims_ratio(text: str, about: str | None, ratio: Fraction) -> None:
    """A stated factor is the ratio itself, or within rounding where it says "about"."""
    stated = Fraction(WORDS[text]) if text in WORDS else as_number(text.removesuffix(" times"))
    if about:
        assert abs(stated - ratio) <= Fraction(1, 20)
        assert stated > 1
    else:
        assert stated == ratio


def rounded(elements: Fraction, width: int) -> str:
    value = elements * width
    return f"{float(value):,.0f}" if value >= 10_000 else f"{float(value):,.1f}"


@settings(max_examples=300, deadline=None)
@given(values, switches)
def test_the_finding_is_true_at_all_values(at: dict[str, int], switched: dict[str, str]) -> None:
    text = volume(**at, **switched).finding.text
    sent = Sent(**at, **switched)  # type: ignore[arg-type]
    assert text.endswith(".")
    if sent.P == 1:
        assert sent.data.total == sent.tensor.total == sent.pipeline.total == 0
        assert "sends exactly 0" in text
        return
    if not sent.runs:
        assert text.startswith(f"{min(sent.P, sent.H)} GPUs cannot share {sent.H} rows equally")
        assert "as cutting the matrices" not in text
    if sent.scope == "all":
        check_totals(text, sent)
    else:
        check_per_gpu(text, sent)
        check_pipeline(text, sent)


def check_per_gpu(text: str, sent: Sent) -> None:
    match = re.search(rf"cutting the (\w+)[^,]* makes each one send {FACTOR} as much as cutting the (\w+)", text)
    if match:
        claims_ratio(match[3], match[2], sent.of(match[1]) / sent.of(match[4]))
    elif sent.runs:
        assert "make each one send exactly as much" in text
        assert sent.of("batch") == sent.of("matrices")
    busy = re.search(r"keeps (\w+) of them busy", text)
    assert (busy is not None) is (sent.runs and sent.tensor.active_gpus < sent.P)


def check_pipeline(text: str, sent: Sent) -> None:
    if sent.L == 1:
        assert "one layer has no boundary, so the pipeline sends 0" in text
        return
    clause = text.rsplit("layers costs" if sent.scope == "stated" else "pipeline sends")[-1]
    assert rounded(sent.of("layers"), sent.width) in clause
    only = re.search(r"only (\d+) of (\d+) boundaries", text)
    if sent.scope == "gpu":
        assert ("half of it each way" in text) is (min(sent.P, sent.L) > 2)
    elif sent.P < sent.L:
        assert only is not None
        assert (int(only[1]), int(only[2])) == (sent.P - 1, sent.L - 1)
    elif sent.batch == "taught":
        assert "however many GPUs you add" in text
        assert predict("pipeline_gpipe", P=4096, L=sent.L, H=sent.H, T=sent.tokens).exact.total == sent.of("layers")
    else:
        assert f"in {sent.m} micro-batches" in text


def check_totals(text: str, sent: Sent) -> None:
    cuts = ["batch", "matrices", "layers"] if sent.runs else ["batch", "layers"]
    largest = max(sent.of(cut) for cut in cuts)
    most = [cut for cut in cuts if sent.of(cut) == largest]
    head, _, tail = text.partition(" send")
    assert re.findall(r"cutting the (\w+)", head) == most
    assert rounded(largest, sent.width) in tail
    for about, factor, number, cut in re.findall(rf"{FACTOR} the ([\d.,]+) of cutting the (\w+)", tail):
        assert number == rounded(sent.of(cut), sent.width)
        claims_ratio(factor, about, largest / sent.of(cut))
    silent = re.findall(r"cutting the (\w+) sends 0", tail)
    assert silent == [cut for cut in cuts if sent.of(cut) == 0]
    assert set(re.findall(r"cutting the (\w+)", tail)) == set(cuts) - set(most)


# The drawing and the table are two views of the same numbers.


@settings(max_examples=100, deadline=None)
@given(values, switches)
def test_the_table_says_what_the_drawing_shows(at: dict[str, int], switched: dict[str, str]) -> None:
    view = volume(**at, **switched)
    here = next(row for row in view.table if row.here)
    assert at["P"] == here.P
    width = 4 if switched["unit"] == "fp32" else 1
    for row, cell in zip(view.rows, here.cells, strict=True):
        assert cell.split(";")[0] == row.number
        spots = [spot for spot in view.wide.spots if spot.axis == row.strategy.axis]
        shown = {spot.hollow: rounded(Fraction(spot.value), width) for spot in spots}
        formula_alone = True in shown
        assert shown[formula_alone] == row.number
        assert (";" in cell) is formula_alone
        if "exactly" in cell and False in shown:
            exact = re.search(r"exactly ([\d,]+)", cell)
            assert exact is not None
            assert as_number(exact[1]) == as_number(shown[False])


@settings(max_examples=100, deadline=None)
@given(values, switches)
def test_ranks_add_up_to_the_exact_total(at: dict[str, int], switched: dict[str, str]) -> None:
    view = volume(**at, **(switched | {"unit": "elements"}))
    sent = Sent(**at, **(switched | {"unit": "elements"}))  # type: ignore[arg-type]
    exact = {"data_parallel": sent.data, "tensor_parallel": sent.tensor, "pipeline_parallel": sent.pipeline}
    if switched["strategy"] == "tensor_parallel" and not sent.runs:
        assert not view.ranks.table
    else:
        assert [rank for rank, _ in view.ranks.table] == list(range(at["P"]))
        assert sum(as_number(text) for _, text in view.ranks.table) == exact[switched["strategy"]].total


@settings(max_examples=100, deadline=None)
@given(values, switches)
def test_nothing_is_drawn_outside_and_labels_of_points_do_not_cover_each_other(
    at: dict[str, int], switched: dict[str, str]
) -> None:
    view = volume(**at, **switched)
    for chart in (view.wide, view.narrow):
        for spot in chart.spots:
            assert chart.left - 0.1 <= spot.x <= chart.right + 0.1
            assert chart.layout.top - 0.1 <= spot.y <= chart.layout.bottom + 0.1
        assert all(label.box.right <= chart.layout.width + 4 for label in chart.labels)
        assert all(label.box.left >= -1 for label in chart.labels)
        assert not overlapping(chart)
    for row in view.rows:
        ends = [part.x + part.width for part in row.bar.solid] + ([row.bar.open.x + row.bar.open.width] if row.bar.open else [])
        assert all(0 <= end <= 84.1 for end in ends)


def overlapping(chart: Chart) -> list[tuple[str, str]]:
    """Texts inside the plot that cover each other by more than a hair (rows of 17 px stand closer than a box is high)."""
    boxes = [(label.lines[0], label.box) for label in chart.labels]
    return [(one, other) for index, (one, box) in enumerate(boxes) for other, second in boxes[:index] if covers(box, second)]


def covers(box: Box, other: Box) -> bool:
    beside = box.right <= other.left or other.right <= box.left
    return not beside and min(box.bottom, other.bottom) - max(box.top, other.top) > 4


@pytest.mark.parametrize("H", [4, 16])
@pytest.mark.parametrize("P", [4, 5, 7, 16, 48])
def test_no_value_and_no_name_lies_on_a_line(P: int, H: int) -> None:
    view, setting = volume(P=P, H=H), Setting(L=2, H=H, T=1, scope="stated", equal_batches=False)
    for chart in (view.wide, view.narrow):
        lines = frame(setting, Measure("elements"), 64, chart.layout).crossed
        named = [label for label in chart.labels if label.axis]
        assert len(named) >= 3
        assert [label.lines for label in named if not all(label.ink.clear_of(points) for points in lines)] == []


def test_the_limit_is_drawn_where_volumes_have_one() -> None:
    view = volume()
    assert view.wide.limit == view.wide.layout.top
    assert any("2 × params = 64" in label.lines[0] for label in view.wide.labels)
    assert volume(scope="all").wide.limit is None


def test_the_line_is_solid_where_a_run_can_go_and_dotted_where_the_formula_goes_on() -> None:
    data, tensor, pipeline = volume().wide.lines
    assert (data.dotted, bool(data.solid)) == ("", True)
    assert tensor.solid
    assert tensor.dotted
    assert pipeline.solid
    assert [round(y) for _, y in volume(H=12).wide.lines[1].stops] == [round(volume(H=12, P=6).wide.spots[1].y)]


def test_the_readers_own_p_is_a_strong_tick() -> None:
    assert [tick.text for tick in volume(P=5).wide.x_ticks if tick.strong] == ["5"]


@pytest.mark.parametrize(("query", "said"), [
    ({}, "tensor 24 on average, on 4"),  # 24, 16, 24 and 32
    ({"T": 2}, "tensor 48 on each of 4"),
    ({"scope": "all"}, "tensor 96 in all on 4"),
])
def test_the_label_of_a_mean_says_that_it_is_one(query: dict[str, Any], said: str) -> None:
    view = volume(**query)
    assert [label.lines[0] for label in view.wide.labels if "tensor" in label.lines[0]][-1].startswith(said)
    sent = predict("tensor_parallel", P=64, L=2, H=4, T=query.get("T", 1)).exact.by_rank
    assert sent is not None
    assert (len(set(sent[:4])) == 1) == ("each" in said)
