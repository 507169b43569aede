# SPDX-License-Identifier: Apache-2.0
"""A job as text: YAML, as a cluster's REST server takes it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import yaml

# The REST server refuses a longer body with 413.
LONGEST_TEXT = 100 * 1024
# A cluster finds the secrets in the text itself: from the line that begins with this key to the next key.
_SECRETS = re.compile(r"^(secrets:).*?(?=^\w|\Z)", re.MULTILINE | re.DOTALL)
_MASK = '"******"'


_MERGE = "tag:yaml.org,2002:merge"
_MOST_TAKEN_OVER = 10_000


class NotAJobError(ValueError):
    """A text that is not one YAML mapping."""


def text_of(job: Mapping[str, Any]) -> str:
    """The job as a cluster takes it.

    Each top-level key begins a line: a cluster hides secrets by that. Values are in quotation marks: YAML in
    JavaScript takes some bare texts, such as 1e3, for numbers.
    """
    return yaml.dump(_quoted(job), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=10**9)


def parse(text: str) -> dict[str, Any]:
    """The job in a text. Raises `NotAJobError`."""
    try:
        job = yaml.load(text, Loader=_Loader)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise NotAJobError(f"this is not YAML: {' '.join(str(error).split())[:300]}") from None
    if not isinstance(job, dict):
        raise NotAJobError("this is not a job: a job is a YAML mapping")
    return job


def masked(text: str) -> str:
    """The text without its secrets, as a cluster gives it back."""
    return _SECRETS.sub(rf"\1 {_MASK}\n", text)


class _Text(str):
    __slots__ = ()


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


class _Loader(yaml.SafeLoader):
    """Texts that look like dates stay texts: no field of a job is a date.

    `<<` takes keys over from other mappings. Chained, it doubles them at each step, so what one text may take over is
    bounded.
    """

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._taken_over = 0

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        merged = [one for key, value in node.value if key.tag == _MERGE for one in _merged(value)]
        for one in merged:
            self.flatten_mapping(one)
        self._taken_over += sum(len(one.value) for one in merged)
        if self._taken_over > _MOST_TAKEN_OVER:
            raise yaml.constructor.ConstructorError(None, None, "it repeats itself too often", node.start_mark)
        super().flatten_mapping(node)


def _merged(value: yaml.Node) -> list[yaml.MappingNode]:
    nodes = value.value if isinstance(value, yaml.SequenceNode) else [value]
    return [one for one in nodes if isinstance(one, yaml.MappingNode)]


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in rows if tag != "tag:yaml.org,2002:timestamp"]
    for first, rows in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Dumper.add_representer(_Text, lambda dumper, data: dumper.represent_scalar("tag:yaml.org,2002:str", data, style='"'))


def _quoted(value: Any) -> Any:
    match value:
        case str():
            return _Text(value)
        case Mapping():
            return {str(key): _quoted(one) for key, one in value.items()}
        case list() | tuple():
            return [_quoted(one) for one in value]
        case _:
            return value
