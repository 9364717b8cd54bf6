"""Cards of app.theory.loss."""

from __future__ import annotations

from app.theory import loss
from app.theory.cards.card import NO_SCOPE, card
from app.theory.cards.sources import DDP_DOCS, at, derived

_SETTING = "One weight at 1, four tokens whose targets are 0, and a squared error for each."
_SOURCES = (derived(at(DDP_DOCS, "note on summed losses")),)

CARDS = (
    card(
        loss.summed_gradient,
        "Gradient of a summed loss",
        r"g_{\text{sum}} = \sum_{i=i_1}^{i_2} 2 \, x_i^2",
        unit="",
        scope=NO_SCOPE,
        assumes=(_SETTING,),
        breaks="Away from a weight of 1 every term is multiplied by the weight.",
        sources=_SOURCES,
    ),
    card(
        loss.mean_gradient,
        "Gradient of a mean loss",
        r"g_{\text{mean}} = \frac{1}{i_2 - i_1 + 1} \sum_{i=i_1}^{i_2} 2 \, x_i^2",
        unit="",
        scope=NO_SCOPE,
        assumes=(_SETTING,),
        breaks="With other numbers of tokens on each replica the mean of the means is no longer the mean.",
        sources=_SOURCES,
    ),
)
