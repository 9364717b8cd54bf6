"""Lesson folders into a checked Course: every fault of every file is found before anything is refused."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from app.course import checks
from app.course.checks import Listed
from app.course.code import CodeSource, kernel_quote
from app.course.declarations import read_experiments, read_predictions, read_sources, texts_html
from app.course.draft import Draft
from app.course.links import link_faults
from app.course.model import Course, Entry, FigureFields, Lesson
from app.course.questions import check_first_numbers, read_given, read_questions
from app.course.sections import read_sections
from app.course.yaml_file import Fields, YamlFile
from app.errors import CourseError, Fault

COURSE_FILE = "course.yaml"
LESSON_KEYS = ("objectives", "out_of_scope", "given", "predictions", "questions", "experiments", "worked", "sources")


def load_course(content_dirs: Sequence[Path], figures: FigureFields, code: CodeSource = kernel_quote) -> Course:
    """The course of these directories, in their order. Raises CourseError with all faults if there is one.

    `figures` names every figure a lesson may show, with its fields; `code` finds a kernel function to quote.
    """
    course, faults = read_course(content_dirs, figures, code)
    if faults:
        raise CourseError(faults)
    return course


def read_course(
    content_dirs: Sequence[Path], figures: FigureFields, code: CodeSource = kernel_quote
) -> tuple[Course, list[Fault]]:
    """The course as far as it can be read, and its faults, sorted by file and line. A directory named twice is read once."""
    faults: list[Fault] = []
    distinct = {folder.resolve(): folder for folder in reversed(content_dirs)}
    listed = [entry for folder in reversed(distinct.values()) for entry in _listed(folder, faults)]
    faults += checks.slug_faults(listed) + checks.prerequisite_faults(listed)
    coming = frozenset(entry.slug for entry in listed if not entry.folder.is_dir())
    drafts: dict[str, Draft] = {}
    entries: list[Entry] = []
    for number, entry in enumerate(listed, start=1):
        lesson = None
        if entry.slug not in coming and entry.slug not in drafts:
            drafts[entry.slug] = Draft(entry.slug, faults, figures, code, coming)
            lesson = _lesson(entry, drafts[entry.slug])
        entries.append(Entry(number, entry.slug, entry.title, entry.question, entry.prerequisites, lesson))
    faults += link_faults(drafts)
    return Course(tuple(entries)), sorted(set(faults), key=lambda fault: (fault.file, fault.line, fault.key, fault.message))


def _listed(folder: Path, faults: list[Fault]) -> list[Listed]:
    """The lines of a directory's course.yaml; folders that it does not name are faults."""
    path = folder / COURSE_FILE
    file = YamlFile(str(path), faults)
    text = _read(path, faults, "Every content directory has one: a list `lessons:` with slug, title, question, prerequisites.")
    fields = None if text is None else file.read(text)
    if fields is None:
        return []
    fields.allow("lessons")
    listed = [entry for item in fields.mappings("lessons") if (entry := _entry(item, folder, str(path))) is not None]
    known = {entry.slug for entry in listed}
    for child in sorted(folder.iterdir()):
        if child.is_dir() and not child.name.startswith((".", "_")) and child.name not in known:
            file.fault(fields.item.line, "lessons", f"the folder {child.name} is not named here.",
                       "Add it to the list, or move it away.")
    return listed


def _entry(fields: Fields, folder: Path, file: str) -> Listed | None:
    fields.allow("slug", "title", "question", "prerequisites")
    slug, title, question = fields.string("slug"), fields.string("title"), fields.string("question")
    prerequisites = tuple(str(item.value) for item in fields.strings("prerequisites"))
    if slug and not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", slug):
        fields.fault("slug", f"{slug!r} cannot be part of an address.", "Use small letters, digits and single hyphens.")
        return None
    if not slug:
        return None
    return Listed(slug, title, question, prerequisites, folder / slug, file, fields.item.line, f"{fields.item.key}.slug")


def _lesson(listed: Listed, draft: Draft) -> Lesson | None:
    """One folder: lesson.yaml first, because the text refers to it. None where a file cannot be read at all."""
    yaml_path, text_path = listed.folder / "lesson.yaml", listed.folder / "lesson.md"
    declared = _read(yaml_path, draft.faults, "A lesson has objectives, given, questions and sources there.")
    text = _read(text_path, draft.faults, "A lesson has its seven sections there.")
    fields = None if declared is None else YamlFile(str(yaml_path), draft.faults).read(declared)
    if fields is None or text is None:
        return None
    fields.allow(*LESSON_KEYS)
    draft.given = read_given(fields, "given")
    sources = read_sources(draft, fields)
    draft.sources.update({source.id: source for source in sources})
    draft.worked = _worked(draft, fields)
    predictions = read_predictions(draft, fields)
    experiments = read_experiments(draft, fields, listed.folder)
    questions = read_questions(draft, fields)
    objectives, out_of_scope = texts_html(draft, fields, "objectives"), texts_html(draft, fields, "out_of_scope")
    sections = read_sections(draft, str(text_path), text)
    check_first_numbers(draft, fields, questions)
    draft.report_unused()
    return Lesson(
        listed.slug, listed.title, listed.question, objectives, out_of_scope, draft.given, sections, questions, predictions,
        experiments, sources, tuple(draft.shown_figures), frozenset(draft.anchors),
    )


def _worked(draft: Draft, fields: Fields) -> dict[str, Fields]:
    """The calculations by id; they are composed where the text places them."""
    worked: dict[str, Fields] = {}
    for entry in fields.mappings("worked", required=False):
        name = entry.string("id")
        if name and draft.declare("worked", name, entry.file_name, entry.item.line, entry.item.key):
            worked[name] = entry
    return worked


def _read(path: Path, faults: list[Fault], remedy: str) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        faults.append(Fault(str(path), 0, "", "the file is missing.", remedy))
    except (OSError, UnicodeDecodeError) as error:
        faults.append(Fault(str(path), 0, "", f"the file cannot be read: {error}.",
                            "Save it as UTF-8 text that this process may read."))
    return None
