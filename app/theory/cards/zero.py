"""Cards of app.theory.zero."""

from __future__ import annotations

from app.theory import zero
from app.theory.cards.card import HELD, NO_SCOPE, PER_GPU, card
from app.theory.cards.sources import FSDP, FULLY_SHARD, RING, ZERO, at, derived

_RING = "Gathers and reductions run as rings; $P$ divides every buffer, else this is the mean over GPUs."
_ONE_MICRO_STEP = "One micro-step an optimizer step."
_GLOO = "gloo runs an all-reduce in place of the reduce-scatter: one more $(P - 1) / P$ of the model."
_STAGE_12 = at(ZERO, "section 7.2.1")
_STAGE_3 = at(ZERO, "section 7.2.2")

_VOLUMES = (
    card(
        zero.zero1_volume,
        "ZeRO stage 1",
        r"V = \frac{2\,(P-1)}{P} \, \Psi",
        unit="elements",
        scope=PER_GPU,
        assumes=("A reduce-scatter of gradients, then an all-gather of new weights.", _RING),
        breaks="An implementation that all-reduces gradients and broadcasts weights, as torch’s ZeroRedundancyOptimizer, sends "
        "half as much again. " + _GLOO,
        sources=(_STAGE_12,),
    ),
    card(
        zero.zero2_volume,
        "ZeRO stage 2",
        r"V = \frac{2\,(P-1)}{P} \, \Psi",
        unit="elements",
        scope=PER_GPU,
        assumes=(_ONE_MICRO_STEP, _RING),
        breaks="With accumulation every micro-step reduces its gradient: $A + 1$ instead of 2. " + _GLOO,
        sources=(_STAGE_12,),
    ),
    card(
        zero.zero2_accumulated_volume,
        "ZeRO stage 2 with accumulation",
        r"V = (A+1) \, \frac{P-1}{P} \, \Psi",
        unit="elements",
        scope=PER_GPU,
        assumes=(
            "Each micro-step reduce-scatters, so that only the shard is kept.",
            "One all-gather of new weights an optimizer step.",
            _RING,
        ),
        breaks="Keep the whole gradient until the last micro-step, and it is 2 again, for the memory of stage 1.",
        sources=(derived(_STAGE_12),),
    ),
    card(
        zero.zero3_volume,
        "ZeRO stage 3, FSDP full shard",
        r"V = \frac{3\,(P-1)}{P} \, \Psi",
        unit="elements",
        scope=PER_GPU,
        assumes=(
            "Weights are gathered for the forward pass and again for the backward pass.",
            "Gradients are reduce-scattered once.",
            _ONE_MICRO_STEP,
            _RING,
        ),
        breaks="FSDP keeps its root unit gathered and saves that part of one gather. " + _GLOO,
        sources=(_STAGE_3, at(FSDP, "section 3.2.2")),
    ),
    card(
        zero.zero3_accumulated_volume,
        "ZeRO stage 3 with accumulation",
        r"V = A \, \frac{3\,(P-1)}{P} \, \Psi",
        unit="elements",
        scope=PER_GPU,
        assumes=("Each of $A$ micro-steps gathers twice and reduces once.", _RING),
        breaks="Accumulate the whole gradient without communication, and only the gathers repeat, for more memory.",
        sources=(at(FSDP, "section 3.3.4"),),
    ),
    card(
        zero.zero3_limit,
        "ZeRO stage 3, many GPUs",
        r"\lim_{P \to \infty} V = 3 \, \Psi",
        unit="elements",
        scope=PER_GPU,
        assumes=("The ring factor is rounded up to 1 a pass.", _ONE_MICRO_STEP),
        breaks="On 8 GPUs it is a seventh too high.",
        sources=(_STAGE_3,),
    ),
    card(
        zero.zero3_kept_gathered_volume,
        "Sharded weights kept gathered until backward",
        r"V = \frac{2\,(P-1)}{P} \, \Psi",
        unit="elements",
        scope=PER_GPU,
        assumes=("One all-gather serves forward and backward (no reshard after forward).", _RING),
        breaks="The whole model is in memory between forward and backward. " + _GLOO,
        sources=(FULLY_SHARD,),
    ),
    card(
        zero.data_parallel_bytes,
        "Bytes of plain data parallel",
        r"V = \frac{2\,(P-1)}{P} \, \Psi \, g",
        unit="bytes",
        scope=PER_GPU,
        assumes=("One ring all-reduce of the gradient a step.",),
        breaks="Gradients reduced in fp32 beside bf16 weights cost twice the bytes.",
        sources=(at(ZERO, "section 7.1"), RING),
    ),
    card(
        zero.zero2_bytes,
        "Bytes of ZeRO stage 1 or 2",
        r"V = \frac{P-1}{P} \, \Psi \, (g + w)",
        unit="bytes",
        scope=PER_GPU,
        assumes=(_ONE_MICRO_STEP, _RING),
        breaks="Equal to plain data parallel only if weights and gradients have the same dtype.",
        sources=(derived(_STAGE_12),),
    ),
    card(
        zero.zero3_bytes,
        "Bytes of ZeRO stage 3",
        r"V = \frac{P-1}{P} \, \Psi \, (2 w + g)",
        unit="bytes",
        scope=PER_GPU,
        assumes=(_ONE_MICRO_STEP, _RING),
        breaks="The ratio to data parallel is 1.5 only if weights and gradients have the same dtype.",
        sources=(derived(_STAGE_3),),
    ),
    card(
        zero.hybrid_cross_host_volume,
        "Hybrid sharding, between hosts",
        r"V = \frac{2\,(R-1)}{R} \, \frac{\Psi}{F}, \quad R = \frac{P}{F}",
        unit="elements",
        scope="sent by each GPU",
        assumes=(
            "$F$ GPUs of one host share a copy; $R$ hosts.",
            "Each GPU all-reduces its gradient shard with the other hosts, as a ring.",
        ),
        breaks="The paper prints $2 M (W - 1) / (G W)$, up to twice as much for few hosts; the two agree as hosts grow many.",
        sources=(derived(at(FSDP, "section 3.2.2")),),
    ),
)

