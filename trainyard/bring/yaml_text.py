# SPDX-License-Identifier: Apache-2.0
"""Reads YAML with the line of every value. Aliases and tags may come from anybody."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from trainyard.bring.notes import UNREADABLE, BringError, Note
from trainyard.bring.source_text import SourceText

Path = tuple[str | int, ...]
# More values than any description of a job has: aliases of aliases would make billions.
_MOST_VALUES = 50_000
_HELM = re.compile(
    r"\{\{-?\s*(?:\$?\.(?:Values|Release|Chart|Capabilities|Files)\b|(?:if|else|end|range|with|include|define|template"
    r"|toYaml|tpl|block)\b)"
)
_TEMPLATE = re.compile(r"\{\{.*?\}\}")


@dataclass(frozen=True, slots=True)
class YamlDocument:
    """One document of a file. `lines`: where each value stands, by its path. `written`: values that are not texts, as
    the file writes them."""

    name: str
    data: Any
    lines: Mapping[Path, int]
    written: Mapping[Path, str] = field(default_factory=dict)

    def line(self, *path: str | int) -> int:
        """The line of a value, or of the nearest one around it."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)

    def at(self, *path: str | int) -> Any:
        """A value; None if it is not there."""
        value: Any = self.data
        for step in path:
            try:
                value = value[step] if isinstance(value, Mapping) else value[int(step)]
            except (KeyError, IndexError, TypeError, ValueError):
                return None
        return value

    def text(self, *path: str | int) -> str:
        """A value as the file writes it: `yes` and `1e3` are texts to others. Empty if it is none, or a table."""
        value = self.at(*path)
        return "" if value is None or isinstance(value, Mapping | list) else self.written.get(path, str(value))

    def items(self, *path: str | int) -> list[Any]:
        """A list of the document; empty if it is not there."""
        value = self.at(*path)
        return value if isinstance(value, list) else []

    def table(self, *path: str | int) -> Mapping[str, Any]:
        """A table of the document; empty if it is not there."""
        value = self.at(*path)
        return value if isinstance(value, Mapping) else {}


def read_yaml_documents(source: SourceText) -> list[YamlDocument]:
    """The documents that are not empty. BringError if the file is not YAML."""
    found = []
    for number, line in enumerate(source.text.split("\n"), 1):
        if _HELM.search(line) and not line.lstrip().startswith("#"):
            message = "it is a template of Helm, whose values are elsewhere"
            remedy = "render it first (`helm template`), and name the result"
            raise BringError(Note(UNREADABLE, source.name, number, message, remedy))
    try:
        for node in yaml.compose_all(source.text, Loader=yaml.SafeLoader):
            reader = _DocumentReader()
            data = reader.value(node)
            if data is not None:
                found.append(YamlDocument(source.name, data, reader.lines, reader.written))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        remedy = "correct it there"
        if _TEMPLATE.search(source.text):
            remedy = "it is a template: render it first, and name the result (`helm template`, for instance)"
        raise BringError(
            Note(UNREADABLE, source.name, mark.line + 1 if mark else 0, f"it is not YAML: {error.problem}", remedy)
        ) from None
    except (yaml.YAMLError, RecursionError, ValueError, KeyError) as error:
        why = str(error).splitlines()[0] if str(error) else "it is too deep"
        raise BringError(Note(UNREADABLE, source.name, 0, f"it is not YAML: {why[:120]}", "correct it")) from None
    return found


class _DocumentReader:
    """Makes plain values of the nodes of a document, and keeps where each stands and how it is written."""

    def __init__(self) -> None:
        self.lines: dict[Path, int] = {}
        self.written: dict[Path, str] = {}
        self._count = 0

    def value(self, node: yaml.Node, path: Path = ()) -> Any:
        self._count += 1
        if self._count > _MOST_VALUES or len(path) > 100:
            raise yaml.YAMLError("it has more values than a job can have")
        self.lines[path] = node.start_mark.line + 1
        if isinstance(node, yaml.MappingNode):
            return dict(self._pairs(node, path))
        if isinstance(node, yaml.SequenceNode):
            return [self.value(item, (*path, index)) for index, item in enumerate(node.value)]
        # Dates and values with tags of others are the texts that they are.
        if not node.tag.startswith("tag:yaml.org,2002:") or node.tag.endswith((":binary", ":timestamp", ":value")):
            return node.value
        self.written[path] = node.value
        return yaml.SafeLoader("").construct_object(node)

    def _pairs(self, node: yaml.MappingNode, path: Path) -> Iterator[tuple[str, Any]]:
        merged: list[yaml.Node] = []
        for key, value in node.value:
            if key.tag == "tag:yaml.org,2002:merge":
                merged += value.value if isinstance(value, yaml.SequenceNode) else [value]
        for other in merged:
            if isinstance(other, yaml.MappingNode):
                yield from self._pairs(other, path)
        for key, value in node.value:
            if key.tag == "tag:yaml.org,2002:merge":
                continue
            if not isinstance(key, yaml.ScalarNode):
                raise yaml.composer.ComposerError(None, None, "a key is no text", key.start_mark)
            below = self.value(value, (*path, key.value))
            self.lines[(*path, key.value)] = key.start_mark.line + 1
            yield key.value, below
