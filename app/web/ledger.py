"""GET /ledger: every formula with its source, the published figures it was held against, and its last verification here."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from fastapi import APIRouter
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response

from app import published
from app.course.cards import anchor, sentences_html
from app.course.math import mathml
from app.errors import NotFound
from app.runs import last_seen, verification
from app.runs.last_seen import LastSeen
from app.runs.verification import Verification, VerificationUnreadable
from app.runs.verify import Row
from app.theory import FORMULAS
from app.theory.formula import Formula, Number, Symbol
from app.theory.published import Check
from app.theory.volume import CAUSE_TEXT, Cause
from app.web import ledger_contexts as views
from app.web.deps import SiteDep
from app.web.experiments import cause_name, standing
from app.web.render import counted, render, thousands
from app.web.run_words import numeral
from kernels.spec import STRATEGY_SPECS

router = APIRouter()
TITLES = {"batch": "Batches", "buckets": "Gradient buckets", "flops": "Work", "latency": "Time", "loss": "Losses",
          "zero": "ZeRO and sharding"}
AXES = {"data_parallel": "data", "buckets": "data", "tensor_parallel": "tensor", "pipeline_parallel": "pipeline",
        "zero": "shard"}
_COLLECTIVE = ("ring_all_reduce", "ring_all_reduce_total", "ring_factor", "reduce_scatter", "reduce_scatter_total",
               "all_gather", "all_gather_total", "all_to_all", "all_to_all_total", "broadcast_total", "send_recv")
_DATA = tuple(f"data_parallel.{name}" for name in (
    "volume", "total_volume", "synced_once_volume", "synced_every_micro_step_volume"))
_PIPELINE = ("pipeline_parallel.taught_volume", "pipeline_parallel.exact_volume", "pipeline_parallel.boundary_volume",
             "pipeline_parallel.busiest_gpu_volume")
_TENSOR = tuple(f"tensor_parallel.{name}" for name in (
    "taught_volume", "taught_total", "exact_volume", "exact_total", "boundary_volume"))
_MEGATRON = ("tensor_parallel.megatron_volume",)
_SEQUENCE = ("tensor_parallel.sequence_parallel_volume", "tensor_parallel.sequence_parallel_all_reduced_volume")
# Which strategy's bytes are predicted by which formulas: a real run of the one is a check of the others.
MEASURES: dict[str, tuple[str, ...]] = {
    "data_parallel": _DATA, "ddp": _DATA,
    "tensor_parallel": _TENSOR, "tensor_megatron": (*_MEGATRON, *_SEQUENCE), "tensor_dtensor": _MEGATRON,
    "megatron_core": _MEGATRON,
    "pipeline_gpipe": _PIPELINE, "pipeline_1f1b": _PIPELINE, "pipeline_torch": _PIPELINE,
    "ring_all_reduce": tuple(f"collectives.{name}" for name in _COLLECTIVE),
}


class ConceptNotFound(NotFound):
    """No formula belongs to it."""

    kind = "concept"


@router.get("/ledger")
def ledger(request: Request, site: SiteDep, concept: str = "") -> Response:
    """All formulas, or those of one concept."""
    concepts = list(dict.fromkeys(name.partition(".")[0] for name in FORMULAS))
    if concept and concept not in concepts:
        raise ConceptNotFound(concept)
    trouble = ""
    try:
        last = verification.load(site.settings.data_dir)
    except VerificationUnreadable as unreadable:
        last, trouble = None, str(unreadable)
    with site.database.reading() as session:
        seen, done = last_seen.last_seen(session), last_seen.count_done(session)
    chosen = [concept] if concept else concepts
    page = views.Ledger(
        count=len(FORMULAS),
        concept=concept,
        links=tuple(views.ConceptLink(name, title(name), sum(1 for _ in _formulas(name))) for name in concepts),
        sections=tuple(views.LedgerSection(name, title(name), tuple(_entry(one, last) for one in _formulas(name)))
                       for name in chosen),
        verified=None if last is None else _verified(last),
        seen=tuple(_seen_row(name, one) for name, one in seen.items() if name in STRATEGY_SPECS),
        runs=done,
        trouble=trouble,
        published=len(_all_checks()),
        published_held=sum(check.holds for check in _all_checks()),
    )
    return render(request, page)


def title(concept: str) -> str:
    """A module of app.theory in words."""
    return TITLES.get(concept) or concept.replace("_", " ").capitalize()


def _formulas(concept: str) -> Iterable[Formula]:
    return (formula for name, formula in FORMULAS.items() if name.partition(".")[0] == concept)


@cache
def _all_checks() -> tuple[Check, ...]:
    return tuple(check for checks in published.check_all().values() for check in checks)


@cache
def _text(name: str) -> views.FormulaText:
    formula = FORMULAS[name]
    symbols = tuple(
        views.SymbolRow(Markup(mathml(one.latex, False)), f"{one.meaning}, in {one.unit}" if _adds(one) else one.meaning)
        for one in formula.symbols
    )
    return views.FormulaText(
        formula.title, AXES.get(name.partition(".")[0], ""), Markup(mathml(formula.latex, False)),
        Markup(mathml(formula.latex, True)), symbols, formula.unit or "none, a plain number", formula.scope,
        Markup(sentences_html(" ".join(formula.assumptions))), Markup(sentences_html(formula.breaks)),
        tuple((source.text, source.url) for source in formula.sources),
    )


def _adds(symbol: Symbol) -> bool:
    """Whether the unit says more than the meaning does."""
    return bool(symbol.unit) and symbol.unit not in symbol.meaning


@cache
def _checks(name: str) -> tuple[views.CheckRow, ...]:
    """Figures that papers print first, then those that were derived or computed again."""
    mine = [check for check in _all_checks() if check.formula == name]
    return tuple(_check_row(check) for check in sorted(mine, key=lambda check: not check.is_published))


def _check_row(check: Check) -> views.CheckRow:
    given = ", ".join(f"{name} = {value if isinstance(value, str) else shown(value)}" for name, value in check.given.items())
    expected = shown(check.expected) if check.printed is None else str(check.printed)
    return views.CheckRow(given, expected, shown(check.ours), check.unit, check.source, check.is_published, check.holds,
                          check.reason)


def shown(number: Number) -> str:
    """Whole numbers with commas, others to six digits."""
    return thousands(number) if number == int(number) else f"{float(number):,.6g}"


def _entry(formula: Formula, last: Verification | None) -> views.LedgerEntry:
    rows = [] if last is None else [row for row in last.rows if formula.name in MEASURES.get(row.strategy, ())]
    checks, cells = _checks(formula.name), sum(row.cells for row in rows)
    against = [counted(len(checks), "figure")] if checks else []
    against += [f"{cells:,} runs"] if cells else []
    return views.LedgerEntry(formula.name, anchor(formula), _text(formula.name), checks, tuple(map(_measured_by, rows)),
                             ", ".join(against))


def _measured_by(row: Row) -> views.MeasuredBy:
    return views.MeasuredBy(STRATEGY_SPECS[row.strategy].title, f"{row.equal:,} of {row.cells:,}", row.holds)


def _verified(last: Verification) -> views.Verified:
    day, environment = last.verified_at, last.environment
    known = [row for row in last.rows if row.strategy in STRATEGY_SPECS]
    return views.Verified(
        when=f"{day.day} {day:%B %Y, %H:%M} UTC",
        scope="a part of the grid" if last.quick else "the whole grid",
        largest=numeral(last.largest),
        settings=sum(row.cells for row in known),
        holds=last.holds,
        on="" if environment is None else f"PyTorch {environment.torch}, {environment.backend} over {environment.transport}",
        rows=tuple(_strategy_row(row) for row in known),
        causes=tuple(dict.fromkeys(cause_words(gap) for row in known for gap in row.gaps)),
    )


def _strategy_row(row: Row) -> views.StrategyRow:
    strategy = STRATEGY_SPECS[row.strategy]
    misses = [f"{count:,} {word}" for count, word in (
        (row.differs, "different"), (row.inconclusive, "without a verdict"), (row.failed, "failed")) if count]
    axis = "" if strategy.axis == "none" else strategy.axis
    gaps = "; ".join(map(cause_name, row.gaps))
    return views.StrategyRow(strategy.title, axis, row.cells, row.equal, ", ".join(misses), gaps)


def _seen_row(name: str, seen: LastSeen) -> views.SeenRow:
    strategy, day = STRATEGY_SPECS[name], seen.ended_at
    departs = seen.result["verdict"] != "equal" or seen.result["ideal_gap"]["bytes"] != 0
    return views.SeenRow(strategy.title, "" if strategy.axis == "none" else strategy.axis, seen.P,
                         f"{day.day} {day:%B %Y, %H:%M} UTC", standing(seen.result), departs)


def cause_words(name: str) -> tuple[str, str]:
    """A cause, and its sentence."""
    return cause_name(name), CAUSE_TEXT[Cause(name)]
