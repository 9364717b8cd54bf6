"""Templates and their dataclasses name the same variables; nothing a template uses is undefined."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import jinja2
import pytest
from fastapi import FastAPI
from jinja2 import meta

from app.web import figures
from app.web.contexts import Context
from app.web.render import TEMPLATE_DIR

SHELL = {"shell"}
GLOBALS = {"static", "range", "dict", "namespace"}


def contexts() -> list[type[Context]]:
    """Every context there is, in whatever module."""
    assert figures, "its contexts count too"
    return Context.__subclasses__()


def used_variables(environment: jinja2.Environment, template: str) -> set[str]:
    """What a template and all that it extends or includes read from their context."""
    source = (TEMPLATE_DIR / template).read_text()
    tree = environment.parse(source)
    used = meta.find_undeclared_variables(tree)
    for name in meta.find_referenced_templates(tree):
        if name is not None and not _is_imported(source, name):
            used |= used_variables(environment, name) - _set_in(environment, source)
    return used - GLOBALS


def _is_imported(source: str, name: str) -> bool:
    return f'import "{name}"' in source or f'from "{name}"' in source


def _set_in(environment: jinja2.Environment, source: str) -> set[str]:
    """Names that the including template itself assigns: loops, set and with."""
    tree = environment.parse(source)
    return {name.name for name in tree.find_all(jinja2.nodes.Name) if name.ctx in ("store", "param")}


@pytest.mark.parametrize("kind", contexts(), ids=lambda kind: kind.__name__)
def test_a_context_is_exactly_what_its_template_uses(web_app: FastAPI, kind: type[Context]) -> None:
    environment = web_app.state.site.environment
    fields = {field.name for field in dataclasses.fields(kind)}
    used = used_variables(environment, kind.template)
    dynamic = kind.template.startswith("figures/")  # includes its figure's own templates by name
    assert used - SHELL <= fields, "the template reads what its dataclass does not have"
    assert dynamic or fields <= used, "the dataclass carries what its template never reads"


def test_every_template_is_a_context_s_or_part_of_one() -> None:
    texts = {path: path.read_text() for path in TEMPLATE_DIR.rglob("*.html")}
    roots = {context.template for context in contexts()}
    for path in texts:
        name = path.relative_to(TEMPLATE_DIR).as_posix()
        used = name in roots or any(f'"{name}"' in text for other, text in texts.items() if other != path)
        assert used or _is_figure_part(path), name


def _is_figure_part(path: Path) -> bool:
    """figures/_<name>.html and its controls, caption and table are included by name."""
    return path.parent.name == "figures" and any(path.stem.startswith(f"_{name}") for name in figures.FIGURES)


def test_every_template_compiles(web_app: FastAPI) -> None:
    for path in TEMPLATE_DIR.rglob("*.html"):
        web_app.state.site.environment.get_template(path.relative_to(TEMPLATE_DIR).as_posix())


def test_a_variable_that_is_not_there_is_an_error(web_app: FastAPI) -> None:
    with pytest.raises(jinja2.UndefinedError):
        web_app.state.site.environment.from_string("{{ nothing }}").render()
