"""Cards of app.theory.latency."""

from __future__ import annotations

from app.theory import latency
from app.theory.cards.card import NO_SCOPE, PER_GPU, TIME, card
from app.theory.cards.sources import ALPHA_BETA, NCCL_TESTS, NCCL_TUNING, NVLINK, RING, derived

_MODEL = "A message of $n$ bytes takes $\\alpha + n / B$, whatever else is on the way."
_MODEL_BREAKS = "Links that are shared, or messages too short to fill one, make $B$ smaller than the data sheet says."
_TUNER = "A message so small that bandwidth does not matter; the tuner’s extra term latencyInter is left out."

CARDS = (
    card(
        latency.ring_all_reduce_seconds,
        "Time of a ring all-reduce",
        r"t_{\text{ring}} = 2\,(P-1)\,\alpha + \frac{2\,(P-1)}{P} \, \frac{n}{B}",
        unit="seconds",
        scope=TIME,
        assumes=(_MODEL, "All GPUs send at the same time over links of their own.", "Adding up is free."),
        breaks=_MODEL_BREAKS,
        sources=(ALPHA_BETA,),
    ),
    card(
        latency.double_tree_seconds,
        "Time of a double-tree all-reduce",
        r"t_{\text{tree}} = 2 \log_2 (P)\, \alpha + \frac{2\,n}{B}",
        unit="seconds",
        scope=TIME,
        assumes=(
            _MODEL,
            "Two binary trees carry half of the buffer each, in pieces that overlap.",
            "$P$ is a power of two; between them the curve is smooth.",
        ),
        breaks="A single tree without overlap waits at every level for the whole buffer: $\\log_2 P$ times the second term.",
        sources=(derived(NCCL_TUNING), ALPHA_BETA),
    ),
    card(
        latency.single_tree_seconds,
        "Time of an all-reduce over one tree",
        r"t = 2 \lceil \log_2 P \rceil \left( \alpha + \frac{n}{B} \right)",
        unit="seconds",
        scope=TIME,
        assumes=(_MODEL, "The whole buffer climbs the tree level by level, and comes down again.", "Nothing overlaps."),
        breaks="Cut the buffer in pieces that follow one another and the second term loses its logarithm.",
        sources=(derived(ALPHA_BETA),),
    ),
    card(
        latency.algbw,
        "algbw: buffer over time",
        r"\text{algbw} = \frac{n}{t_{\text{call}}}",
        unit="bytes per second",
        scope=NO_SCOPE,
        assumes=("$n$ is the full buffer, the time that of one call.",),
        breaks="It falls as $P$ grows although no link got slower, because each GPU sends $2 (P - 1) / P$ times $n$.",
        sources=(NCCL_TESTS,),
    ),
    card(
        latency.busbw,
        "busbw: algbw rescaled",
        r"\text{busbw} = \frac{2\,(P-1)}{P} \cdot \frac{n}{t_{\text{call}}}",
        unit="bytes per second",
        scope=PER_GPU,
        assumes=("The all-reduce is a ring, so each GPU sends $2 (P - 1) / P$ times the buffer.",),
        breaks="Nothing was measured on a wire: where a tree or the switch does the sum, no link carries it.",
        sources=(NCCL_TESTS,),
    ),
    card(
        latency.one_way_bandwidth,
        "Bandwidth in one direction",
        r"B = \frac{B_{\leftrightarrow}}{2}",
        unit="bytes per second",
        scope=NO_SCOPE,
        assumes=("The data sheet adds up what a link sends and what it receives.",),
        breaks="Ethernet and InfiniBand are sold by one direction: halve those and you expect half of what you get.",
        sources=(NVLINK,),
    ),
    card(
        latency.crossover_bytes,
        "Size above which the ring wins",
        r"n^{*} = \alpha \, B \, P \, (P - 1 - \log_2 P)",
        unit="bytes",
        scope=NO_SCOPE,
        assumes=(_MODEL, "Ring and double tree as on their cards."),
        breaks="Real libraries change protocol and number of channels with size: their crossover is tuned, not computed.",
        sources=(derived(ALPHA_BETA),),
    ),
    card(
        latency.ring_steps_all_reduce,
        "Steps of a ring all-reduce",
        r"k = 2\,(P-1)",
        unit="steps",
        scope=NO_SCOPE,
        assumes=("One chunk a step to the right-hand neighbour.",),
        breaks="A buffer larger than a library’s pipeline slot goes round in several laps.",
        sources=(NCCL_TUNING, RING),
    ),
    card(
        latency.ring_steps_all_gather,
        "Steps of a ring all-gather or reduce-scatter",
        r"k = P-1",
        unit="steps",
        scope=NO_SCOPE,
        assumes=("One chunk a step to the right-hand neighbour.",),
        breaks="A buffer larger than a library’s pipeline slot goes round in several laps.",
        sources=(NCCL_TUNING, RING),
    ),
    card(
        latency.nccl_tree_microseconds,
        "Latency NCCL expects of a tree all-reduce",
        r"t = t_0 + 2 \left( \left( \frac{P}{N} - 1 \right) t_{\text{hw}} + \log_2 (N)\, t_{\text{net}} \right)",
        unit="microseconds",
        scope=TIME,
        assumes=(_TUNER, "Inside a node the GPUs form a chain, between nodes a binary tree."),
        breaks="The constants belong to one NCCL version, one protocol and one kind of link; take them from the file you run.",
        sources=(NCCL_TUNING,),
    ),
    card(
        latency.nccl_ring_microseconds,
        "Latency NCCL expects of a ring all-reduce",
        r"t = t_0 + \left( 2\,(P-1) - 2N \right) \max (t_{\text{hw}}, t_{\text{cpu}}) + 2 N \, t_{\text{net}}",
        unit="microseconds",
        scope=TIME,
        assumes=(_TUNER, "At least two nodes; $2 N$ of the $2 (P - 1)$ steps cross between nodes."),
        breaks="The constants belong to one NCCL version, one protocol and one kind of link; take them from the file you run.",
        sources=(NCCL_TUNING,),
    ),
)
