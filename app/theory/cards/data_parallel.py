"""Cards of app.theory.data_parallel."""

from __future__ import annotations

from app.theory import data_parallel
from app.theory.cards.card import NO_SCOPE, PER_GPU, TOGETHER, card
from app.theory.cards.sources import DDP, DDP_NO_SYNC, LINEAR, RING, at, derived

_GRADIENT = at(DDP, "section 3.2, gradient reduction")
_ONE_SYNC = "One all-reduce of the whole gradient a step, as a ring."
_TOY = "The model is $L$ square layers without bias; every parameter is trained."
_EVEN = "The gradient is cut into $P$ equal chunks. Where it is not, this is the mean over GPUs."

CARDS = (
    card(
        data_parallel.params,
        "Parameters of the model",
        r"\Psi = L \, H^2",
        unit="parameters",
        scope=NO_SCOPE,
        assumes=(_TOY,),
        breaks="Biases add $H$ a layer. A Transformer layer has about $12 H^2$ parameters.",
        sources=(derived(LINEAR),),
    ),
    card(
        data_parallel.volume,
        "Data parallel",
        r"V_{\text{data}} = \frac{2\,(P-1)}{P} \, L \, H^2",
        unit="elements",
        scope=PER_GPU,
        assumes=(_ONE_SYNC, _TOY, _EVEN),
        breaks="If every micro-step of an accumulated batch syncs, multiply by the micro-steps. If the gradient cannot be cut "
        "equally, some GPUs send more than others and the total stays.",
        sources=(RING, _GRADIENT),
    ),
    card(
        data_parallel.total_volume,
        "Data parallel, all GPUs",
        r"V = 2\,(P-1)\, L \, H^2",
        unit="elements",
        scope=TOGETHER,
        assumes=(_ONE_SYNC, _TOY, "Any cut of the gradient."),
        breaks="If every micro-step of an accumulated batch syncs, multiply by the micro-steps.",
        sources=(RING, _GRADIENT),
    ),
    card(
        data_parallel.padded_volume,
        "Data parallel with a padded gradient",
        r"V = 2\,(P-1) \left\lceil \frac{L \, H^2}{P} \right\rceil",
        unit="elements",
        scope=PER_GPU,
        assumes=(_ONE_SYNC, _TOY, "The gradient is filled up with zeros to $P$ equal chunks."),
        breaks="gloo and DDP do not pad: there the GPUs send different amounts instead.",
        sources=(derived(RING),),
    ),
    card(
        data_parallel.limit,
        "Data parallel, many GPUs",
        r"\lim_{P \to \infty} V_{\text{data}} = 2 \, L \, H^2",
        unit="elements",
        scope=PER_GPU,
        assumes=(_ONE_SYNC, _TOY),
        breaks="No number of GPUs reaches it: 4 GPUs send 75 % of it, 64 GPUs 98 %.",
        sources=(RING,),
    ),
    card(
        data_parallel.pair_model_volume,
        "Data parallel, two matrices a layer",
        r"V = \frac{2\,(P-1)}{P} \, 2 \, L \, H^2",
        unit="elements",
        scope=PER_GPU,
        assumes=(_ONE_SYNC, "Each of the $L$ layers is a pair of $H × H$ weights.", _EVEN),
        breaks="With one matrix a layer it is half of that.",
        sources=(RING, _GRADIENT),
    ),
    card(
        data_parallel.synced_once_volume,
        "Accumulation with one sync",
        r"V = \frac{2\,(P-1)}{P} \, \Psi",
        unit="elements",
        scope=PER_GPU,
        assumes=("Gradients add up locally (no_sync), and the last micro-step all-reduces.", _EVEN),
        breaks="Forget no_sync and every micro-step all-reduces: the same gradient for $A$ times the traffic.",
        sources=(DDP_NO_SYNC, at(DDP, "section 3.2.4, gradient accumulation")),
    ),
    card(
        data_parallel.synced_every_micro_step_volume,
        "Accumulation with a sync in every micro-step",
        r"V = A \, \frac{2\,(P-1)}{P} \, \Psi",
        unit="elements",
        scope=PER_GPU,
        assumes=("Each of $A$ micro-steps all-reduces its gradient.", _EVEN),
        breaks="Under no_sync $A$ drops out.",
        sources=(DDP_NO_SYNC, at(DDP, "section 3.2.4, gradient accumulation")),
    ),
)
