"""Which formula answers for which row of published.json, and whether it does.

The table holds figures printed in papers and checks recomputed from them. A row's own formula text is never evaluated:
our formulas are. Callers read the file (`PUBLISHED_FILE`, a JSON array) and pass its rows in.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

from app.theory import evaluate, units
from app.theory.formula import Number

PUBLISHED_FILE = Path(__file__).with_name("published.json")
TOPICS = ("seed_lesson", "collectives", "latency", "zero_comm", "tp_comm", "grad_accum", "fsdp")

# Rows whose source prints a figure that ours does not round to.
DIFFERS_FROM_PRINT = {
    "neox-gbs": "The paper prints 1538 sequences; its configuration multiplies to 4 × 32 × 12 = 1536.",
    "gpt3-batch-seqs": "3.2 million tokens is a rounded figure: 1536 sequences of 2048 are 3.146 million tokens.",
}


@dataclass(frozen=True)
class Answer:
    """How a row is answered: our formula, and where each argument comes from.

    `arguments` maps our name to a key of the row's inputs, or to several whose product it is; `supplied` holds arguments
    that the row leaves out. Then `dtype` turns elements into bytes, and `scale` the result into the row's unit.
    """

    formula: str
    arguments: Mapping[str, str | tuple[str, ...]] = field(default_factory=dict)
    supplied: Mapping[str, Number | str] = field(default_factory=dict)
    argument_scale: int = 1  # for params given in thousand millions
    dtype: str | None = None
    scale: Fraction = Fraction(1)

    def given(self, inputs: Mapping[str, float]) -> dict[str, Number | str]:
        """Our arguments for a row's inputs."""
        taken = {name: _product(inputs, keys) for name, keys in self.arguments.items()}
        if "params" in taken:
            taken["params"] = _plain(taken["params"] * self.argument_scale)
        return {**taken, **self.supplied}

    def value(self, inputs: Mapping[str, float]) -> Number:
        """Our formula's value in the row's unit."""
        result = evaluate(self.formula, self.given(inputs))
        if self.dtype is not None and not isinstance(result, float):
            result = units.bytes(result, self.dtype)
        return result if self.scale == 1 else result * self.scale


@dataclass(frozen=True)
class Check:
    """One row beside our value."""

    row_id: str
    formula: str
    given: Mapping[str, Number | str]
    ours: Number
    expected: float
    unit: str
    source: str
    is_published: bool  # False: the row was derived or recomputed, not read in a paper
    agrees: bool  # within the row's tolerance
    printed: Decimal | None  # the figure as its source prints it
    rounds_to_print: bool | None
    reason: str  # why ours does not round to the printed figure, where it does not

    @property
    def holds(self) -> bool:
        """Agrees with the row, and rounds to the printed figure or says why not."""
        return self.agrees and (self.rounds_to_print is not False or bool(self.reason))


def check(row: Mapping[str, Any]) -> Check:
    """Our answer to a row. Raises ValueError for a row of a topic without formulas here."""
    if row["id"] not in ANSWERS:
        raise ValueError(f"id = {row['id']}: no formula answers for it")
    answer = ANSWERS[row["id"]]
    ours, printed = answer.value(row["inputs"]), _printed(row["note"])
    derived = any(word in row["source"] for word in ("Derived", "recomputed"))
    return Check(
        row_id=row["id"], formula=answer.formula, given=answer.given(row["inputs"]), ours=ours, expected=row["expected"],
        unit=row["unit"], source=row["source"], is_published=not derived,
        agrees=math.isclose(ours, row["expected"], rel_tol=row["rel_tol"]),
        printed=printed, rounds_to_print=None if printed is None else _rounds_to(ours, printed),
        reason=DIFFERS_FROM_PRINT.get(row["id"], ""),
    )


def _product(inputs: Mapping[str, float], keys: str | tuple[str, ...]) -> int | float:
    return _plain(math.prod(inputs[key] for key in ((keys,) if isinstance(keys, str) else keys)))


def _plain(value: float) -> int | float:
    """JSON writes some whole numbers as 3200000.0."""
    return int(value) if value == int(value) else value


def _printed(note: str) -> Decimal | None:
    found = re.search(r"Source prints (\d+(?:\.\d+)?)", note)
    return Decimal(found.group(1)) if found else None


