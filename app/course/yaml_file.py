"""YAML with line numbers, and without its traps: each value knows where it stands, and what YAML would misread is a fault."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

import yaml

from app.errors import Fault

Scalar = str | int | Fraction | bool | None

_LOOKS_LIKE_A_POWER = re.compile(r"[-+]?[0-9][0-9_]*(\.[0-9_]*)?[eE][-+]?[0-9]+")
_TRUTH_WORDS = {"true": True, "false": False}


@dataclass(frozen=True)
class Item:
    """A value of the file, its line, and its key from the top, as in questions[0].answer.given.P."""

    value: Scalar | Mapping[str, Item] | list[Item]
    line: int
    key: str
    text_line: int  # where the text itself begins: a line further down for a block scalar


class YamlFile:
    """One file being read; faults are added to the list that all files of the course share."""

    def __init__(self, name: str, faults: list[Fault]) -> None:
        self.name = name
        self._faults = faults

    def fault(self, line: int, key: str, message: str, remedy: str) -> None:
        self._faults.append(Fault(self.name, line, key, message, remedy))

    def read(self, text: str) -> Fields | None:
        """The file's top mapping; None, and a fault, where there is none."""
        try:
            node = yaml.compose(text, Loader=yaml.SafeLoader)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark
            self.fault(mark.line + 1 if mark else 1, "", f"this is not YAML: {error.problem}.",
                       "Check indentation and quotes here.")
            return None
        except yaml.YAMLError as error:
            self.fault(1, "", f"this is not YAML: {' '.join(str(error).split())}.", "Save the file as plain UTF-8 text.")
            return None
        except RecursionError:
            self.fault(1, "", "brackets are nested too deeply.", "Write it with fewer levels.")
            return None
        if not isinstance(node, yaml.MappingNode):
            self.fault(1, "", "the file holds no keys.", "Begin with lines such as `objectives:`.")
            return None
        return Fields(self, self._item(node, "", ()))

    def _item(self, node: yaml.Node, key: str, above: tuple[int, ...], key_line: int | None = None) -> Item:
        """A value stands on the line of its key, where it has one: that is where an author looks."""
        own_line = node.start_mark.line + 1
        line = own_line if key_line is None else key_line
        if id(node) in above:
            self.fault(line, key, "this value contains itself.", "Write it out without an alias.")
            return Item(None, line, key, line)
        if isinstance(node, yaml.MappingNode):
            return Item(self._mapping(node, key, (*above, id(node))), line, key, line)
        if isinstance(node, yaml.SequenceNode):
            items = [self._item(child, f"{key}[{index}]", (*above, id(node))) for index, child in enumerate(node.value)]
            return Item(items, line, key, line)
        assert isinstance(node, yaml.ScalarNode)
        return Item(self._scalar(node, line, key), line, key, own_line + (node.style in ("|", ">")))

    def _mapping(self, node: yaml.MappingNode, key: str, above: tuple[int, ...]) -> dict[str, Item]:
        items: dict[str, Item] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            name = str(key_node.value) if isinstance(key_node, yaml.ScalarNode) else "?"
            path = f"{key}.{name}" if key else name
            if not isinstance(key_node, yaml.ScalarNode) or key_node.tag != "tag:yaml.org,2002:str":
                self.fault(line, path, f"the key {name} is not read as text by YAML.",
                           "Put quotes around it or choose another word.")
            elif name in items:
                self.fault(line, path, f"{name} stands here twice; YAML would keep only the second.", "Keep one of the two.")
            items[name] = self._item(value_node, path, above, line)
        return items

    def _scalar(self, node: yaml.ScalarNode, line: int, key: str) -> Scalar:
        written = str(node.value)
        kind = node.tag.removeprefix("tag:yaml.org,2002:")
        if kind == "str":
            if node.style is None and _LOOKS_LIKE_A_POWER.fullmatch(written):
                self.fault(line, key, f"YAML reads {written} as text, not as a number.", f"Write {_written_out(written)}.")
            return written
        if kind == "bool":
            if written.lower() not in _TRUTH_WORDS:
                self.fault(line, key, f"YAML reads {written} as true or false.",
                           f'Write "{written}" in quotes for the word, or true or false.')
            return _TRUTH_WORDS.get(written.lower(), False)
        if kind in ("int", "float"):
            return self._number(written, line, key)
        if kind == "timestamp":
            self.fault(line, key, f"YAML reads {written} as a date.", f'Write "{written}" in quotes.')
            return written
        if kind != "null":
            self.fault(line, key, f"the tag {node.tag} is not used here.", "Write plain text or a number.")
        return None

    def _number(self, written: str, line: int, key: str) -> Scalar:
        plain = written.replace("_", "")
        if not re.fullmatch(r"[-+]?(0|[1-9][0-9]*)(\.[0-9]*)?([eE][-+][0-9]{1,3})?|[-+]?\.[0-9]+", plain):
            self.fault(line, key, f"YAML reads {written} as another number than it looks, or as none.",
                       f'Write it out in decimal digits, or "{written}" in quotes for text.')
            return None
        number = Fraction(plain)
        return int(number) if number.denominator == 1 else number


