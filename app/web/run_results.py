"""Strategies of one launch side by side: a row of one table each, some in full, and one sentence over all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from app.theory.volume import UNEVEN, Cause
from app.web import run_words as words
from app.web.contexts import NamedCause, StrategyResult
from app.web.experiments import cause_name, result_view
from app.web.run_contexts import LeftOut, Results

Report = Mapping[str, Any]
MOST_TABS = 4  # of more, only those are shown in full that depart from the formula or from the prediction
CAUSE_CLAUSE: dict[Cause, str] = {
    Cause.PADDING: "zeros are sent as padding",
    Cause.REDUCE_SCATTER_AS_ALL_REDUCE: "a reduce-scatter runs as an all-reduce",
    Cause.IDLE_GPUS: "some GPUs hold nothing",
    Cause.LOCAL_BOUNDARIES: "neighbouring layers share a GPU",
}


def results_of(
    name: str, heading: str, reports: Sequence[Report], titles: Sequence[str], left_out: tuple[LeftOut, ...] = ()
) -> Results:
    """Variants of one axis, and many of any, are compared before each is looked at; a few different strategies after."""
    strategies = tuple(result_view(report, title) for report, title in zip(reports, titles, strict=True))
    in_full = strategies if len(strategies) <= MOST_TABS else tuple(one for one in strategies if one.departs)
    compared = len(strategies) > 1 and (len(strategies) > MOST_TABS or len({one.axis for one in strategies}) == 1)
    return Results(
        name=name,
        heading=heading,
        headline=headline(reports, titles),
        backend=reports[0]["environment"]["backend"],
        strategies=strategies,
        left_out=left_out,
        in_full=in_full,
        tabs=1 < len(in_full) <= MOST_TABS,
        opened=next((number for number, one in enumerate(in_full) if one.departs), 0),
        compared=compared,
        causes=_causes(strategies, reports) if compared else (),
    )


def _causes(strategies: Sequence[StrategyResult], reports: Sequence[Report]) -> tuple[NamedCause, ...]:
    """Why totals depart from the formula. Uneven cuts change who sends, not how much all send together."""
    apart = {cause_name(cause) for report in reports for cause in causes_of(report)}
    return tuple(dict.fromkeys(cause for one in strategies for cause in one.causes if cause.name in apart))


def causes_of(report: Report) -> tuple[Cause, ...]:
    """Of the gap between the formula and what this backend sends in all."""
    gap = report["ideal_gap"]
    return tuple(cause for cause in map(Cause, gap["causes"]) if cause not in UNEVEN) if gap["bytes"] else ()


def headline(reports: Sequence[Report], titles: Sequence[str]) -> Markup:
    """One sentence over several strategies; a single one has its own."""
    if len(reports) == 1:
        return Markup("")
    by_verdict = {verdict: [title for one, title in zip(reports, titles, strict=True) if one["verdict"] == verdict]
                  for verdict in ("differs", "inconclusive")}
    off = [f"{words.listed(who)} {words.verdict_of(verdict, len(who))}" for verdict, who in by_verdict.items() if who]
    if off:
        return Markup("<mark>{}</mark>: the reason stands with its numbers.").format("; ".join(off))
    count = "Both" if len(reports) == 2 else f"All {words.numeral(len(reports))}"
    equal = Markup("{} send what was predicted for this backend, to the byte.").format(count)
    return Markup(" ").join([equal, *_apart(reports, titles)])


def _apart(reports: Sequence[Report], titles: Sequence[str]) -> list[Markup]:
    """A sentence for those that depart from the formula, and one more for each further reason."""
    by_reason: dict[tuple[Cause, ...], list[str]] = {}
    for one, title in zip(reports, titles, strict=True):
        if one["ideal_gap"]["bytes"]:
            by_reason.setdefault(causes_of(one), []).append(title)
    return [_departs(who, why) for why, who in by_reason.items()]


def _departs(who: Sequence[str], why: Sequence[Cause]) -> Markup:
    verb = "departs" if len(who) == 1 else "depart"
    reason = f", because {words.listed([CAUSE_CLAUSE[cause] for cause in why])}" if why else ""
    return Markup("<mark>{} {} from the formula</mark>{}.").format(words.listed(who), verb, reason)
