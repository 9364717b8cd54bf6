"""The figure *buckets*: a model's gradients in the order of backward, and which of them share an all-reduce."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from app.figures import svg
from app.figures.inputs import Choice, Field, Inputs, Option
from app.figures.numbers import counted, tenths, word
from app.figures.volume_words import Finding
from app.theory.buckets import RESNET18, Parameter, ddp_buckets
from app.theory.gpt2 import GPT2_SMALL
from kernels.schedule import DDP_BUCKET_BYTES, DDP_FIRST_BUCKET_BYTES, MIB, Bucket

MODEL = Choice("model", "Gradients of", (Option("resnet18", "ResNet-18"), Option("gpt2", "GPT-2 small")))
FIELDS = (
    Field("first", "bucket closes at, MiB", "MiB", 1, 100, DDP_FIRST_BUCKET_BYTES // MIB),
    Field("next", "ones close at, MiB", "MiB", 1, 100, DDP_BUCKET_BYTES // MIB),
    MODEL,
)
MODELS: dict[str, tuple[Parameter, ...]] = {"resnet18": RESNET18, "gpt2": GPT2_SMALL}
REPORTED = {25: (2_052_000, 28_852_224, 15_853_824), 35: (2_052_000, 38_297_600, 6_408_448)}  # bytes, pytorch issue 48880
HEIGHT, TOP = 54.0, 30.0
GAP = 3.0  # paper between two buckets
CHARACTER = 6.9
MOST_ROWS = 8
SEAM = 2.5  # the narrowest parameter whose border is drawn


@dataclass(frozen=True)
class Box:
    """A bucket as drawn: from x on; `limit` is where its limit lies, `seams` the borders of its parameters."""

    number: int
    x: float
    width: float
    limit: float | None
    seams: str
    named: bool
    limit_text: str  # where it does not run into the bucket's number


@dataclass(frozen=True)
class Strip:
    """All buckets, side by side, as long as they are large."""

    width: float
    boxes: tuple[Box, ...]


@dataclass(frozen=True)
class Row:
    """One bucket in words."""

    number: int
    bytes: int
    text: str
    share: float  # percent of the largest
    parameters: str
    closed_by: str


@dataclass(frozen=True)
class BucketsView:
    title: str
    rows: tuple[Row, ...]
    shown_rows: tuple[Row, ...]
    hidden: str
    finding: Finding
    reported: str
    wide: Strip
    narrow: Strip
    first_name: str
    last_name: str
    total: str
    status: str


def compute(inputs: Inputs) -> BucketsView:
    """The buckets that `kernels.schedule.fill_buckets` makes, the rule that our strategy executes and torch follows."""
    name = inputs.choice("model")
    model, title = MODELS[name], next(option.label for option in MODEL.options if option.value == name)
    limits = (inputs.number("first") * MIB, inputs.number("next") * MIB)
    buckets = ddp_buckets(model, *limits)
    total = sum(bucket.size for bucket in buckets)
    rows = _rows(model, buckets)
    sizes = ", ".join(row.text for row in rows[:MOST_ROWS]) + (" and so on" if len(rows) > MOST_ROWS else "")
    return BucketsView(
        title=title, rows=rows, shown_rows=_shown(rows), hidden=_hidden(rows), finding=_finding(model, buckets, limits),
        reported=_reported(name, inputs, buckets), wide=_strip(model, buckets, limits, 820),
        narrow=_strip(model, buckets, limits, 350), first_name=model[-1].name, last_name=model[0].name,
        total=f"{total:,} bytes",
        status=f"{title}, {total:,} bytes of gradients in {counted(len(buckets), 'bucket')}: {sizes}.",
    )


def _rows(model: Sequence[Parameter], buckets: Sequence[Bucket]) -> tuple[Row, ...]:
    largest = max(bucket.size for bucket in buckets)
    return tuple(
        Row(number, bucket.size, f"{bucket.size:,}", 100 * bucket.size / largest,
            counted(len(bucket.parameters), "parameter"), model[bucket.parameters[-1]].name)
        for number, bucket in enumerate(buckets, 1)
    )


def _shown(rows: tuple[Row, ...]) -> tuple[Row, ...]:
    """All of them; of too many the first ones and the last, which is often the largest."""
    return rows if len(rows) <= MOST_ROWS else (*rows[: MOST_ROWS - 1], rows[-1])


def _hidden(rows: Sequence[Row]) -> str:
    if len(rows) <= MOST_ROWS:
        return ""
    first, last = MOST_ROWS, len(rows) - 1
    return f"Bucket {first} is in the table below" if first == last else f"Buckets {first} to {last} are in the table below"


def _strip(model: Sequence[Parameter], buckets: Sequence[Bucket], limits: tuple[int, int], width: float) -> Strip:
    """Buckets as long as they are large. Where a limit falls inside one, the parameter that closed it runs past it."""
    total = sum(bucket.size for bucket in buckets)
    scale = (width - 2 - GAP * (len(buckets) - 1)) / total
    boxes: list[Box] = []
    x = 1.0
    for index, bucket in enumerate(buckets):
        limit = limits[min(index, 1)]
        wide = bucket.size * scale
        passed = limit < bucket.size and wide - limit * scale > 1.5
        text = f"limit {limit // MIB} MiB"
        room = abs(limit * scale - wide / 2) - CHARACTER * (len(text) + len(str(index + 1))) / 2
        boxes.append(Box(index + 1, x, wide, x + limit * scale if passed else None,
                         _seams(model, bucket, x, scale), wide >= CHARACTER * len(str(index + 1)) + 6,
                         text if passed and room > 8 and index <= 1 else ""))
        x += wide + GAP
    return Strip(width, tuple(boxes))


def _seams(model: Sequence[Parameter], bucket: Bucket, x: float, scale: float) -> str:
    """Upright lines between parameters, left out where they would lie closer than the eye can tell."""
    path, last, at = "", x, x
    for position in bucket.parameters[:-1]:
        at += model[position].fp32_bytes * scale
        if at - last >= SEAM and x + bucket.size * scale - at >= SEAM:
            path += f"M{svg.number(at)} {svg.number(TOP)}v{svg.number(HEIGHT)}"
            last = at
    return path


def _finding(model: Sequence[Parameter], buckets: Sequence[Bucket], limits: tuple[int, int]) -> Finding:
    total, count = sum(bucket.size for bucket in buckets), len(buckets)
    head = f"{total:,} bytes of gradients travel in "
    if count == 1:
        return Finding(head, "one all-reduce", ", which cannot start before the whole backward pass is over.", "data")
    over = max(range(count), key=lambda index: buckets[index].size / limits[min(index, 1)])
    bucket, limit = buckets[over], limits[min(over, 1)]
    closer = model[bucket.parameters[-1]]
    tail = "."
    if bucket.size > limit:
        tail = (f". Bucket {over + 1} holds {tenths_of_mib(bucket.size)} although its limit is {limit // MIB} MiB, because "
                f"{closer.name} alone takes {tenths_of_mib(closer.fp32_bytes)} and is never split.")
    return Finding(head, f"{word(count)} all-reduces", tail, "data")


def tenths_of_mib(size: int) -> str:
    """2,052,000 bytes are 2.0 MiB."""
    return f"{tenths(Fraction(size, MIB))} MiB" if size >= MIB // 20 else f"{size:,} bytes"


def _reported(name: str, inputs: Inputs, buckets: Sequence[Bucket]) -> str:
    """What somebody logged at these very limits, in a public report."""
    logged = REPORTED.get(inputs.number("next")) if name == "resnet18" and inputs.number("first") == 1 else None
    if logged is None or logged != tuple(bucket.size for bucket in buckets):
        return ""
    return "The same sizes, to the byte, were logged on four GPUs with NCCL: pytorch issue 48880."
