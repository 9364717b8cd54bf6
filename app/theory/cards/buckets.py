"""Cards of app.theory.buckets."""

from __future__ import annotations

from app.theory import buckets
from app.theory.cards.card import NO_SCOPE, card
from app.theory.cards.sources import DDP, DDP_BUCKETS, RESNET, at, derived

_RULE = "A bucket is closed by the parameter that takes it to its limit or beyond; a parameter is never split."
_ORDER = "Gradients get ready in the reverse of the order in which the model registers its parameters."

CARDS = (
    card(
        buckets.resnet18_bytes,
        "Gradients of ResNet-18",
        r"N = 4 \sum_i e_i",
        unit="bytes",
        scope=NO_SCOPE,
        assumes=("Gradients in fp32, 4 bytes each.",),
        breaks="Gradients in bf16 are half of that.",
        sources=(at(RESNET, "table 1"),),
    ),
    card(
        buckets.resnet18_num_buckets,
        "All-reduces for ResNet-18",
        r"N_{\text{buckets}} = \left| \text{buckets} \right|",
        unit="all-reduces",
        scope=NO_SCOPE,
        assumes=(_RULE, _ORDER, "The first limit is 1 MiB, as torch sets it unless you give a limit of your own."),
        breaks="Give torch a limit and it holds for the first bucket, too.",
        sources=(DDP_BUCKETS, at(DDP, "section 3.2.3")),
    ),
    card(
        buckets.resnet18_bucket_bytes,
        "One bucket of ResNet-18’s gradients",
        r"N_j = 4 \sum_{i \in \text{bucket } j} e_i",
        unit="bytes",
        scope=NO_SCOPE,
        assumes=(_RULE, _ORDER, "torch’s first limit is 1 MiB, unless you give one of your own, which holds for all buckets."),
        breaks="In the very first step, before torch has seen the order of gradients, the buckets are cut the other way round.",
        sources=(DDP_BUCKETS, derived(at(RESNET, "table 1"))),
    ),
)
