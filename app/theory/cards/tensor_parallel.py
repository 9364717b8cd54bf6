"""Cards of app.theory.tensor_parallel."""

from __future__ import annotations

from app.theory import tensor_parallel
from app.theory.cards.card import NO_SCOPE, PER_GPU, TOGETHER, card
from app.theory.cards.sources import MEGATRON, MEGATRON_SCALING, RING, SEQUENCE_PARALLEL, ZERO, at, derived

_TWICE = "Every layer combines its T x H activations twice: once forward, once backward."
_RING = "Each combination is a ring all-reduce."
_SPLITS = "P divides H, so that every GPU has columns of its own and equally many."
_RAW = "The model's input is data: nothing below the first layer wants a gradient."
_IDLE = (
    "With more GPUs than columns (P > H) the rest idle: only min(P, H) GPUs send. Unless 2 P divides T H, gloo's chunks "
    "are uneven; the total stays."
)
_PAIRING = at(MEGATRON, "section 3")
_OPERATORS = at(MEGATRON, "section 3 and figure 4")
_GROUP = "t divides H and the number of attention heads."
_LAYER = "One layer, one micro-batch, forward and backward; T is what papers write as b s."

_TOY = (
    card(
        tensor_parallel.active_gpus,
        "GPUs that hold a piece of each matrix",
        r"P' = \min (P, H)",
        unit="GPUs",
        scope=NO_SCOPE,
        assumes=("A weight is cut by whole columns or rows, and there are H of them.",),
        breaks="If P' does not divide H some GPUs get more columns than others; Megatron refuses such a split.",
        sources=(derived(_PAIRING),),
    ),
    card(
        tensor_parallel.boundary_volume,
        "Combining one layer's activations once",
        r"V_{\text{once}} = \frac{2\,(P-1)}{P} \, T \, H",
        unit="elements",
        scope=PER_GPU,
        assumes=(_RING, _SPLITS),
        breaks="If you gather the pieces instead of adding them up, an all-gather sends half of this.",
        sources=(RING, _OPERATORS),
    ),
    card(
        tensor_parallel.taught_volume,
        "Tensor parallel",
        r"V_{\text{tensor}} = 2 L \cdot \frac{2\,(P-1)}{P} \, T \, H",
        unit="elements",
        scope=PER_GPU,
        assumes=(_TWICE, _RING, _SPLITS, "The first layer's input gradient is combined too."),
        breaks=_IDLE + " Pair a column split with a row split, as Megatron does, and you need half.",
        sources=(derived(_OPERATORS), RING),
    ),
    card(
        tensor_parallel.taught_total,
        "Tensor parallel, all GPUs",
        r"V = 2 L \cdot 2\,(P-1)\, T \, H",
        unit="elements",
        scope=TOGETHER,
        assumes=(_TWICE, _RING, _SPLITS),
        breaks=_IDLE,
        sources=(derived(_OPERATORS), RING),
    ),
    card(
        tensor_parallel.exact_volume,
        "Tensor parallel on the GPUs that work",
        r"V = 2 L \cdot \frac{2\,(P'-1)}{P'} \, T \, H, \quad P' = \min (P, H)",
        unit="elements",
        scope="sent by each GPU",
        assumes=(_TWICE, _RING, "P' divides H.", "GPUs beyond P' hold nothing and send nothing."),
        breaks="gloo cuts the activations into 2 P' segments. Unless 2 P' divides T H, its GPUs differ and this is their mean: "
        "the defaults send 24, 16, 24 and 32.",
        sources=(derived(_OPERATORS), RING),
    ),
    card(
        tensor_parallel.exact_total,
        "Tensor parallel on the GPUs that work, together",
        r"V = 2 L \cdot 2\,(P'-1)\, T \, H, \quad P' = \min (P, H)",
        unit="elements",
        scope=TOGETHER,
        assumes=(_TWICE, _RING, "GPUs beyond P' hold nothing and send nothing."),
        breaks="Results that the idle GPUs also need would have to be sent to them on top.",
        sources=(derived(_OPERATORS), RING),
    ),
    card(
        tensor_parallel.padded_volume,
        "Tensor parallel with padded activations",
        r"V = 2 L \cdot 2\,(P-1) \left\lceil \frac{T \, H}{P} \right\rceil",
        unit="elements",
        scope=PER_GPU,
        assumes=(_TWICE, _RING, "Activations are filled up with zeros to P equal chunks."),
        breaks="gloo does not pad: its GPUs send different amounts, and less together.",
        sources=(derived(RING),),
    ),
    card(
        tensor_parallel.raw_input_volume,
        "Tensor parallel on raw input",
        r"V = (2 L - 1) \cdot \frac{2\,(P-1)}{P} \, T \, H",
        unit="elements",
        scope=PER_GPU,
        assumes=(_TWICE, _RING, _SPLITS, _RAW),
        breaks="With a trained embedding below, the first layer combines its input gradient as well: 2 L.",
        sources=(derived(_OPERATORS),),
    ),
    card(
        tensor_parallel.column_volume,
        "Every layer split by columns",
        r"V = L \, \frac{P-1}{P} \, T H + (L-1) \, \frac{2\,(P-1)}{P} \, T H",
        unit="elements",
        scope=PER_GPU,
        assumes=("Forward gathers each layer's output columns; backward sums the input gradient.", _SPLITS, _RAW),
        breaks="Gathering between layers is what a row split after a column split avoids.",
        sources=(derived(_OPERATORS), RING),
    ),
    card(
        tensor_parallel.row_volume,
        "Every layer split by rows",
        r"V = L \, \frac{2\,(P-1)}{P} \, T H + (L-1) \, \frac{P-1}{P} \, T H",
        unit="elements",
        scope=PER_GPU,
        assumes=("Forward sums each layer's partial outputs; backward gathers the input gradient.", _SPLITS, _RAW),
        breaks="Summing after every layer is what a column split before a row split avoids.",
        sources=(derived(_OPERATORS), RING),
    ),
    card(
        tensor_parallel.megatron_volume,
        "Tensor parallel in Megatron pairs",
        r"V = \frac{L}{2} \cdot 2 \cdot \frac{2\,(P-1)}{P} \, T \, H",
        unit="elements",
        scope=PER_GPU,
        assumes=(
            "Layers come in pairs, a column split and then a row split; L is even.",
            "What happens between the two works on each element alone.",
            _RING,
            _SPLITS,
        ),
        breaks="Anything between the two that mixes columns, a normalisation for one, needs the whole row first: one more "
        "combination.",
        sources=(_OPERATORS,),
    ),
    card(
        tensor_parallel.megatron_raw_input_volume,
        "Megatron pairs on raw input",
        r"V = (L - 1) \cdot \frac{2\,(P-1)}{P} \, T \, H",
        unit="elements",
        scope=PER_GPU,
        assumes=("Layers come in pairs; L is even.", _RING, _SPLITS, _RAW),
        breaks="With a trained embedding below, the first pair combines its input gradient as well: L.",
        sources=(derived(_OPERATORS),),
    ),
    card(
        tensor_parallel.break_even_tokens,
        "Tokens at which tensor sends as much as data",
        r"T^{*} = \frac{H}{2}",
        unit="tokens",
        scope=NO_SCOPE,
        assumes=(
            "Tensor parallel combines every layer twice; data parallel syncs once a step.",
            "Both run on the same P GPUs, P at most H.",
        ),
        breaks="Below it tensor parallel sends less, above it more. In Megatron pairs it is H, because they send half.",
        sources=(derived(RING),),
    ),
    card(
        tensor_parallel.megatron_break_even_tokens,
        "Tokens at which Megatron pairs send as much as data",
        r"T^{*} = H",
        unit="tokens",
        scope=NO_SCOPE,
        assumes=("L is even; data parallel syncs once a step.", "Both run on the same P GPUs, P at most H."),
        breaks="Combine every layer instead of every pair and it is H / 2.",
        sources=(derived(RING),),
    ),
    card(
        tensor_parallel.data_over_tensor,
        "Data-parallel over tensor-parallel volume",
        r"\frac{V_{\text{data}}}{V_{\text{tensor}}} = \frac{H}{2\,T}",
        unit="",
        scope=NO_SCOPE,
        assumes=(_TWICE, "Both run on the same P GPUs, 2 or more, and at most H."),
        breaks="T is what one replica sees. Data parallel works on P times as many tokens in the same step.",
        sources=(derived(RING),),
    ),
)

