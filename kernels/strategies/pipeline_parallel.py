"""Pipeline parallel by hand: one loop carries out a schedule, GPipe's or 1F1B's.

Split:       the layers, into S = min(P, L) contiguous stages, one a rank (the others idle); the batch, into m micro-batches.
Replicated:  nothing; the first stage reads the inputs, the last one the targets.
Sent:        each micro-batch's T x H activations to the next stage, and as large a gradient back; both as soon as they exist.
Predicted:   2*m*T*H*(S-1) elements sent by all GPUs together (`pipeline_parallel.exact_volume`), whatever the schedule.
"""

from __future__ import annotations

import torch
from torch import Tensor

from kernels import model, schedule
from kernels.comm import Comm
from kernels.shards import layer
from kernels.spec import pipeline_stages
from kernels.strategies.base import Context, Strategy, Trained

# Shapes: T tokens of one micro-batch, H width. What crosses a boundary is T x H in both directions, so no shape is ever sent.


class PipelineParallel(Trained):
    """This rank's stage and its row of the schedule."""

    def __init__(self, context: Context, rows: schedule.Schedule, comm: Comm | None) -> None:
        experiment = context.experiment
        super().__init__(context, num_tokens=experiment.m * experiment.T)
        if comm is None:
            self.train([])
            return
        self.comm = comm
        self.row = rows[comm.rank]
        self.is_first, self.is_last = comm.rank == 0, comm.rank == comm.size - 1
        mine = schedule.stage_layers(experiment.L, comm.size)[comm.rank]
        whole = context.initial_weights()
        self.layers = model.stack([whole[index] for index in mine])
        self.train([(weight, layer(index)) for index, weight in zip(mine, self.layers.parameters(), strict=True)])
        self.inputs: dict[int, Tensor] = {}  # of micro-batches whose backward is still to come
        self.outputs: dict[int, Tensor] = {}  # the same; on the last stage their losses
        self.sends: list[tuple[torch.distributed.Work, Tensor]] = []  # under way, with the tensor that must live until then

    def forward_backward(self) -> None:
        """Carry out the row in order; wait for this rank's own sends only at the end.

        In 1F1B two neighbours send to each other at the same moment, one an activation and the other a gradient: if each
        waited there until the other had taken it, both would wait for ever.

        NCCL carries both ways between two ranks in the order of the calls. By reading, not by running: that holds too, for a
        message of these is 32 KiB at most and fits into the 4 MiB that NCCL keeps for a neighbour, so that no send waits there.
        """
        for action in self.row:
            if action.kind == "F":
                self.forward(action.micro_batch)
            else:
                self.backward(action.micro_batch)
        for work, _ in self.sends:
            work.wait()
        self.sends.clear()

    def forward(self, micro_batch: int) -> None:
        experiment = self.context.experiment
        tokens = self.batch.part(first=micro_batch * experiment.T, count=experiment.T)
        input_TH = tokens.input_TH if self.is_first else self.receive(self.comm.rank - 1).requires_grad_()
        with self.context.timeline.interval(f"F{micro_batch}"):
            output = self.layers(input_TH)
            if self.is_last:
                output = model.squared_error(output, tokens.target_TH, self.num_tokens)
        self.inputs[micro_batch], self.outputs[micro_batch] = input_TH, output
        if not self.is_last:
            self.begin_send(output.detach(), self.comm.rank + 1)

    def backward(self, micro_batch: int) -> None:
        gradient_TH = None if self.is_last else self.receive(self.comm.rank + 1)
        input_TH, output = self.inputs.pop(micro_batch), self.outputs.pop(micro_batch)
        with self.context.timeline.interval(f"B{micro_batch}"):
            output.backward(gradient_TH)
        if input_TH.grad is not None:  # None on the first stage, whose inputs are data
            self.begin_send(input_TH.grad, self.comm.rank - 1)

    def receive(self, source: int) -> Tensor:
        experiment = self.context.experiment
        boundary_TH = torch.empty(experiment.T, experiment.H, dtype=self.context.dtype, device=self.context.mesh.device)
        with self.context.timeline.interval("wait"):
            self.comm.receive(boundary_TH, source)
        return boundary_TH

    def begin_send(self, boundary_TH: Tensor, to: int) -> None:
        self.sends.append((self.comm.isend(boundary_TH, to), boundary_TH))


def build_gpipe(context: Context) -> Strategy:
    return _build(context, "gpipe")


def build_1f1b(context: Context) -> Strategy:
    return _build(context, "1f1b")


def _build(context: Context, name: str) -> Strategy:
    num_stages = pipeline_stages(context.mesh.world_size, context.experiment.L)
    rows = schedule.PIPELINE_SCHEDULES[name](num_stages, context.experiment.m)
    return PipelineParallel(context, rows, context.new_comm(context.mesh.first(num_stages)))
