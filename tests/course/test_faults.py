"""Each mistake an author can make is a fault that names the file, the line, the key and the remedy."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.course import figure_fields
from app.course.load import load_course
from app.errors import CourseError
from tests.course.conftest import SLUG, Content, guide_block


@dataclass(frozen=True)
class Slip:
    """Replace `old` by `new` in `file`; the fault stands on the line that holds `at`."""

    name: str
    file: str
    old: str
    new: str
    at: str
    key: str
    message: str
    remedy: str


YAML, TEXT, COURSE = "lesson.yaml", "lesson.md", "course.yaml"
FIRST_QUESTION = "The same model on {P} GPUs. How many elements does each GPU send in one step?"
SLIPS = [
    # sections
    Slip("section missing", TEXT, "## Play\n", "", "## Summary", "Play", "the section Play is missing", "Add ## Play"),
    Slip("section misspelt", TEXT, "## Play\n", "## Game\n", "## Game", "Game", "there is no section 'Game'",
         "Hook, Intuition"),
    Slip("section twice", TEXT, "## Checkpoint", "## Play \n\nAgain.\n\n## Checkpoint", "## Play \n", "Play", "a second time",
         "Join"),
    Slip("section misplaced", TEXT, "## Intuition", "## Summary\n\nEarly.\n\n## Intuition", "## Intuition", "Intuition",
         "stands after Summary", "The order is Hook"),
    Slip("text before the first section", TEXT, "## Hook", "Hello.\n\n## Hook", "Hello.", "", "before the first section",
         "## Hook"),
    Slip("heading of another level", TEXT, "Two GPUs share", "# Big\n\nTwo GPUs share", "# Big", "Hook", "level 1", "Use ###"),
    # names
    Slip("unknown figure", TEXT, "::figure volume P=2 L=1", "::figure volum", "::figure volum", "Play", "no figure 'volum'",
         "volume"),
    Slip("unknown figure field", TEXT, "volume P=2", "volume Q=2", "volume Q=2", "Play", "no field 'Q'", "Its fields are P"),
    Slip("figure that cannot start", TEXT, "volume P=2", "volume P=99", "volume P=99", "Play", "cannot start",
         "controls allow"),
    Slip("unknown formula card", TEXT, "collectives.ring_all_reduce\n", "collectives.ring\n", "::formula collectives.ring",
         "Formalize", "no formula 'collectives.ring'", "collectives.ring_all_reduce"),
    Slip("unknown formula in text", TEXT, "{= data_parallel.params =} weights", "{= data_parallel.weights =} weights",
         "data_parallel.weights", "Hook", "no formula 'data_parallel.weights'", "data_parallel.params"),
    Slip("unknown argument", TEXT, "{= data_parallel.params =} weights", "{= data_parallel.params Q=3 =} weights", "Q=3",
         "Hook", "does not take Q", "It takes L, H"),
    Slip("missing argument", TEXT, "{= data_parallel.params =} weights", "{= batch.replicas =} weights", "batch.replicas",
         "Hook", "needs t, c, p", "give t in lesson.yaml"),
    Slip("argument out of range", TEXT, "{= data_parallel.params =} weights", "{= data_parallel.params L=0 =} weights", "L=0",
         "Hook", "L = 0: must be", "numbers that it allows"),
    Slip("unknown given", TEXT, "Two GPUs share", "{Q} GPUs share", "{Q}", "Hook", "the name Q", "Given are P, L"),
    Slip("argument names no given", TEXT, "{= data_parallel.params =} weights", "{= data_parallel.params L=deep =} weights",
         "L=deep", "Hook", "nothing is given by the name deep", "one of P, L"),
    Slip("unknown code", TEXT, "spec.experiment.tensor_active_gpus", "spec.nothing", "spec.nothing", "Formalize",
         "no function 'spec.nothing'", "FILE.FUNCTION"),
    Slip("unknown question", TEXT, "::question factor", "::question facts", "::question facts", "Checkpoint",
         "no question 'facts'", "four-gpus"),
    Slip("unknown experiment", TEXT, "::experiment count-it", "::experiment counts", "::experiment counts", "Play",
         "no experiment 'counts'", "count-it"),
    Slip("unknown prediction", TEXT, "::prediction more-or-less", "::prediction less", "::prediction less", "Hook",
         "no prediction 'less'", "more-or-less"),
    Slip("unknown calculation", TEXT, "::worked by-hand", "::worked by-foot", "::worked by-foot", "Worked example",
         "no worked 'by-foot'", "by-hand"),
    Slip("unknown source", TEXT, "{source ring}", "{source rang}", "{source rang}", "Formalize", "no source 'rang'", "ring"),
    Slip("unknown directive", TEXT, "::worked by-hand", "::werked by-hand", "::werked", "Worked example",
         "no directive 'werked'", "::worked"),
    Slip("unknown strategy", YAML, "strategy: data_parallel", "strategy: data_paralel", "data_paralel",
         "experiments[0].strategies[0].strategy", "strategy = data_paralel cannot run", "Unknown; choose one of single"),
    Slip("strategy that cannot run", YAML, "- strategy: data_parallel", "- {strategy: tensor_parallel, H: 5}", "H: 5",
         "experiments[0].strategies[0].strategy", "P = 2 cannot run", "P may be 1 or 5"),
    Slip("world size over the cap", YAML, "    figure: volume\n", "    figure: volume\n    P: 99\n", "P: 99",
         "experiments[0].P", "P = 99 cannot run", "from 1 to 8"),
    Slip("unknown figure of an experiment", YAML, "figure: volume", "figure: volumes", "figure: volumes",
         "experiments[0].figure", "no figure 'volumes'", "volume"),
    Slip("unknown axis", YAML, "axis: data", "axis: dates", "axis: dates", "worked[0].groups[0].axis", "no axis 'dates'",
         "tensor"),
    Slip("recorded run missing", YAML, "    figure: volume\n", "    figure: volume\n    recorded: run.json\n", "run.json",
         "experiments[0].recorded", "run.json is missing", "Record it from a real run"),
    # questions
    Slip("answer equals a wrong option", YAML, "      - formula: data_parallel.total_volume\n",
         "      - {formula: data_parallel.volume, feedback: Same.}\n      - formula: data_parallel.total_volume\n",
         "feedback: Same.", "questions[0].wrong[1]", "it equals the answer", "another mistake"),
    Slip("answer equals a wrong option at a later try", YAML, "- {P: 4, H: [8, 16]}", "- {P: 2, H: 4}",
         "- formula: data_parallel.volume\n", "questions[0].wrong[0]", "with P=2", "out of `varies`"),
    Slip("two wrong options alike", YAML, "      - formula: data_parallel.total_volume\n",
         "      - {literal: 16, reason: None., feedback: Once.}\n      - formula: data_parallel.total_volume\n",
         "feedback: Once.", "questions[0].wrong[1]", "reads like questions[0].wrong[0]", "change one of the two"),
    Slip("wrong option without feedback", YAML, "        feedback: That is sent by all GPUs together.\n", "",
         "- formula: data_parallel.total_volume", "questions[0].wrong[1].feedback", "feedback is missing",
         "Add `feedback: ...`"),
    Slip("answer without feedback", YAML, "      feedback: Each layer is a square.\n", "",
         "answer:\n      formula: data_parallel.params\n", "questions[2].answer.feedback", "feedback is missing",
         "Add `feedback"),
    Slip("number without otherwise", YAML, "    otherwise: A layer of width $H$ is a matrix of $H$ by $H$ weights.\n", "",
         "id: weights", "questions[2].otherwise", "otherwise is missing", "Add"),
    Slip("choice without wrong options", YAML, "    wrong:\n      - value: T * H", "    nothing:\n      - value: T * H",
         "id: what-travels", "questions[1].wrong", "wrong is missing", "Add `wrong:`"),
    Slip("question without answer", YAML, "    answer:\n      formula: collectives",
         "    solution:\n      formula: collectives", "id: factor", "questions[3].answer", "answer is missing",
         "Add `answer:`"),
    Slip("unknown kind", YAML, "kind: choice", "kind: choise", "kind: choise", "questions[0].kind", "no kind 'choise'",
         "choice or number"),
    Slip("value from two places", YAML, "      formula: collectives.ring_factor\n",
         "      formula: collectives.ring_factor\n      value: 1\n", "      value: 1", "questions[3].answer.value",
         "one of formula, value and literal", "formula:"),
    Slip("value from nowhere", YAML, "      formula: collectives.ring_factor\n", "", "answer:\n      feedback: Two passes",
         "questions[3].answer.formula", "one of formula, value and literal", "literal"),
    Slip("literal without a reason", YAML, "        reason: Nothing is not a formula.\n", "", "literal: 0",
         "questions[1].wrong[1].literal", "needs a reason", "`reason:`"),
    Slip("answer's formula unknown", YAML, "      formula: collectives.ring_factor", "      formula: collectives.factor",
         "collectives.factor", "questions[3].answer.formula", "no formula 'collectives.factor'", "collectives.ring_factor"),
    Slip("answer's formula lacks a number", YAML, "      formula: collectives.ring_factor", "      formula: zero.zero1_volume",
         "id: factor", "questions[3]", "needs params", "give params"),
    Slip("feedback gives the answer away", YAML, "feedback: That is sent by all GPUs together.",
         "feedback: It is {= data_parallel.volume =}.", "formula: data_parallel.total_volume", "questions[0].wrong[1]",
         "gives the answer away", "never the right number"),
    Slip("variants that are none", YAML, "      - {L: [2, 3], H: [4, 8]}", "      - {L: 4}", "varies:\n      - {L: 4}",
         "questions[2].varies", "no numbers other than the first", "{P: 16}"),
    Slip("range that is none", YAML, "{from: 8, to: 16, step: 8}", "{from: 16, to: 8}", "{from: 16",
         "questions[0].varies[0].P.from", "no range", "{from: 2, to: 16, step: 2}"),
    Slip("tolerance that is no share", YAML, "tolerance: 0.01", "tolerance: 2", "tolerance: 2", "questions[3].tolerance",
         "no share", "0.01"),
    Slip("digits that are none", YAML, "tolerance: 0.01", "digits: 40", "digits: 40", "questions[3].digits",
         "no number of decimals", "0 to 9"),
    # numbers typed by hand
    Slip("numeral in the text", TEXT, "Two GPUs share", "2 GPUs share", "2 GPUs", "Hook", "the number 2 is typed by hand",
         "{!2}"),
    Slip("numeral on a later line of a paragraph", TEXT, "Two GPUs share", "Here are\nsome lines and\n1,000 GPUs share",
         "1,000", "Hook", "the number 1,000", "{!1,000}"),
    Slip("numeral in a note", TEXT, "**The model,** one", "**The model,** 1", "**The model,** 1", "Intuition", "the number 1",
         "{!1}"),
    Slip("numeral in a table", TEXT, "a copy of the model", "2 copies of the model", "2 copies", "Summary", "the number 2",
         "{!2}"),
    Slip("numeral in a heading", TEXT, "Two GPUs share", "### The 3 parts\n\nTwo GPUs share", "### The 3", "Hook",
         "the number 3", "{!3}"),
    Slip("numeral in a formula", TEXT, "Two GPUs share", "$1.5 P$ GPUs share", "$1.5", "Hook", "the number 1.5 in a formula",
         "{!1.5}"),
    Slip("numeral in a prompt", YAML, FIRST_QUESTION, "On 8 GPUs?", "On 8 GPUs?", "questions[0].prompt", "the number 8",
         "{!8}"),
    Slip("numeral in feedback", YAML, "Each layer is a square.", "16 of them.", "16 of them", "questions[2].answer.feedback",
         "the number 16", "{!16}"),
    Slip("numeral in an objective", YAML, "Predict what two", "Predict what 2", "Predict what 2", "objectives[0]",
         "the number 2", "{!2}"),
    Slip("numeral in a title", YAML, "title: Two processes", "title: 2 processes", "title: 2", "experiments[0].title",
         "the number 2", "below"),
    Slip("numeral in a worked line", YAML, "why: weights of the model", "why: 16 weights", "why: 16",
         "worked[0].groups[0].lines[0]", "the number 16", "{!16}"),
    # links and sources
    Slip("link to no place", TEXT, "(#figure-volume)", "(#figure-volumes)", "#figure-volumes", "Summary", "to no place",
         "figure-volume"),
    Slip("link to no lesson", TEXT, "(#figure-volume)", "(/lessons/three-gpus)", "/lessons/three-gpus", "Summary",
         "to no lesson", SLUG),
    Slip("link to no place in a lesson", TEXT, "(#figure-volume)", f"(/lessons/{SLUG}#end)", "#end", "Summary", "to no place",
         "summary"),
    Slip("link to nowhere", TEXT, "(#figure-volume)", "(figure.html)", "figure.html", "Summary", "leads nowhere", "https://"),
    Slip("dead link in feedback", YAML, "(#formula-collectives-ring-all-reduce)", "(#formula-ring)", "#formula-ring",
         "questions[3].otherwise", "to no place", "formula-collectives-ring-all-reduce"),
    Slip("HTML", TEXT, "Two GPUs share", "Two <b>GPUs</b> share", "<b>", "Hook", "<b> would stand on the page", "Use Markdown"),
    Slip("link to a script", TEXT, "Two GPUs share", "[Two](javascript:alert) GPUs share", "javascript", "Hook",
         "](javascript:alert) would stand on the page", "https://"),
    Slip("picture", TEXT, "Two GPUs share", "![Two](https://example.org/a.png) GPUs share", "a.png", "Hook", "no pictures",
         "::figure"),
    Slip("source never cited", TEXT, "({source ring})", "", "- id: ring", "sources[0].id", "source ring is never used",
         "{source ring}"),
    Slip("source list missing", TEXT, "::sources\n", "", "{source ring}", "Formalize", "#source-ring leads to no place",
         "figure-volume"),
    Slip("source without address", YAML, "url: https://doi.org/10.1016/j.jpdc.2008.09.002", "url: doi 10.1016", "url: doi",
         "sources[0].url", "no web address", "https://"),
    Slip("question never placed", TEXT, "::question factor\n", "", "id: factor", "questions[3]",
         "question factor is never used", "::question factor"),
    Slip("experiment never placed", TEXT, "::experiment count-it\n", "", "- id: count-it", "experiments[0].id", "never used",
         "::experiment count-it"),
    Slip("calculation never placed", TEXT, "::worked by-hand", "Nothing.", "- id: by-hand", "worked[0]", "never used",
         "::worked by-hand"),
    Slip("recalled before asked", TEXT, "::prediction more-or-less", "::recall more-or-less\n\n::prediction more-or-less",
         "::recall more-or-less", "Hook", "before it is asked", "further up"),
    # the same thing twice
    Slip("question placed twice", TEXT, "::question factor", "::question weights\n\n::question factor", "", "Checkpoint",
         "#question-weights is on this page already", "once"),
    Slip("question id twice", YAML, "id: factor", "id: weights", "- id: weights\n    kind: number\n    prompt: By",
         "questions[3]", "the id weights is taken", "another id"),
    Slip("source id twice", YAML, "sources:\n", "sources:\n  - {id: ring, short: A, text: B, url: 'https://c.de'}\n",
         "- id: ring", "sources[1].id", "the id ring is taken", "another id"),
    Slip("id that is none", YAML, "- id: more-or-less", "- id: More or less", "More or less", "predictions[0].id",
         "cannot be an id", "small letters"),
    Slip("prediction options alike", YAML, "value: fewer", "value: more", "    options:", "predictions[0].options",
         "a value of its own", "rename"),
    Slip("key twice", YAML, "kind: choice", "kind: choice\n    kind: number", "    kind: number\n    prompt: The same",
         "questions[0].kind", "stands here twice", "Keep one"),
    Slip("unknown key", YAML, "kind: choice", "kind: choice\n    hint: no help", "hint:", "questions[0].hint",
         "hint is not known", "prompt"),
    # YAML's traps
    Slip("power read as text", YAML, "given: {P: 2,", "given: {P: 7e9,", "7e9", "given.P", "YAML reads 7e9 as text",
         "7_000_000_000"),
    Slip("word read as false", YAML, "label: nothing", "label: no", "label: no", "questions[1].wrong[1].label",
         "reads no as true or false", '"no" in quotes'),
    Slip("number in base sixty", YAML, "given: {P: 2,", "given: {P: 16:9,", "16:9", "given.P", "another number than it looks",
         "decimal"),
    Slip("octal number", YAML, "given: {P: 2,", "given: {P: 012,", "012", "given.P", "another number than it looks", "decimal"),
    Slip("text for a number", YAML, "given: {P: 2,", 'given: {P: "2",', '"2"', "given.P", "'2' is text", "without quotes"),
    Slip("date for a text", YAML, "short: Patarasuk and Yuan, 2009", "short: 2009-02-01", "2009-02-01", "sources[0].short",
         "as a date", "in quotes"),
    Slip("list for a text", YAML, f"prompt: {FIRST_QUESTION}", "prompt: [a, b]", "prompt: [a, b]", "questions[0].prompt",
         "must be text", "quotes"),
    Slip("text for a list", YAML, "objectives:\n  - Predict what two GPUs send in a data-parallel step.", "objectives: all",
         "objectives: all", "objectives", "must be a list", "`- `"),
    Slip("not YAML", YAML, "given: {P: 2,", "given: {P: 2,,", "2,,", "", "this is not YAML", "Check indentation"),
    # Markdown and LaTeX
    Slip("bad LaTeX", TEXT, "Two GPUs share", "$\\frac{P}{$ GPUs share", "\\frac", "Hook", "line 1, column 10",
         "Correct the formula"),
    Slip("unknown LaTeX command", YAML, "Each layer is a square.", "It is $\\foo$.", "id: weights", "questions[2]",
         'Unknown command "\\foo"', "Correct the formula"),
    Slip("braces that mean nothing", TEXT, "Two GPUs share", "{two GPUs} share", "{two GPUs}", "Hook",
         "{two GPUs} means nothing", "\\{ is a plain brace"),
    Slip("note never closed", TEXT, "square a number.\n:::\n", "square a number.\n", ":::note", "Intuition", "never closed",
         "three colons"),
    Slip("note with two colons", TEXT, ":::note", "::note", "::note", "Intuition", "the other form", ":::note"),
    Slip("figure with three colons", TEXT, "::figure volume P=2 L=1", ":::figure volume\n:::", ":::figure", "Play",
         "the other form", "::figure"),
    Slip("code in no language", TEXT, "Two GPUs share", "```klingon\nx\n```\n\nTwo GPUs share", "```klingon", "Hook",
         "'klingon' cannot be coloured", "python"),
    Slip("question in another unit than its answer", YAML, "unit: elements", "unit: bytes", "unit: bytes",
         "questions[0].unit", "counted in elements, not in bytes", "unit: elements"),
    Slip("unit that is not the formula's", TEXT, "unit=bytes", "unit=elements", "unit=elements", "Summary", "counted in bytes",
         "unit=bytes"),
    Slip("number too large for a word", TEXT, "{= data_parallel.params =} weights",
         "{= data_parallel.params H=9 words =} weights", "words", "Hook", "81 has no word", "drop `words`"),
    Slip("expression without operator", TEXT, "{= data_parallel.params =} weights", "{= data_parallel.params P =} weights",
         "params P", "Hook", "stands where + - * or / belongs", "Put an operator"),
    Slip("expression that ends early", TEXT, "{= data_parallel.params =} weights", "{= P - =} weights", "{= P - =}", "Hook",
         "ends too early", "Name a formula"),
    Slip("division by zero", TEXT, "{= data_parallel.params =} weights", "{= P / 0 =} weights", "{= P / 0 =}", "Hook",
         "divides by 0", "not 0"),
    Slip("an answer that the page shows", YAML, "given: {P: 4, before: 2}", "given: {before: 2}", "    answer:\n      formula",
         "questions[0].answer", "line 15 of lesson.yaml shows it already: data_parallel.volume", "under `given`"),
    Slip("too many squares", YAML, "squares: 8", "squares: 80", "squares: 80", "worked[0].groups[0].lines[0].squares",
         "cannot be drawn", "1 to 16 in a row"),
    # course.yaml
    Slip("slug twice", COURSE, "lessons:\n", f"lessons:\n  - {{slug: {SLUG}, title: A, question: B, prerequisites: []}}\n",
         "  - slug: two-gpus", "lessons[1].slug", "the slug two-gpus is taken", "another slug"),
    Slip("prerequisite unknown", COURSE, "prerequisites: []", "prerequisites: [one-gpu]", "slug: two-gpus", "lessons[0].slug",
         "one-gpu, which is no lesson", "two-gpus"),
    Slip("prerequisite further down", COURSE, "prerequisites: []",
         "prerequisites: [later]\n  - {slug: later, title: A, question: B, prerequisites: []}", "slug: two-gpus",
         "lessons[0].slug", "does not stand before it", "Change the order"),
    Slip("slug that is no address", COURSE, "slug: two-gpus", "slug: Two GPUs", "Two GPUs\n", "lessons[0].slug",
         "cannot be part of an address", "small letters"),
    Slip("title missing", COURSE, "    title: Two GPUs\n", "", "slug: two-gpus", "lessons[0].title", "title is missing", "Add"),
]


@pytest.mark.parametrize("slip", SLIPS, ids=lambda slip: slip.name)
def test_a_slip_is_a_fault_with_file_line_key_and_remedy(content: Content, slip: Slip) -> None:
    content.edit(slip.file, slip.old, slip.new)

    faults = content.faults()

    matching = [fault for fault in faults if slip.message in fault.message]
    assert matching, f"no fault says {slip.message!r}; there are: {[str(fault) for fault in faults]}"
    fault = matching[-1]
    file = slip.file if fault.file.endswith(slip.file) else YAML if fault.file.endswith(YAML) else TEXT
    assert fault.key == slip.key
    assert slip.remedy in fault.remedy
    if slip.at:
        text = content.text(file)
        position = text.index(slip.at)
        assert fault.line == text[:position].count("\n") + 1
    assert str(fault).startswith(f"{content.path(file)}:{fault.line}: {fault.key}".rstrip())


def test_all_faults_of_all_files_are_found_at_once(content: Content) -> None:
    content.edit(TEXT, "Two GPUs share", "2 GPUs share {Q}")
    content.edit(YAML, "kind: choice", "kind: choise")
    content.edit(COURSE, "prerequisites: []", "prerequisites: [one-gpu]")

    with pytest.raises(CourseError) as refused:
        load_course([content.folder], figure_fields())

    said = str(refused.value)
    assert all(part in said for part in ("the number 2", "the name Q", "no kind 'choise'", "which is no lesson"))
    assert len(refused.value.faults) == len(said.splitlines())


def test_too_few_questions_and_too_few_that_vary_are_faults(content: Content) -> None:
    text = content.text(YAML)
    start, end = text.index("  - id: weights"), text.index("\nsources:")
    content.write(YAML, text[:start] + text[end:])
    content.edit(TEXT, "::question weights\n\n::question factor\n", "")

    messages = [fault.message for fault in content.faults() if fault.key == "questions"]

    assert messages == [
        "2 questions or more must change their numbers with each try, not 1.",
        "a lesson needs 4 questions or more; here are 2.",
    ]


def test_an_empty_section_is_a_fault(content: Content) -> None:
    content.edit(TEXT, "::worked by-hand\n", "")
    assert "the section Worked example is empty." in [fault.message for fault in content.faults()]


@pytest.mark.parametrize("name", ["lesson.md", "lesson.yaml"])
def test_a_lesson_file_that_is_missing_is_a_fault(content: Content, name: str) -> None:
    content.path(name).unlink()
    fault = content.faults()[0]
    assert (fault.file, fault.message) == (str(content.path(name)), "the file is missing.")
    assert "A lesson has" in fault.remedy


def test_a_file_that_is_no_text_is_a_fault(content: Content) -> None:
    content.path("lesson.md").write_bytes(b"\xff\xfe\x00")
    assert "cannot be read" in content.faults()[0].message


def test_a_directory_without_course_yaml_is_a_fault(content: Content) -> None:
    content.path("course.yaml").unlink()
    assert "list `lessons:`" in content.faults()[0].remedy


def test_a_folder_that_course_yaml_does_not_name_is_a_fault(content: Content) -> None:
    (content.folder / "forgotten").mkdir()
    fault = content.faults()[0]
    assert "forgotten is not named here" in fault.message
    assert "Add it to the list" in fault.remedy


@pytest.mark.parametrize(
    ("written", "message"),
    [("{", "is not JSON"), ("{}", "is no list of reports"), ("[{}]", "has no report of data_parallel")],
)
def test_a_recorded_run_that_cannot_be_shown_is_a_fault(content: Content, written: str, message: str) -> None:
    content.write("recorded.json", written)
    fault = content.faults()[0]
    assert message in fault.message
    assert "ecord" in fault.remedy


FILES = st.sampled_from(["lesson.md", "lesson.yaml", "course.yaml"])


@settings(max_examples=60)
@given(FILES, st.integers(0, 4000), st.integers(0, 40), st.text(st.characters(exclude_categories=["Cs"]), max_size=8))
def test_a_spoilt_file_raises_nothing_and_every_fault_is_whole(
    content: Content, name: str, start: int, count: int, put: str
) -> None:
    original = guide_block(name)
    content.write(name, original[:start] + put + original[start + count :])
    faults = content.faults()
    content.write(name, original)
    assert all(fault.file and fault.message and fault.remedy for fault in faults)