_TRANSFORMER = (
    card(
        tensor_parallel.all_reduces_per_layer,
        "All-reduces in a Transformer layer",
        r"k = 2 + 2",
        unit="all-reduces",
        scope=NO_SCOPE,
        assumes=("One after attention and one after the MLP, forward and backward.",),
        breaks="Full recomputation repeats the two of the forward pass.",
        sources=(at(MEGATRON, "figure 4"), at(MEGATRON_SCALING, "section 2.3")),
    ),
    card(
        tensor_parallel.all_reduces_with_recompute,
        "All-reduces in a Transformer layer with full recomputation",
        r"k = 2 + 2 + 2",
        unit="all-reduces",
        scope=NO_SCOPE,
        assumes=("The forward pass of the layer runs twice.",),
        breaks="Selective recomputation repeats only the inside of attention, where nothing is sent: 4.",
        sources=(at(ZERO, "section 8"),),
    ),
    card(
        tensor_parallel.all_reduces_raw_input,
        "All-reduces of a stack on raw input",
        r"k = 4 L - 1",
        unit="all-reduces",
        scope=NO_SCOPE,
        assumes=("L Transformer layers, no recomputation.", _RAW),
        breaks="With a trained embedding below it is 4 L.",
        sources=(derived(at(MEGATRON, "figure 4")),),
    ),
    card(
        tensor_parallel.transformer_layer_volume,
        "Tensor parallel, one Transformer layer",
        r"V = 8 \, T \, H \, \frac{t-1}{t}",
        unit="elements",
        scope=PER_GPU,
        assumes=(_LAYER, "Four ring all-reduces of T x H.", _GROUP),
        breaks="With full recomputation six: 12 instead of 8.",
        sources=(at(MEGATRON_SCALING, "section 3.2"),),
    ),
    card(
        tensor_parallel.transformer_layer_recompute_volume,
        "One Transformer layer with full recomputation",
        r"V = 12 \, T \, H \, \frac{t-1}{t}",
        unit="elements",
        scope=PER_GPU,
        assumes=(_LAYER, "Six ring all-reduces of T x H.", _GROUP),
        breaks="Without recomputation four: 8 instead of 12.",
        sources=(at(ZERO, "section 8, with the exact ring factor"),),
    ),
    card(
        tensor_parallel.transformer_layer_recompute_limit,
        "One Transformer layer with full recomputation, large groups",
        r"\lim_{t \to \infty} V = 12 \, T \, H",
        unit="elements",
        scope=PER_GPU,
        assumes=(_LAYER, "Six all-reduces; the ring factor is rounded up to 2."),
        breaks="On 8 GPUs it is a seventh too high. The paper leaves the batch size out of T.",
        sources=(at(ZERO, "section 8"),),
    ),
    card(
        tensor_parallel.partitioned_activation_overhead,
        "Extra traffic of partitioned activations",
        r"\frac{1}{12}",
        unit="share of tensor-parallel traffic",
        scope=NO_SCOPE,
        assumes=(
            "One all-gather of T x H a layer, before the recomputation.",
            "Full recomputation: 12 T H of traffic without it.",
        ),
        breaks="Without recomputation there is nothing to gather. The paper says below 10 %.",
        sources=(at(ZERO, "section 8"),),
    ),
    card(
        tensor_parallel.sequence_parallel_layer_volume,
        "One Transformer layer with sequence parallelism",
        r"V = (4 + 4) \, T \, H \, \frac{t-1}{t}",
        unit="elements",
        scope=PER_GPU,
        assumes=(_LAYER, "Four all-gathers and four reduce-scatters, as rings.", _GROUP),
        breaks="The same as without it. It saves memory, not traffic.",
        sources=(at(SEQUENCE_PARALLEL, "section 4.2.2"),),
    ),
    card(
        tensor_parallel.sequence_parallel_regather_volume,
        "Sequence parallelism, inputs gathered again in backward",
        r"V = (4 + 4 + 2) \, T \, H \, \frac{t-1}{t}",
        unit="elements",
        scope=PER_GPU,
        assumes=(_LAYER, "The input of each column-split matrix is kept cut and gathered again.", _GROUP),
        breaks="The paper hides these two gathers behind computation and does not count them; the wire does.",
        sources=(at(SEQUENCE_PARALLEL, "section 4.2.2"),),
    ),
)
CARDS = _TOY + _TRANSFORMER