def _rounds_to(ours: Number, printed: Decimal) -> bool:
    exact = Fraction(ours)
    value = Decimal(exact.numerator) / Decimal(exact.denominator)
    return value.quantize(printed, rounding=ROUND_HALF_UP) == printed


def _same(*names: str) -> dict[str, str]:
    return {name: name for name in names}


def _answers(answer: Answer, *row_ids: str) -> dict[str, Answer]:
    return dict.fromkeys(row_ids, answer)


_THOUSAND_MILLION = 10**9
_PARAMS_IN_TOY = ("L", "H", "H")
_LAYER: dict[str, str | tuple[str, ...]] = {"T": ("b", "s"), "H": "h", "t": "t"}
_M1 = {"m": 1}
_DATA = _same("P", "L", "H")
_TENSOR = _same("P", "L", "H", "T")

_SEED = {
    "seed-params": Answer("data_parallel.params", _same("L", "H")),
    **_answers(Answer("data_parallel.volume", _DATA), "seed-data-P4-per-gpu", "seed-data-P8-per-gpu", "seed-data-P1"),
    **_answers(Answer("data_parallel.total_volume", _DATA), "seed-data-P4-total", "seed-data-P8-total"),
    "seed-data-P4-bytes": Answer("data_parallel.volume", _DATA, dtype="fp32"),
    **_answers(Answer("data_parallel.padded_volume", _DATA), "seed-data-P3-padded", "seed-data-P64"),
    "seed-data-limit": Answer("data_parallel.limit", _same("L", "H")),
    "seed-consistent-megatron-data": Answer("data_parallel.pair_model_volume", _DATA),
    **_answers(Answer("tensor_parallel.taught_volume", _TENSOR), "seed-tensor-P4-lesson", "seed-tensor-P4-T8",
               "seed-tensor-P8-lesson-formula", "seed-tensor-P1", "seed-breakeven-check", "seed-equal-batch-tensor-B4"),
    "seed-tensor-P4-lesson-total": Answer("tensor_parallel.taught_total", _TENSOR),
    "seed-tensor-P4-nofirst": Answer("tensor_parallel.raw_input_volume", _TENSOR),
    "seed-tensor-P4-column": Answer("tensor_parallel.column_volume", _TENSOR),
    "seed-tensor-P4-row": Answer("tensor_parallel.row_volume", _TENSOR),
    "seed-tensor-P4-megatron-pair": Answer("tensor_parallel.megatron_volume", _TENSOR),
    "seed-tensor-P4-megatron-pair-nofirst": Answer("tensor_parallel.megatron_raw_input_volume", _TENSOR),
    "seed-tensor-P8-corrected": Answer("tensor_parallel.exact_volume", _TENSOR),
    "seed-tensor-P3-padded": Answer("tensor_parallel.padded_volume", _TENSOR),
    "seed-totals-ratio-data-tensor": Answer("tensor_parallel.data_over_tensor", _same("H", "T")),
    "seed-breakeven-tokens": Answer("tensor_parallel.break_even_tokens", _same("H")),
    **_answers(Answer("pipeline_parallel.exact_volume", _TENSOR, _M1), "seed-pipeline-total", "seed-pipeline-P-less-L",
               "seed-pipeline-P2-L8", "seed-pipeline-P-greater-L", "seed-pipeline-P1", "seed-pipeline-uneven-L6-P4",
               "seed-equal-batch-pipeline-B4-total"),
    "seed-pipeline-busiest-gpu": Answer("pipeline_parallel.busiest_gpu_volume", _TENSOR, _M1),
    "seed-pipeline-idle-P8": Answer("pipeline_parallel.idle_gpus", _same("P", "L")),
    "seed-pipeline-interleaved": Answer("pipeline_parallel.interleaved_volume", _same("P", "H", "T", "v"), _M1),
    "seed-zero3-P4": Answer("zero.zero3_volume", {"params": _PARAMS_IN_TOY, "P": "P"}),
    "seed-adam-state-P4-zero1": Answer("zero.resident_bytes", {"params": _PARAMS_IN_TOY, "P": "P"},
                                       {"zero_stage": 1, "weight_bytes": 4, "gradient_bytes": 4, "optimizer_bytes": 8}),
}
_RANKS = {"P": "n"}
_BUFFER = {"s": "S", "P": "P"}
_COLLECTIVES = {
    **_answers(Answer("collectives.busbw_all_reduce", _RANKS),
               "busbw-allreduce-n2", "busbw-allreduce-n4", "busbw-allreduce-n8"),
    **_answers(Answer("collectives.busbw_all_gather", _RANKS), "busbw-allgather-n4", "busbw-allgather-n8"),
    "busbw-reducescatter-n4": Answer("collectives.busbw_reduce_scatter", _RANKS),
    **_answers(Answer("collectives.busbw_all_to_all", _RANKS), "busbw-alltoall-n4", "busbw-alltoall-n8"),
    "busbw-broadcast-n8": Answer("collectives.busbw_broadcast", _RANKS),
    "busbw-allreduce-innetwork-n8": Answer("collectives.busbw_all_reduce_in_network", _RANKS),
    "ring-allgather-sent-per-rank-1GiB-P8": Answer("collectives.all_gather", _BUFFER),
    "ring-reducescatter-sent-per-rank-1GiB-P8": Answer("collectives.reduce_scatter", _BUFFER),
    "alltoall-sent-per-rank-1GiB-P8": Answer("collectives.all_to_all", _BUFFER),
    "broadcast-ring-total-1GiB-P8": Answer("collectives.broadcast_total", _BUFFER),
    **_answers(Answer("collectives.ring_all_reduce", _same("s", "P")), "ring-allreduce-P1", "ring-allreduce-uneven-mean-s32-P3",
               "ring-allreduce-uneven-mean-s32-P5", "ring-allreduce-uneven-mean-s32-P7"),
    **_answers(Answer("collectives.ring_all_reduce_total", _same("s", "P")), "ring-allreduce-uneven-total-s32-P3",
               "ring-allreduce-uneven-total-s32-P5", "ring-allreduce-uneven-total-s32-P7"),
    **_answers(Answer("collectives.ring_all_reduce_padded", _same("s", "P")), "ring-allreduce-padded-s32-P3",
               "ring-allreduce-padded-s32-P5", "ring-allreduce-padded-s32-P6", "ring-allreduce-padded-s32-P7",
               "ring-allreduce-padded-s32-P64"),
}
_TREE = {"P": "n", "nodes": "nodes", "base": "base", "hardware": "hw"}
_LATENCY = {
    "alphabeta-ring-allreduce-8-1MiB": Answer("latency.ring_all_reduce_seconds", _same("P", "n", "alpha", "B")),
    "alphabeta-doubletree-pipelined-8-1MiB": Answer("latency.double_tree_seconds", _same("P", "n", "alpha", "B")),
    "alphabeta-ring-vs-doubletree-crossover": Answer("latency.crossover_bytes", _same("P", "alpha", "B")),
    "nccl-steps-allreduce-n8": Answer("latency.ring_steps_all_reduce", _RANKS),
    "nccl-steps-allgather-n8": Answer("latency.ring_steps_all_gather", _RANKS),
    "nccl-tree-LL-latency-1node-8gpu-nvlink": Answer("latency.nccl_tree_microseconds", _TREE, {"network": 5.0}),
    "nccl-tree-LL-latency-16node-128gpu": Answer("latency.nccl_tree_microseconds", {**_TREE, "network": "net"}),
    "nccl-ring-LL-latency-16node-128gpu": Answer("latency.nccl_ring_microseconds",
                                                 {**_TREE, "overhead": "ovh", "network": "net"}),
}
_PSI = {"params": "Psi", "P": "N"}
_GB = Fraction(1, _THOUSAND_MILLION)
_ZERO = {
    "zero-comm-osgp-paper": Answer("zero.zero3_limit", {"params": "Psi"}),
    "zero-comm-bytes-ddp-7.5B-N64-fp16": Answer("zero.data_parallel_bytes", {**_PSI, "gradient_bytes": "g"},
                                                argument_scale=_THOUSAND_MILLION, scale=_GB),
    "zero-comm-bytes-stage2-7.5B-N64-fp16": Answer("zero.zero2_bytes", {**_PSI, "weight_bytes": "w", "gradient_bytes": "g"},
                                                   argument_scale=_THOUSAND_MILLION, scale=_GB),
    **_answers(Answer("zero.zero3_bytes", {**_PSI, "weight_bytes": "w", "gradient_bytes": "g"},
                      argument_scale=_THOUSAND_MILLION, scale=_GB),
               "zero-comm-bytes-stage3-7.5B-N64-fp16", "zero-comm-bytes-stage3-fp32grad"),
    "zero-comm-megatron-ckpt-per-block": Answer("tensor_parallel.transformer_layer_recompute_limit",
                                                {"T": ("b", "s"), "H": "h"}),
    "zero-comm-Pa-overhead": Answer("tensor_parallel.partitioned_activation_overhead"),
}
_TENSOR_LAYERS = {
    "tp-allreduces-per-layer": Answer("tensor_parallel.all_reduces_per_layer"),
    "tp-volume-gpt3-layer-bytes": Answer("tensor_parallel.transformer_layer_volume", _LAYER, dtype="bf16"),
    "tp-volume-full-recompute": Answer("tensor_parallel.transformer_layer_recompute_volume", _LAYER),
    "tp-sp-volume-gpt3-layer": Answer("tensor_parallel.sequence_parallel_layer_volume", _LAYER),
    "tp-sp-extra-backward-allgather": Answer("tensor_parallel.sequence_parallel_regather_volume", _LAYER),
    "tp-f-identity-first-layer-skip": Answer("tensor_parallel.all_reduces_raw_input", _same("L")),
}
_STEP = {"b": "mb", "A": "gas", "d": "dp"}
_BATCHES = {
    "bloom-gas": Answer("batch.num_micro_batches", {"batch": "GBS", "b": "MBS", "d": "DP"}),
    "bloom-rampup-samples": Answer("batch.rampup_samples_per_increment", supplied={"samples": 9_765_625, "increments": 127}),
    "bloom-rampup-steps-gbs16": Answer("batch.rampup_steps", supplied={"samples": 76_894, "batch": 16}),
    **_answers(Answer("batch.global_batch", _STEP), "neox-gbs", "ga-identity"),
    "neox-tokens": Answer("batch.tokens_per_step", {"batch": ("mb", "gas", "dp"), "sequence": "s"}, scale=Fraction(1, 10**6)),
    "gpt3-batch-seqs": Answer("batch.sequences_of_tokens", {"tokens": "tok", "sequence": "ctx"}),
    "ga-identity-world": Answer("batch.global_batch_of_world",
                                {"P": "N", "t": "tp", "c": "cp", "p": "pp", "b": "mb", "A": "gas"}),
    "ga-megatron-num-microbatches": Answer("batch.num_micro_batches", {"batch": "B", "b": "b", "d": "d"}),
    "ga-ddp-nosync": Answer("data_parallel.synced_once_volume", _PSI),
    "ga-ddp-sync-every": Answer("data_parallel.synced_every_micro_step_volume", {**_PSI, "A": "gas"}),
    "ga-zero2-per-microbatch-rs": Answer("zero.zero2_accumulated_volume", {**_PSI, "A": "gas"}),
    "ga-fsdp-full-comm": Answer("zero.zero3_accumulated_volume", {**_PSI, "A": "gas"}),
    "ga-loss-scaling": Answer("batch.micro_batch_weight", {"A": "gas", "d": "dp"}),
}
_MODEL = {"params": "M", "P": "W"}
_SHARDED = {
    "fsdp-full-sharding": Answer("zero.zero3_volume", _MODEL),
    **_answers(Answer("zero.hybrid_cross_host_volume", {**_MODEL, "F": "G"}), "fsdp-hybrid-exact", "fsdp-hybrid-exact-512"),
    "fsdp-linear4x3-padding": Answer("zero.padding_elements", {"P": "F"}, {"elements": 4 * 3 + 3}),
    "fsdp-linear4x3-shard": Answer("zero.shard_elements", {"P": "F"}, {"elements": 4 * 3 + 3}),
    "fsdp-mixed-state-bytes": Answer("zero.state_bytes_per_param",
                                     supplied={"weight_bytes": 4, "gradient_bytes": 4, "optimizer_bytes": 8}),
    "fsdp-175B-util-bs1": Answer("flops.utilisation", supplied={"achieved": 173, "peak": 312}, scale=Fraction(100)),
    "fsdp-175B-util-bs2": Answer("flops.utilisation", supplied={"achieved": 186, "peak": 312}, scale=Fraction(100)),
}
ANSWERS: dict[str, Answer] = {**_SEED, **_COLLECTIVES, **_LATENCY, **_ZERO, **_TENSOR_LAYERS, **_BATCHES, **_SHARDED}
