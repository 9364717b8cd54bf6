"""The three strategies as figures name and colour them."""

from __future__ import annotations

from dataclasses import dataclass

from app.figures.inputs import Choice, Option


@dataclass(frozen=True)
class Strategy:
    """`name` is the concept's word in every room; `axis` chooses its hue and mark."""

    name: str
    axis: str
    title: str
    adjective: str


DATA = Strategy("data_parallel", "data", "Data parallel", "data-parallel")
TENSOR = Strategy("tensor_parallel", "tensor", "Tensor parallel", "tensor-parallel")
PIPELINE = Strategy("pipeline_parallel", "pipeline", "Pipeline parallel", "pipeline-parallel")
STRATEGIES = (DATA, TENSOR, PIPELINE)

STRATEGY_CHOICE = Choice("strategy", "Strategy", tuple(Option(strategy.name, strategy.title) for strategy in STRATEGIES))