class Fields:
    """A mapping of the file, read key by key. What is missing, unknown or of the wrong kind becomes a fault."""

    def __init__(self, file: YamlFile, item: Item) -> None:
        self._file = file
        self.item = item
        self._items: Mapping[str, Item] = item.value if isinstance(item.value, Mapping) else {}
        if not isinstance(item.value, Mapping):
            file.fault(item.line, item.key, "keys are expected here.", "Write `name: value` lines below it.")

    @property
    def file_name(self) -> str:
        return self._file.name

    def allow(self, *names: str) -> None:
        """Every other key is a fault."""
        for name, item in self._items.items():
            if name not in names:
                self._file.fault(item.line, item.key, f"the key {name} is not known here.", f"Known are {', '.join(names)}.")

    def fault(self, name: str, message: str, remedy: str) -> None:
        """A fault of the key `name`, or of the mapping itself where it has no such key."""
        item = self._items.get(name)
        key = ".".join(part for part in (self.item.key, name) if part)
        self._file.fault(item.line if item else self.item.line, key, message, remedy)

    def fault_at(self, item: Item, message: str, remedy: str) -> None:
        """A fault of one entry below this mapping."""
        self._file.fault(item.line, item.key, message, remedy)

    def has(self, name: str) -> bool:
        return name in self._items

    def get(self, name: str) -> Item | None:
        return self._items.get(name)

    def items(self) -> Iterator[tuple[str, Item]]:
        return iter(self._items.items())

    def text(self, name: str, *, required: bool = True) -> Item | None:
        """A text that is not empty."""
        item = self._items.get(name)
        if item is None:
            if required:
                self.fault(name, f"{name} is missing.", f"Add `{name}: ...`.")
            return None
        if not isinstance(item.value, str) or not item.value.strip():
            self._file.fault(item.line, item.key, f"{name} must be text.", "Put quotes around it.")
            return None
        return item

    def string(self, name: str, *, required: bool = True) -> str:
        item = self.text(name, required=required)
        return "" if item is None else str(item.value)

    def number(self, name: str) -> int | Fraction | None:
        """A number where the key is present."""
        item = self._items.get(name)
        return None if item is None else self.as_number(item)

    def as_number(self, item: Item) -> int | Fraction | None:
        if isinstance(item.value, (int, Fraction)) and not isinstance(item.value, bool):
            return item.value
        if isinstance(item.value, str):
            self._file.fault(item.line, item.key, f"{item.value!r} is text where a number is expected.",
                             "Write the digits without quotes, thousands set off by _ if you like: 7_000_000_000.")
        elif item.value is not None or not self._has_fault(item):
            self._file.fault(item.line, item.key, "a number is expected here.", "Write decimal digits.")
        return None

    def _has_fault(self, item: Item) -> bool:
        return any(fault.key == item.key and fault.line == item.line for fault in self._file._faults)

    def flag(self, name: str) -> bool:
        """true or false; false where the key is absent."""
        item = self._items.get(name)
        if item is not None and not isinstance(item.value, bool):
            self._file.fault(item.line, item.key, f"{name} must be true or false.", "Write true or false.")
        return item is not None and item.value is True

    def sequence(self, name: str, *, required: bool = True) -> list[Item]:
        item = self._items.get(name)
        if item is None:
            if required:
                self.fault(name, f"{name} is missing.", f"Add `{name}:` and a list; [] if there is nothing to list.")
            return []
        if not isinstance(item.value, list):
            self._file.fault(item.line, item.key, f"{name} must be a list.", "Begin each entry with `- `.")
            return []
        return item.value

    def strings(self, name: str, *, required: bool = True) -> list[Item]:
        """A list of texts."""
        entries = self.sequence(name, required=required)
        for entry in entries:
            if not isinstance(entry.value, str):
                self._file.fault(entry.line, entry.key, "this entry must be text.", "Put quotes around it.")
        return [entry for entry in entries if isinstance(entry.value, str)]

    def mappings(self, name: str, *, required: bool = True) -> list[Fields]:
        return [Fields(self._file, entry) for entry in self.sequence(name, required=required)]

    def mapping(self, name: str) -> Fields | None:
        item = self._items.get(name)
        return None if item is None else Fields(self._file, item)


def _written_out(power: str) -> str:
    """7e9 as 7_000_000_000, where that is short enough to write."""
    mantissa, _, exponent = power.lower().replace("_", "").partition("e")
    if abs(int(exponent)) > 15:
        return "all its digits"
    number = Fraction(mantissa) * Fraction(10) ** int(exponent)
    return f"{int(number):_}" if number.denominator == 1 else str(float(number))
