"""Lesson text to HTML: what each piece of markup becomes, and that nothing a lesson holds can break a page."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.course import figure_fields
from app.course.code import kernel_quote
from app.course.compose import Composer
from app.course.draft import Draft
from app.course.model import Slot, Source
from app.errors import Fault


def draft() -> Draft:
    made = Draft("here", [], figure_fields(), kernel_quote, frozenset({"later"}))
    made.given = {"P": 4, "L": 2, "H": 4, "T": 1, "m": 1, "big": 7000}
    made.sources = {"ring": Source("ring", "Ring & others", "Text.", "https://example.org/?a=1&b=2")}
    made.declare("source", "ring", "lesson.yaml", 1, "sources[0]")
    return made


def composed(text: str) -> tuple[str, list[Fault]]:
    """Blocks of text as HTML, slots as their names in square brackets."""
    lesson = draft()
    composer = Composer(lesson, "lesson.md", "Hook")
    parts = composer.filled(composer.blocks(text, 1))
    return "".join(part if isinstance(part, str) else f"[{part.kind} {part.name}]" for part in parts), lesson.faults


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("{P} GPUs", "<p>4 GPUs</p>"),
        ("{= data_parallel.volume =}", "<p>48</p>"),
        ("{=data_parallel.volume digits=1=}", "<p>48.0</p>"),
        ("{= data_parallel.volume unit=elements =}", "<p>48\u00a0elements</p>"),
        ("{= data_parallel.volume / pipeline_parallel.busiest_gpu_volume words =}", "<p>twelve</p>"),
        ("{big}", "<p>7,000</p>"),
        ("{!ZeRO-3} and {! 8 }", "<p>ZeRO-3 and 8</p>"),
        (r"\{P}", "<p>{P}</p>"),
        ("`{P} 8`", "<p><code>{P} 8</code></p>"),
        ("fp32, 1F1B, bf16", "<p>fp32, 1F1B, bf16</p>"),
        ("{data: batch}", '<p><b class="ax ax-data">batch</b></p>'),
        ("{mark shard} x", '<p><svg class="mark ax-shard" aria-hidden="true"><use href="#m-shard"/></svg> x</p>'),
        ("({source ring})", '<p>(<a href="#source-ring">Ring &amp; others</a>)</p>'),
        ("[next](/lessons/later#play)", "<p><span>next</span></p>"),
        ("[out](https://example.org/?a=1&b=2)", '<p><a href="https://example.org/?a=1&amp;b=2">out</a></p>'),
        ("**strong** *stress*", "<p><strong>strong</strong> <em>stress</em></p>"),
        ('"quoted" it\'s', "<p>\u201cquoted\u201d it\u2019s</p>"),
        ("a < b & b > a", "<p>a &lt; b &amp; b &gt; a</p>"),
        ("### Part", "<h3>Part</h3>"),
        ("::figure volume P=8", '<div class="slot" id="figure-volume">[figure volume]</div>'),
        ("a\n::figure what_moves\nb", '<p>a</p>\n<div class="slot" id="figure-what-moves">[figure what_moves]</div>\n<p>b</p>'),
        (":::note\n**Lead.** Body\n:::", '<aside class="note"><b>Lead.</b> Body</aside>'),
        (":::note\nOne.\n\nTwo.\n:::", '<aside class="note"><p>One.</p>\n<p>Two.</p></aside>'),
    ],
)
def test_markup_becomes_html(text: str, html: str) -> None:
    found, faults = composed(text)
    assert faults == []
    assert found.strip() == html


def test_html_is_escaped_and_a_fault() -> None:
    found, faults = composed("<b>raw</b> & <script>")
    assert found.strip() == "<p>&lt;b&gt;raw&lt;/b&gt; &amp; &lt;script&gt;</p>"
    assert [fault.message.split()[0] for fault in faults] == ["<b>", "</b>", "<script>"]


def test_a_figure_keeps_its_starting_values() -> None:
    composer = Composer(draft(), "lesson.md", "Hook")
    parts = composer.filled(composer.blocks("::figure volume P=8 scope=gpu", 1))
    assert Slot("figure", "volume", {"P": "8", "scope": "gpu"}) in parts


def test_formulas_are_set_as_mathml_with_computed_numbers() -> None:
    found, faults = composed(r"$\frac{2(P-1)}{P} = {= collectives.ring_factor =}$ and ${= big =}$")
    assert faults == []
    assert "<mfrac>" in found
    assert "<mn>1.5</mn>" in found
    assert re.search(r"7.*,.*000", found)


def test_a_block_formula_is_displayed() -> None:
    assert '<math display="block">' in composed("$$\nV = 2 P\n$$")[0]


def test_tables_have_row_headings_column_names_and_no_style() -> None:
    found, faults = composed("| Cut | Sends ${=P=}$ |\n|---|--:|\n| {mark data} batch | {P} |")
    assert faults == []
    assert '<div class="wide scroll"><table class="tab stack">' in found
    assert '<th scope="col">Cut</th>' in found
    assert '<th scope="row"><svg' in found
    assert '<td class="r" data-l="Sends">4</td>' in found
    assert "style" not in found


def test_code_is_coloured_by_classes() -> None:
    found, faults = composed("```python\nrank = 3\n```")
    assert faults == []
    assert '<code class="cmd highlight" tabindex="0" role="region" aria-label="Code, python">' in found
    assert '<span class="n">rank</span>' in found


def test_a_kernel_function_is_quoted_with_its_file_and_line() -> None:
    found, faults = composed("::code spec.experiment.tensor_active_gpus")
    assert faults == []
    assert "tensor_active_gpus</b> as it runs, kernels/spec/experiment.py, line" in found
    assert '<span class="k">return</span>' in found


def test_a_card_names_symbols_unit_scope_assumptions_and_sources() -> None:
    found, faults = composed("::formula pipeline_parallel.taught_volume")
    assert faults == []
    assert '<article class="card ax-pipeline" id="formula-pipeline-parallel-taught-volume">' in found
    for name in ("Unit", "Scope", "Assumes", "If not", "Source"):
        assert re.search(f"<dt>{name}s?</dt><dd>.+?</dd>", found)
    assert "<mark>sent by all GPUs together</mark>" in found
    assert '<dl class="terms"><dt><math>' in found


@pytest.mark.parametrize("written", ["so $P$, then", "so ($P$) then", "so $P$."])
def test_no_line_ends_between_a_formula_and_its_punctuation(written: str) -> None:
    found, faults = composed(f"The sum is {written}")
    assert faults == []
    assert re.search(r'<span class="unbroken">\(?<math><mi>P</mi></math>[,.)]</span>', found)


def test_the_model_is_drawn_with_as_many_squares_as_weights() -> None:
    found, faults = composed("::model")
    assert faults == []
    assert found.count("h20v20h-20z") == 32
    assert "2 layers, each a matrix of 4 by 4 numbers" in found


@pytest.mark.parametrize("word", ["8", "1,000", "1.5", "7B", "4×4", "3D", "2nd", "\u00b3", "½"])
def test_a_numeral_in_prose_is_a_fault(word: str) -> None:
    assert len(composed(f"Some {word} here")[1]) >= 1


def test_a_note_stands_with_the_paragraph_after_it_and_alone_before_anything_else() -> None:
    note = '<aside class="note">N</aside>\n'
    assert composed(":::note\nN\n:::\n\nOne\n\nTwo")[0] == f'<div class="noted">\n{note}<p>One</p>\n</div>\n<p>Two</p>\n'
    assert composed(":::note\nN\n:::\n\n- One")[0] == f"{note}<ul>\n<li>One</li>\n</ul>\n"
    assert composed("One\n\n:::note\nN\n:::")[0] == f"<p>One</p>\n{note}"


def test_a_line_number_follows_the_line_within_a_paragraph_and_a_note() -> None:
    _, faults = composed("One\ntwo\n8 three\n\n:::note\nfour\n9 five\n:::\n")
    assert [(fault.line, fault.message) for fault in faults] == [
        (3, "the number 8 is typed by hand."), (7, "the number 9 is typed by hand."),
    ]


MARKUP = st.lists(
    st.sampled_from([
        "{", "}", "{=", "=}", "{!", "P", "$", "$$", "::", ":::", ":::note\n", "::figure volume", "::model", "|", "\n", "\n\n",
        "## ", "- ", "> ", "`", "```", "[a]", "(b)", "(#c)", "*", "**", "\\", "\\frac", "data_parallel.volume", " + ", "8",
        "<b>", "&", "{source ring}", "{mark data}", "::formula collectives.ring_all_reduce\n", "\x00", "\x000\x00", "é", " ",
    ])
    | st.text(st.characters(exclude_categories=["Cc", "Cs"]), max_size=5),
    max_size=25,
).map("".join)


@settings(max_examples=150)
@given(MARKUP)
def test_no_text_raises_and_none_leaves_holes_scripts_or_styles(text: str) -> None:
    found, _ = composed(text)
    assert "\x00" not in found
    outside_code = re.sub(r"<code.*?</code>|<annotation.*?</annotation>", "", found, flags=re.DOTALL)
    assert not re.search(r"<script|<[^>]* on[a-z]+=|<[^>]* style=|javascript:", outside_code)


@settings(max_examples=60, deadline=None)
@given(MARKUP)
def test_html_without_faults_is_well_formed(text: str) -> None:
    found, faults = composed(text)
    if not faults:
        ElementTree.fromstring(f"<div>{found.replace('&nbsp;', ' ')}</div>")
