"""Pipeline parallel by torch.distributed.pipelining: the same stages and hand-overs, scheduled by the library.

Split:       the layers, into S = min(P, L) contiguous stages, one a rank (the others idle); the batch, into m micro-batches.
Replicated:  nothing; the first stage reads the inputs, the last one the targets.
Sent:        as by hand; the very first step also exchanges the shapes of what will cross each boundary.
Predicted:   2*m*T*H*(S-1) elements sent by all GPUs together (`pipeline_parallel.exact_volume`), whatever the schedule.
"""

from __future__ import annotations

from torch import Tensor
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe

from kernels import model, schedule
from kernels.comm import Comm
from kernels.shards import layer
from kernels.spec import pipeline_stages
from kernels.strategies.base import Context, Strategy, Trained

SCHEDULES = {"gpipe": ScheduleGPipe, "1f1b": Schedule1F1B}


class TorchPipeline(Trained):
    """This rank's PipelineStage under one of the library's schedules."""

    def __init__(self, context: Context, comm: Comm | None) -> None:
        experiment = context.experiment
        super().__init__(context, num_tokens=experiment.m * experiment.T)
        if comm is None:
            self.train([])
            return
        mine = schedule.stage_layers(experiment.L, comm.size)[comm.rank]
        whole = context.initial_weights()
        layers = model.stack([whole[index] for index in mine])
        stage = PipelineStage(layers, comm.rank, comm.size, context.mesh.device, group=comm.group)
        # The loss is divided by the global batch already: scaling gradients by 1/m would divide twice.
        self.schedule = SCHEDULES[str(experiment.option("schedule"))](stage, experiment.m, loss_fn=self.loss, scale_grads=False)
        self.given = (self.batch.input_TH,) if stage.is_first else ()
        self.target_TH = self.batch.target_TH if stage.is_last else None
        self.train([(weight, layer(index)) for index, weight in zip(mine, layers.parameters(), strict=True)])

    def loss(self, output_TH: Tensor, target_TH: Tensor) -> Tensor:
        return model.squared_error(output_TH, target_TH, self.num_tokens)

    def forward_backward(self) -> None:
        with self.context.timeline.interval("schedule"):
            self.schedule.step(*self.given, target=self.target_TH, return_outputs=False)


def build(context: Context) -> Strategy:
    num_stages = pipeline_stages(context.mesh.world_size, context.experiment.L)
    return TorchPipeline(context, context.new_comm(context.mesh.first(num_stages)))
