"""Cards of app.theory.units."""

from __future__ import annotations

from app.theory import units
from app.theory.cards.card import NO_SCOPE, card
from app.theory.cards.sources import DTYPES, SI_PREFIXES

CARDS = (
    card(
        units.bytes,
        "Bytes of a number of elements",
        r"\text{bytes} = e \cdot b_{\text{dtype}}",
        unit="bytes",
        scope=NO_SCOPE,
        assumes=("Every element has the same dtype.", "Only payload counts: no message headers."),
        breaks="On a wire each message adds a header. A run on gloo shows 48 bytes a message beside the payload.",
        sources=(DTYPES,),
    ),
    card(
        units.gigabytes,
        "Gigabytes (GB)",
        r"\text{GB} = \frac{N_{\text{bytes}}}{10^9}",
        unit="GB",
        scope=NO_SCOPE,
        assumes=("GB is the decimal unit.",),
        breaks="Read as GiB the same bytes make a number 7 % smaller, enough to run out of memory on paper only.",
        sources=(SI_PREFIXES,),
    ),
    card(
        units.gibibytes,
        "Gibibytes (GiB)",
        r"\text{GiB} = \frac{N_{\text{bytes}}}{2^{30}}",
        unit="GiB",
        scope=NO_SCOPE,
        assumes=("GiB is the binary unit, in which nvidia-smi and PyTorch report memory.",),
        breaks="Read as GB the same bytes make a number 7 % larger.",
        sources=(SI_PREFIXES,),
    ),
)
