"""Cards of app.theory.pipeline_parallel."""

from __future__ import annotations

from app.theory import pipeline_parallel
from app.theory.cards.card import NO_SCOPE, PER_GPU, TOGETHER, card
from app.theory.cards.sources import GPIPE, MEGATRON_SCALING, at, derived

_HANDOVER = "Each boundary carries $T × H$ activations forward and as many gradients back, for every micro-batch."
_VOLUME = at(MEGATRON_SCALING, "section 3.2")
_PARTITION = at(GPIPE, "section 2.1")

CARDS = (
    card(
        pipeline_parallel.stages,
        "Pipeline stages",
        r"S = \min (P, L)",
        unit="stages",
        scope=NO_SCOPE,
        assumes=("A stage has at least one whole layer.",),
        breaks="Where $S$ does not divide $L$ some stages have a layer more, and the others wait for them.",
        sources=(_PARTITION,),
    ),
    card(
        pipeline_parallel.idle_gpus,
        "GPUs without a stage",
        r"P_{\text{idle}} = \max (P - L, 0)",
        unit="GPUs",
        scope=NO_SCOPE,
        assumes=("A layer is not split.",),
        breaks="Split the layers too (tensor parallel) or repeat the pipeline (data parallel), and the spare GPUs have work.",
        sources=(derived(_PARTITION),),
    ),
    card(
        pipeline_parallel.boundary_volume,
        "One boundary, one direction",
        r"V_{\text{hop}} = m \, T \, H",
        unit="elements",
        scope=PER_GPU,
        assumes=("One tensor of $T × H$ for each micro-batch.",),
        breaks="A cut inside a layer, or a skip connection across it, hands over more than one tensor.",
        sources=(_VOLUME,),
    ),
    card(
        pipeline_parallel.taught_volume,
        "Pipeline parallel",
        r"V_{\text{pipe}} = 2 \, m \, T \, H \, (L - 1)",
        unit="elements",
        scope=TOGETHER,
        assumes=(_HANDOVER, "One layer on each GPU: $P$ is at least $L$."),
        breaks="With fewer GPUs than layers most boundaries lie inside a GPU and cost nothing: count stages, not layers.",
        sources=(derived(_VOLUME),),
    ),
    card(
        pipeline_parallel.exact_volume,
        "Pipeline parallel as it runs",
        r"V = 2 \, m \, T \, H \, (S - 1), \quad S = \min (P, L)",
        unit="elements",
        scope=TOGETHER,
        assumes=(_HANDOVER, "Each stage is a run of neighbouring layers on one GPU."),
        breaks="Several chunks of layers on each GPU (interleaving) have more boundaries: $P v - 1$ instead of $S - 1$.",
        sources=(derived(_VOLUME),),
    ),
    card(
        pipeline_parallel.busiest_gpu_volume,
        "What the busiest pipeline GPU sends",
        r"V_{\max} = \min (S - 1,\, 2) \cdot m \, T \, H",
        unit="elements",
        scope=PER_GPU,
        assumes=(_HANDOVER, "Each stage is a run of neighbouring layers on one GPU."),
        breaks="The first stage has only activations to send, the last only gradients: with two stages nobody sends both.",
        sources=(derived(_VOLUME),),
    ),
    card(
        pipeline_parallel.interleaved_volume,
        "Interleaved pipeline",
        r"V = 2 \, m \, T \, H \, (P v - 1)",
        unit="elements",
        scope=TOGETHER,
        assumes=(_HANDOVER, "$v$ chunks of layers on each GPU, dealt out in turn; $L$ is at least $P v$.", "$P$ is 2 or more."),
        breaks="$v = 1$ is the plain pipeline. The bubble shrinks by $v$, the hand-overs grow by about $v$.",
        sources=(at(MEGATRON_SCALING, "section 2.2.2"),),
    ),
)
