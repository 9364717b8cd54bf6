"""The trained tensors of GPT-2 small, in the order in which the model registers them."""

from __future__ import annotations

from app.theory.buckets import Parameter

LAYERS, WIDTH, VOCABULARY, POSITIONS = 12, 768, 50_257, 1_024


def _norm(name: str) -> list[Parameter]:
    return [Parameter(f"{name}.weight", (WIDTH,)), Parameter(f"{name}.bias", (WIDTH,))]


def _projection(name: str, inside: int, outside: int) -> list[Parameter]:
    return [Parameter(f"{name}.weight", (inside, outside)), Parameter(f"{name}.bias", (outside,))]


def _block(name: str) -> list[Parameter]:
    return [*_norm(f"{name}.ln_1"), *_projection(f"{name}.attn.c_attn", WIDTH, 3 * WIDTH),
            *_projection(f"{name}.attn.c_proj", WIDTH, WIDTH), *_norm(f"{name}.ln_2"),
            *_projection(f"{name}.mlp.c_fc", WIDTH, 4 * WIDTH), *_projection(f"{name}.mlp.c_proj", 4 * WIDTH, WIDTH)]


def _gpt2() -> tuple[Parameter, ...]:
    """Radford et al. 2019; names and order as in transformers' GPT2LMHeadModel, whose output matrix is wte itself."""
    parameters = [Parameter("wte.weight", (VOCABULARY, WIDTH)), Parameter("wpe.weight", (POSITIONS, WIDTH))]
    for layer in range(LAYERS):
        parameters += _block(f"h.{layer}")
    return (*parameters, *_norm("ln_f"))


GPT2_SMALL = _gpt2()
