"""A recorded report -> what the page draws: the verdict line, bars by rank, who sends to whom, and the wire."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

from app.runs.results import predicted
from app.theory.volume import CAUSE_TEXT, Cause
from app.web import contexts
from app.web.render import byte_count, thousands
from kernels import spec

Report = Mapping[str, Any]
FULL_WIDTH = 98  # percent: the outline of the longest bar stays inside the drawing
WIRE_WIDTH = 820
SHADES = 10
RANK_GAP = "\N{NO-BREAK SPACE} "
NOT_MEASURED = "not measured"
LEFTWARD = "{}’s ring runs to the left: each GPU sends to the one before it, the first to the last. The bytes are the same."


def command(world_size: int, run: spec.Experiment) -> str:
    """What repeats this measurement in a shell; values that the strategy takes by default are left out, m where it has none."""
    numbers = [f"-P {world_size}", f"-L {run.L}", f"-H {run.H}", f"-T {run.T}"]
    if spec.STRATEGY_SPECS[run.strategy].uses_micro_batches:
        numbers.append(f"-m {run.m}")
    options = [f"{spec.flag(name)} {value}" for name, value in run.options.items()]
    return " ".join(["worldsize measure", run.strategy, *numbers, *options])


def recorded_sentence(report: Report) -> str:
    """When and on what the run took place."""
    environment = report["environment"]
    day = datetime.fromisoformat(environment["started_at"])
    cores = f"{environment['cpu_count']} CPU cores" if environment["cpu_count"] != 1 else "one CPU core"
    gpus = f" and {environment['gpu_count']} GPUs" if environment["gpu_count"] else ""
    return (f"Recorded on {day.day} {day:%B %Y}, on a machine with {cores}{gpus}: PyTorch {environment['torch']}, "
            f"{environment['backend']} over {environment['transport']}, Python {environment['python']}.")


def result_view(report: Report, title: str = "") -> contexts.StrategyResult:
    strategy = spec.STRATEGY_SPECS[report["strategy"]]
    measured = report["measured"]
    payload = _payload(report)
    wire = measured["wire_bytes_by_rank"]
    return contexts.StrategyResult(
        strategy=strategy.name,
        title=title or strategy.title,
        axis="" if strategy.axis == "none" else strategy.axis,
        finding=_finding(report),
        explanation=_without_causes(report),
        causes=tuple(contexts.NamedCause(cause_name(one), CAUSE_TEXT[Cause(one)]) for one in report["ideal_gap"]["causes"]),
        terms=_terms(report),
        bars=_bars(report),
        bars_note=_bars_note(report),
        matrix=_matrix(None if payload is None else measured["matrix"]),
        matrix_note="" if payload is None else _direction(measured["matrix"], report["environment"]["backend"]),
        wire=_wire(payload, wire),
        formula_total=byte_count(report["predicted"]["total_bytes"]),
        predicted_total=byte_count(report["backend_predicted"]["total_bytes"]),
        measured_total=NOT_MEASURED if payload is None else byte_count(sum(payload)),
        wire_total=NOT_MEASURED if payload is None or wire is None else byte_count(sum(wire)),
        by_rank=NOT_MEASURED if payload is None else _by_rank(payload),
        standing=standing(report),
        departs=report["verdict"] != "equal" or report["ideal_gap"]["bytes"] != 0,
    )


def _by_rank(payload: Sequence[int]) -> str:
    """'192 each', or what every rank sent where that is not the same."""
    same = len(payload) > 1 and len(set(payload)) == 1
    return f"{thousands(payload[0])} each" if same else RANK_GAP.join(map(thousands, payload))


def standing(report: Report) -> str:
    """The verdict in a few words. What is equal to its prediction and not to the formula is never called equal alone."""
    if report["verdict"] != "equal":
        return "no verdict" if report["verdict"] == "inconclusive" else "differs"
    gap = report["ideal_gap"]["bytes"]
    if not gap:
        return "equal"
    backend, side = report["environment"]["backend"], "over" if gap > 0 else "under"
    return f"as {backend} predicts; {byte_count(abs(gap))} {side} the formula"


def _payload(report: Report) -> Sequence[int] | None:
    """Bytes by rank, if there are any that can be shown. Payload is a difference of two readings: where a connection never fell
    silent, what passed beside the step may leave less than nothing or more than the wire, and that would only mislead."""
    measured = report["measured"]
    payload: Sequence[int] | None = measured["payload_bytes_by_rank"]
    if payload is None or any(count < 0 for row in measured["matrix"] or () for count in row):
        return None
    wire = measured["wire_bytes_by_rank"] or payload
    return payload if all(0 <= sent <= passed for sent, passed in zip(payload, wire, strict=True)) else None


def cause_name(cause: str) -> str:
    """reduce_scatter_as_all_reduce -> Reduce-scatter as all-reduce."""
    compound = cause.replace("reduce_scatter", "reduce-scatter").replace("all_reduce", "all-reduce").replace("gpus", "GPUs")
    words = compound.replace("_", " ")
    return words[0].upper() + words[1:]


def _without_causes(report: Report) -> str:
    """The explanation, whose causes are told one by one below it."""
    text: str = report["explanation"]
    for cause in report["ideal_gap"]["causes"]:
        text = text.replace(CAUSE_TEXT[Cause(cause)], "")
    return " ".join(text.split())


def _finding(report: Report) -> str:
    gap = report["ideal_gap"]["bytes"]
    if report["verdict"] == "inconclusive":
        return "No verdict: the readings did not settle."
    if report["verdict"] == "differs":
        return "The sockets carried something else than was predicted."
    if gap:
        backend = report["environment"]["backend"]
        return f"Measured as predicted for {backend}, and {byte_count(abs(gap))} away from the formula."
    if _is_uniform(report):
        return "Equal, to the byte, on every GPU."
    return "Equal, to the byte, over all GPUs together."


def _is_uniform(report: Report) -> bool:
    """Whether every GPU sends the same, so that one GPU's number says it all."""
    payload = _payload(report)
    expected = report["backend_predicted"]["per_gpu_elements"]["by_rank"]
    return payload is not None and expected is not None and len(set(payload)) == 1 and len(set(expected)) == 1


