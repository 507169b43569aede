# SPDX-License-Identifier: Apache-2.0
"""Reads YAML with the line of every value. Aliases and tags may come from anybody."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from trainyard.bring.notes import UNREADABLE, BringError, Note
from trainyard.bring.source_text import SourceText

Path = tuple[str | int, ...]
# More values than any description of a job has: aliases of aliases would make billions.
_MOST_VALUES = 50_000
_TEMPLATE = re.compile(r"\{\{.*?\}\}")


@dataclass(frozen=True, slots=True)
class YamlDocument:
    """One document of a file. `lines`: where each value stands, by its path."""

    name: str
    data: Any
    lines: Mapping[Path, int]

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

    def table(self, *path: str | int) -> Mapping[str, Any]:
        """A table of the document; empty if it is not there."""
        value = self.at(*path)
        return value if isinstance(value, Mapping) else {}


def read_yaml_documents(source: SourceText) -> list[YamlDocument]:
    """The documents that are not empty. BringError if the file is not YAML."""
    found = []
    try:
        for node in yaml.compose_all(source.text, Loader=yaml.SafeLoader):
            lines: dict[Path, int] = {}
            data = _plain_value(node, (), lines, [0])
            if data is not None:
                found.append(YamlDocument(source.name, data, lines))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        remedy = "correct it there"
        if _TEMPLATE.search(source.text):
            remedy = "it is a template: render it first, and name the result (`helm template`, for instance)"
        raise BringError(
            Note(UNREADABLE, source.name, mark.line + 1 if mark else 0, f"it is not YAML: {error.problem}", remedy)
        ) from None
    except (yaml.YAMLError, RecursionError) as error:
        why = str(error).splitlines()[0] if str(error) else "it is too deep"
        raise BringError(Note(UNREADABLE, source.name, 0, f"it is not YAML: {why[:120]}", "correct it")) from None
    return found


def _plain_value(node: yaml.Node, path: Path, lines: dict[Path, int], count: list[int]) -> Any:
    count[0] += 1
    if count[0] > _MOST_VALUES or len(path) > 100:
        raise yaml.YAMLError("it has more values than a job can have")
    lines[path] = node.start_mark.line + 1
    if isinstance(node, yaml.MappingNode):
        return dict(_pairs_of_mapping(node, path, lines, count))
    if isinstance(node, yaml.SequenceNode):
        return [_plain_value(item, (*path, index), lines, count) for index, item in enumerate(node.value)]
    if node.tag.startswith("tag:yaml.org,2002:") and not node.tag.endswith((":binary", ":timestamp")):
        return yaml.SafeLoader("").construct_object(node)
    # Dates and values with tags of others are the texts that they are.
    return node.value


def _pairs_of_mapping(
    node: yaml.MappingNode, path: Path, lines: dict[Path, int], count: list[int]
) -> Iterator[tuple[str, Any]]:
    merged: list[yaml.Node] = []
    for key, value in node.value:
        if key.tag == "tag:yaml.org,2002:merge":
            merged += value.value if isinstance(value, yaml.SequenceNode) else [value]
    for other in merged:
        if isinstance(other, yaml.MappingNode):
            yield from _pairs_of_mapping(other, path, lines, count)
    for key, value in node.value:
        if key.tag == "tag:yaml.org,2002:merge":
            continue
        if not isinstance(key, yaml.ScalarNode):
            raise yaml.composer.ComposerError(None, None, "a key is no text", key.start_mark)
        below = _plain_value(value, (*path, key.value), lines, count)
        lines[(*path, key.value)] = key.start_mark.line + 1
        yield key.value, below