_MEMORY = (
    card(
        zero.shard_elements,
        "One GPU’s shard",
        r"\left\lceil \frac{e}{P} \right\rceil",
        unit="elements",
        scope=HELD,
        assumes=("One flat buffer, cut in $P$ equal shards.",),
        breaks="FSDP2 cuts each parameter by rows instead, and pads each.",
        sources=(at(FSDP, "section 3.2.1"),),
    ),
    card(
        zero.padding_elements,
        "Padding of a flat buffer",
        r"P \left\lceil \frac{e}{P} \right\rceil - e",
        unit="elements",
        scope=NO_SCOPE,
        assumes=("One flat buffer, cut in $P$ equal shards.",),
        breaks="Never more than $P - 1$ for a buffer; many small buffers pad many times.",
        sources=(at(FSDP, "section 3.2.1 and figure 3"),),
    ),
    card(
        zero.fsdp2_padded_layer,
        "FSDP2’s buffer for one square layer",
        r"\left\lceil \frac{H}{P} \right\rceil P \, H",
        unit="elements",
        scope=NO_SCOPE,
        assumes=("A weight of $H × H$, cut by rows over $P$ GPUs.",),
        breaks="4 rows on 8 GPUs travel as 8 rows: twice the weight.",
        sources=(derived(FULLY_SHARD),),
    ),
    card(
        zero.state_bytes_per_param,
        "Bytes of training state a parameter",
        r"w + g + o",
        unit="bytes per parameter",
        scope=NO_SCOPE,
        assumes=("Weights, gradients and optimizer state; nothing else.",),
        breaks="12, 16, 18 or 20 with Adam, depending on which copies are kept in fp32: list the tensors.",
        sources=(at(ZERO, "section 3.1"),),
    ),
    card(
        zero.resident_bytes,
        "Training state on each GPU",
        r"M = \Psi \left( \frac{w}{P^{[z \ge 3]}} + \frac{g}{P^{[z \ge 2]}} + \frac{o}{P^{[z \ge 1]}} \right)",
        unit="bytes",
        scope=HELD,
        assumes=("$P$ divides the parameters.", "$[z \\ge 3]$ is 1 where the stage cuts that part, else 0."),
        breaks="Activations, communication buffers and the allocator’s cache come on top, and none of them shrinks with $P$.",
        sources=(at(ZERO, "section 5 and figure 1"),),
    ),
)
CARDS = _VOLUMES + _MEMORY
