"""What a learner reads has apostrophes and multiplication signs as print has them, and no typewriter's stand-ins."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from app.settings import COURSE_DIR
from app.theory import FORMULAS
from tests.web.sites import make_app

ROOT = Path(__file__).parent.parent
STAND_IN = re.compile(
    r"[A-Za-z0-9}]'(?:s|t|re|ll|ve|d)\b"  # one GPU's
    r"|[a-z]s' [a-z]"  # the ranks' bytes
    r"|\bP'"  # P prime
    r"|(?<=[A-Za-z0-9)\]}]) x (?=[A-Z0-9({])"  # T x H
)
ROOMS = ("app/figures", "app/theory", "app/web", "app/runs", "kernels/spec")
PYTHON = sorted([*(path for room in ROOMS for path in (ROOT / room).rglob("*.py")), ROOT / "app/texts.py",
                 ROOT / "app/course/grade.py"])
TEMPLATES = sorted((ROOT / "templates").rglob("*.html"))
LESSONS = sorted(path.name for path in COURSE_DIR.iterdir() if path.is_dir())
CODE = re.compile(r"<(code|pre|math|script|style)\b.*?</\1>", re.DOTALL)


def strings(tree: ast.Module) -> Iterator[str]:
    """Every string of a module but docstrings and LaTeX."""
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        is_text = isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings
        if is_text and "\\" not in node.value:
            yield node.value


def stand_ins(text: str) -> list[str]:
    return [text[max(0, found.start() - 30):found.end() + 30] for found in STAND_IN.finditer(text)]


@pytest.mark.parametrize("path", PYTHON, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_no_sentence_in_the_code_has_a_stand_in(path: Path) -> None:
    assert [found for text in strings(ast.parse(path.read_text())) for found in stand_ins(text)] == []


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_no_template_has_a_stand_in(path: Path) -> None:
    assert stand_ins(re.sub(r"\{[#%{].*?[#%}]\}", "", path.read_text(), flags=re.DOTALL)) == []


@pytest.mark.parametrize("name", FORMULAS)
def test_no_card_has_a_stand_in(name: str) -> None:
    card = FORMULAS[name]
    texts = [card.title, card.scope, card.breaks, *card.assumptions, *(symbol.meaning for symbol in card.symbols)]
    assert [found for text in texts for found in stand_ins(text)] == []


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """Of the whole course."""
    app = make_app(tmp_path_factory.mktemp("course"), lessons=[name for name in LESSONS if name != "split-three-ways"])
    yield TestClient(app)
    app.state.site.database.close()


@pytest.mark.parametrize("slug", LESSONS)
def test_no_lesson_as_shown_has_a_stand_in(reader: TestClient, slug: str) -> None:
    """Markdown sets quotes by itself; titles, labels and recorded results do not go through it."""
    page = reader.get(f"/lessons/{slug}").text
    assert stand_ins(unescape(re.sub("<[^>]+>", "", CODE.sub("", page)))) == []
