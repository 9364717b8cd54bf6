"""Cards of app.theory.collectives."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from app.theory import collectives
from app.theory.cards.card import NO_SCOPE, PER_GPU, TOGETHER, card
from app.theory.cards.sources import NCCL_TESTS, RING, at, derived
from app.theory.formula import Formula

_RING = "The collective runs as a ring: each GPU sends to one neighbour and receives from the other."
_EVEN = "The buffer is cut into $P$ equal chunks. Where it is not, this is the mean over GPUs."
_UNEVEN_BREAKS = (
    "Where $P$ does not divide $s$, chunks differ and so do GPUs; the total stays. gloo cuts into $2 P$ segments, so there "
    "it takes $2 P$ to divide $s$. A library that pads sends more."
)
_PADS = "The buffer is filled up with zeros to $P$ equal chunks, and the zeros travel too."
_PADS_BREAKS = "A library that allows uneven chunks sends no zeros: fewer bytes, spread unevenly over the GPUs."
_ANY_CUT = "Any cut of the buffer: what one GPU sends less, another sends more."


def _busbw(function: Callable[[int], Fraction], collective: str, buffer: str, latex: str, breaks: str) -> Formula:
    return card(
        function,
        f"busbw over algbw of {collective}",
        latex,
        unit="",
        scope=NO_SCOPE,
        assumes=(f"algbw is the full buffer ({buffer}) divided by the time.",),
        breaks=breaks,
        sources=(NCCL_TESTS,),
    )


_VOLUMES = (
    card(
        collectives.ring_factor,
        "Ring factor",
        r"f = \frac{2\,(P-1)}{P}",
        unit="copies of the buffer",
        scope=PER_GPU,
        assumes=(_RING, "A reduce-scatter and an all-gather follow each other, $P - 1$ steps each."),
        breaks="A tree sends the whole buffer up and down again: a factor of 2 for every inner GPU, however many there are.",
        sources=(RING, NCCL_TESTS),
    ),
    card(
        collectives.ring_all_reduce,
        "Ring all-reduce",
        r"V_{\text{ring}} = \frac{2\,(P-1)}{P} \, s",
        unit="elements",
        scope=PER_GPU,
        assumes=(_RING, _EVEN, "Sends only; each GPU receives as much."),
        breaks=_UNEVEN_BREAKS,
        sources=(RING, NCCL_TESTS),
    ),
    card(
        collectives.ring_all_reduce_total,
        "Ring all-reduce, all GPUs",
        r"V = 2\,(P-1)\, s",
        unit="elements",
        scope=TOGETHER,
        assumes=(_RING, _ANY_CUT),
        breaks="A buffer padded to equal chunks sends $P$ times the padded amount of one GPU.",
        sources=(RING,),
    ),
    card(
        collectives.ring_all_reduce_padded,
        "Ring all-reduce of padded chunks",
        r"V = 2\,(P-1) \left\lceil \frac{s}{P} \right\rceil",
        unit="elements",
        scope=PER_GPU,
        assumes=(_RING, _PADS),
        breaks=_PADS_BREAKS,
        sources=(derived(RING),),
    ),
    card(
        collectives.reduce_scatter,
        "Ring reduce-scatter",
        r"V = \frac{P-1}{P} \, s",
        unit="elements",
        scope=PER_GPU,
        assumes=(_RING, "$s$ is the full input of one GPU.", _EVEN),
        breaks="PyTorch’s gloo backend runs an all-reduce in its place: twice as much. Where $P$ does not divide $s$, GPUs "
        "differ; the total stays.",
        sources=(RING, NCCL_TESTS),
    ),
    card(
        collectives.reduce_scatter_total,
        "Ring reduce-scatter, all GPUs",
        r"V = (P-1)\, s",
        unit="elements",
        scope=TOGETHER,
        assumes=(_RING, "$s$ is the full input of one GPU.", _ANY_CUT),
        breaks="PyTorch’s gloo backend runs an all-reduce instead: $2 (P - 1) s$.",
        sources=(RING,),
    ),
    card(
        collectives.reduce_scatter_padded,
        "Ring reduce-scatter of padded chunks",
        r"V = (P-1) \left\lceil \frac{s}{P} \right\rceil",
        unit="elements",
        scope=PER_GPU,
        assumes=(_RING, _PADS),
        breaks=_PADS_BREAKS,
        sources=(derived(RING),),
    ),
    card(
        collectives.all_gather,
        "Ring all-gather",
        r"V = \frac{P-1}{P} \, s",
        unit="elements",
        scope=PER_GPU,
        assumes=(_RING, "$s$ is the gathered result, not one GPU’s share of it.", _EVEN),
        breaks="With $s$ read as one GPU’s share the answer is $P$ times too small. Where $P$ does not divide $s$, a library "
        "that wants equal shares fills them up with zeros and sends more.",
        sources=(RING, NCCL_TESTS),
    ),
    card(
        collectives.all_gather_total,
        "Ring all-gather, all GPUs",
        r"V = (P-1)\, s",
        unit="elements",
        scope=TOGETHER,
        assumes=("$s$ is the gathered result.", _ANY_CUT),
        breaks="Padded shares send $(P - 1) P$ times the padded share.",
        sources=(RING,),
    ),
    card(
        collectives.all_gather_padded,
        "Ring all-gather of padded chunks",
        r"V = (P-1) \left\lceil \frac{s}{P} \right\rceil",
        unit="elements",
        scope=PER_GPU,
        assumes=("$s$ is the gathered result before padding.", _PADS),
        breaks=_PADS_BREAKS,
        sources=(derived(RING),),
    ),
    card(
        collectives.all_to_all,
        "All-to-all",
        r"V = \frac{P-1}{P} \, s",
        unit="elements",
        scope=PER_GPU,
        assumes=(
            "Every GPU sends each block straight to its owner.",
            "$s$ is the send buffer of one GPU, cut in $P$ equal blocks.",
        ),
        breaks="Over a route with stops in between, a block counts once for each hop.",
        sources=(NCCL_TESTS,),
    ),
    card(
        collectives.all_to_all_total,
        "All-to-all, all GPUs",
        r"V = (P-1)\, s",
        unit="elements",
        scope=TOGETHER,
        assumes=("Every GPU sends each block straight to its owner.", "$s$ is the send buffer of one GPU."),
        breaks="Over a route with stops in between, a block counts once for each hop.",
        sources=(NCCL_TESTS,),
    ),
    card(
        collectives.broadcast_total,
        "Broadcast, all GPUs",
        r"V = (P-1)\, s",
        unit="elements",
        scope=TOGETHER,
        assumes=("Each of $P - 1$ GPUs receives the buffer once.", "The route is left open: chain, tree or star."),
        breaks="Who sends depends on the route. In a chain all but the last send once; in gloo’s tree GPU 0 sends "
        "$\\log_2 P$ times and half of the GPUs send nothing.",
        sources=(NCCL_TESTS,),
    ),
    card(
        collectives.send_recv,
        "Send and receive",
        r"V = s \quad (P > 1)",
        unit="elements",
        scope=TOGETHER,
        assumes=("Rank 0 sends one buffer to rank 1.",),
        breaks="On one GPU there is nobody to send to: 0.",
        sources=(NCCL_TESTS,),
    ),
    card(
        collectives.padded_length,
        "Padded length",
        r"s_{\text{padded}} = P \left\lceil \frac{s}{P} \right\rceil",
        unit="elements",
        scope=NO_SCOPE,
        assumes=("Every GPU’s chunk must be equally long.",),
        breaks="Padding never adds more than $P - 1$ elements, but that is much for a buffer of few elements.",
        sources=(derived(RING),),
    ),
)

_BUS_BANDWIDTH = (
    _busbw(
        collectives.busbw_all_reduce,
        "an all-reduce",
        "on each GPU",
        r"\frac{\text{busbw}}{\text{algbw}} = \frac{2\,(P-1)}{P}",
        "busbw is a rescaled algbw, not the speed of a wire: where the switch adds up, it can exceed the link.",
    ),
    _busbw(
        collectives.busbw_reduce_scatter,
        "a reduce-scatter",
        "the full input",
        r"\frac{\text{busbw}}{\text{algbw}} = \frac{P-1}{P}",
        "With the size of one output chunk instead, busbw comes out $P$ times too small.",
    ),
    _busbw(
        collectives.busbw_all_gather,
        "an all-gather",
        "the gathered result",
        r"\frac{\text{busbw}}{\text{algbw}} = \frac{P-1}{P}",
        "With the size of one GPU’s share instead, busbw comes out $P$ times too small.",
    ),
    _busbw(
        collectives.busbw_all_to_all,
        "an all-to-all",
        "one GPU’s send buffer",
        r"\frac{\text{busbw}}{\text{algbw}} = \frac{P-1}{P}",
        "Blocks of unequal size have no single factor.",
    ),
    _busbw(
        collectives.busbw_broadcast,
        "a broadcast",
        "the buffer of the root",
        r"\frac{\text{busbw}}{\text{algbw}} = \frac{P}{P} = 1",
        "A root that sends to several GPUs at once shares its link among them.",
    ),
    card(
        collectives.busbw_all_reduce_in_network,
        "busbw over algbw of an all-reduce inside the switch",
        r"\frac{\text{busbw}}{\text{algbw}} = \frac{P-1}{P+1}",
        unit="",
        scope=NO_SCOPE,
        assumes=(
            "The switch adds up (NVLS, SHARP), so each GPU sends its buffer once.",
            "algbw is the full buffer divided by the time.",
        ),
        breaks="The shipped benchmark divides by $2 (P - 1) / P$ all the same: a printed busbw above link speed says that the "
        "switch did the sum.",
        sources=(at(NCCL_TESTS, "Summary, in one revision"),),
    ),
)
CARDS = _VOLUMES + _BUS_BANDWIDTH