def _terms(report: Report) -> tuple[contexts.Term, ...]:
    """formula = backend = measured, in bytes: of each GPU where all send the same, else of all GPUs together."""
    uniform = _is_uniform(report)
    payload = _payload(report)
    formula, backend = _amount(report["predicted"], uniform), _amount(report["backend_predicted"], uniform)
    scope = "each GPU" if uniform else "all GPUs together"
    terms = [
        contexts.Term("", thousands(formula), "B", f"the formula, {scope}", False),
        contexts.Term(_relation(backend, formula), thousands(backend), "B",
                      f"{report['environment']['backend']}, predicted", False),
    ]
    if payload is not None:
        measured = payload[0] if uniform else sum(payload)
        terms.append(contexts.Term(_relation(measured, backend), thousands(measured), "B", "measured on the sockets", True))
    return tuple(terms)


def _relation(number: float, before: float) -> Literal["equal", "differs"]:
    return "equal" if number == before else "differs"


def _amount(volume: Report, uniform: bool) -> float:
    size = spec.BYTES_PER_ELEMENT[volume["dtype"]]
    return float(volume["per_gpu_elements"]["mean"] * size if uniform else volume["total_bytes"])


def _outlines(report: Report) -> tuple[Sequence[float], str]:
    """Bytes predicted for each rank, and by whom: the formula where the backend departs from it, else the backend's own cut."""
    volume = report["predicted"] if report["ideal_gap"]["bytes"] else report["backend_predicted"]
    whose = "the formula says" if report["ideal_gap"]["bytes"] else f"was predicted for {report['environment']['backend']}"
    size = spec.BYTES_PER_ELEMENT[volume["dtype"]]
    counts = volume["per_gpu_elements"]["by_rank"]
    world_size = report["spec"]["P"]
    if counts is None:
        counts = [volume["total_elements"] / world_size] * world_size
        whose += ", on average"
    return [count * size for count in counts], whose


def _bars(report: Report) -> tuple[contexts.RankBar, ...]:
    payload = _payload(report)
    if payload is None:
        return ()
    outlines, _ = _outlines(report)
    longest = max([*payload, *outlines, 1])
    active = _active_gpus(report)
    return tuple(
        contexts.RankBar(rank, _percent(outline / longest), _percent(sent / longest),
                         sent == outline == 0 and rank >= active, byte_count(sent))
        for rank, (outline, sent) in enumerate(zip(outlines, payload, strict=True))
    )


def _active_gpus(report: Report) -> int:
    """GPUs that send, receive or compute, the first ones: on a single GPU nothing is sent, and yet it is not idle."""
    one = report["spec"]
    experiment = spec.Experiment(one["strategy"], one["L"], one["H"], one["T"], one["m"], one["options"])
    return predicted(one["P"], experiment, report["environment"]["backend"]).prediction.exact.active_gpus


def _bars_note(report: Report) -> str:
    measured = report["measured"]
    _, whose = _outlines(report)
    return (f"An outline is what {whose}; the fill is what the sockets counted. "
            f"{measured['agreeing']} of {measured['repetitions']} readings agree.")


def _percent(share: float) -> str:
    return f"{share * FULL_WIDTH:.2f}%"


def _matrix(matrix: Sequence[Sequence[int]] | None) -> tuple[tuple[contexts.HeatCell, ...], ...]:
    if matrix is None:
        return ()
    most = max(max(row) for row in matrix)
    return tuple(
        tuple(contexts.HeatCell("self", "") if sender == receiver else _cell(count, most) for receiver, count in enumerate(row))
        for sender, row in enumerate(matrix)
    )


def _direction(matrix: Sequence[Sequence[int]], backend: str) -> str:
    """Said where the GPUs that send form a ring against the count: figures draw one that goes with it."""
    sends = [{to for to, count in enumerate(row) if count} for row in matrix]
    ring = [rank for rank, receivers in enumerate(sends) if receivers]
    leftward = len(ring) > 2 and all(sends[rank] == {ring[place - 1]} for place, rank in enumerate(ring))
    return LEFTWARD.format(backend) if leftward else ""


def _cell(count: int, most: int) -> contexts.HeatCell:
    """Ten steps from the smallest share to the largest; zero has no shade."""
    return contexts.HeatCell(f"q{-(-count * SHADES // most)}" if count else "", thousands(count))


def _wire(payload: Sequence[int] | None, wire: Sequence[int] | None) -> contexts.WireBar | None:
    """What the headers add, over all GPUs; None where sockets could not be read."""
    if payload is None or wire is None or sum(wire) == 0:
        return None
    inside, outside = sum(payload), sum(wire) - sum(payload)
    return contexts.WireBar(
        heading=f"On the wire, all GPUs together: {byte_count(sum(wire))}",
        payload_width=round(WIRE_WIDTH * inside / sum(wire), 1),
        payload_text=f"{thousands(inside)} payload",
        protocol_text=f"{thousands(outside)} protocol",
        title=f"{thousands(sum(wire))} bytes on the wire: {thousands(inside)} of payload, {thousands(outside)} of protocol",
    )
