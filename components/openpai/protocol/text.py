# SPDX-License-Identifier: Apache-2.0
"""A job as text: YAML that a cluster's REST server reads, and values in JavaScript's spelling.

Unquoted values are read as js-yaml 3.13 does, which the REST server uses (lib/js-yaml/type/*.js of that package): YAML
1.1's `yes`, `no`, `on`, `off` and `=` are texts, `1e3` is a number, and no value of a job may be a date.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

import yaml

from catalog.tables import table

_INTEGERS = (
    r"[-+]?0",
    r"[-+]?0b[01_]*[01]",
    r"[-+]?0x[0-9a-fA-F_]*[0-9a-fA-F]",
    r"[-+]?0[0-7_]*[0-7]",
    r"[-+]?[1-9](?:[0-9_]*[0-9])?(?::[0-5]?[0-9])*",
)
_FLOATS = (
    r"[-+]?(?:0|[1-9][0-9_]*)(?:\.[0-9_]*)?(?:[eE][-+]?[0-9]+)?",
    r"\.[0-9_]+(?:[eE][-+]?[0-9]+)?",
    r"[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+\.[0-9_]*",
    r"[-+]?\.(?:inf|Inf|INF)",
    r"\.(?:nan|NaN|NAN)",
)
_DATE = r"(?P<year>[0-9]{4})-(?P<month>[0-9]{2})-(?P<day>[0-9]{2})"
_TIME = (
    r"(?P<year>[0-9]{4})-(?P<month>[0-9]{1,2})-(?P<day>[0-9]{1,2})(?:[Tt]|[ \t]+)"
    r"(?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{2}):(?P<second>[0-9]{2})(?:\.[0-9]*)?"
    r"(?:[ \t]*(?:Z|(?P<sign>[-+])(?P<east>[0-9]{1,2})(?::(?P<more>[0-9]{2}))?))?"
)
_MOMENTS = (re.compile(_DATE), re.compile(_TIME))
# The REST server refuses a longer body with 413.
LONGEST_TEXT = 100 * 1024
_SECRETS, _MASK = "secrets", "******"
_MERGE = "tag:yaml.org,2002:merge"
_MOST_TAKEN_OVER = 10_000
# The two exit codes of a task that was stopped and did not fail.
STOPPED = frozenset({-210, -220})
# The words for a code of the platform without a row.
_UNDEFINED = -8000


_ROWS = (
    ("null", ("~|null|Null|NULL|",)),
    ("bool", ("true|True|TRUE|false|False|FALSE",)),
    ("int", _INTEGERS),
    ("float", tuple(f"(?:{each})(?<!_)" for each in _FLOATS)),
    ("timestamp", (re.sub(r"\?P<\w+>", "", _DATE), re.sub(r"\?P<\w+>", "", _TIME))),
    ("merge", ("<<",)),
)
RESOLVERS = tuple((f"tag:yaml.org,2002:{name}", re.compile(rf"(?:{'|'.join(texts)})\Z")) for name, texts in _ROWS)
# JavaScript has one kind of numbers. Below this one, it writes 2.0 as 2.
_EXACT = 1 << 53


class Moment(str):
    """A date in JavaScript's spelling. It does not count as a text, so fields for texts refuse it."""

    __slots__ = ()


def parse_moment(text: str) -> Moment:
    parts = next((found for each in _MOMENTS if (found := each.fullmatch(text))), None)
    if parts is None:
        raise ValueError("this is not a date")
    part = {name: int(value) for name, value in parts.groupdict().items() if value and name != "sign"}
    years, month = divmod(part["month"] - 1, 12)
    when = datetime(part["year"] + years, month + 1, 1, tzinfo=UTC) + timedelta(
        days=part["day"] - 1, hours=part.get("hour", 0), minutes=part.get("minute", 0), seconds=part.get("second", 0)
    )
    east = timedelta(hours=part.get("east", 0), minutes=part.get("more", 0))
    when += east if parts.groupdict().get("sign") == "-" else -east
    return Moment(when.strftime("%a %b %d %Y %H:%M:%S GMT+0000 (Coordinated Universal Time)"))


def shortest_number(value: float) -> int | float:
    return int(value) if abs(value) < _EXACT and value.is_integer() else value


class NotAJobError(ValueError):
    """The text is not one YAML mapping."""


class NotYamlError(NotAJobError):
    """The text is not YAML."""


def text_of(job: Mapping[str, Any]) -> str:
    """The job as YAML for a cluster.

    Each top-level key begins a line, because otherwise a cluster would not find and hide the secrets. Values are
    quoted, because YAML in JavaScript takes some unquoted texts, such as 1e3, for numbers.
    """
    return yaml.dump(_quote_texts(job), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=10**9)


def parse_job_text(text: str) -> dict[str, Any]:
    """The job in a text, read as the REST server reads it. Raises `NotAJobError`."""
    try:
        job = yaml.load(text, Loader=_Loader)
    except (yaml.YAMLError, ValueError, OverflowError, RecursionError) as error:
        raise NotYamlError(f"this is not YAML: {' '.join(str(error).split())[:300]}") from None
    if not isinstance(job, dict):
        raise NotAJobError("this is not a job: a job is a YAML mapping")
    return job


def mask_job_secrets(job: Mapping[str, Any]) -> dict[str, Any]:
    """The job without its secrets, which all users may read.

    A cluster searches the text for lines that begin with `secrets:`. Here the parsed value is replaced, so that secrets
    are found in any spelling.
    """
    return {key: _MASK if key == _SECRETS else value for key, value in job.items()}


def shares_secrets(text: str) -> bool:
    """Whether a value of a job's secrets is used elsewhere by a YAML alias. `parse` must be able to read the text."""
    loader = _Loader(text)
    own: list[yaml.Node] = []
    others: list[yaml.Node] = []
    job = loader.get_single_node()
    if isinstance(job, yaml.MappingNode):
        loader.flatten_mapping(job)
        for key, value in job.value:
            is_secret = javascript_text(loader.construct_object(key, deep=True)) == _SECRETS
            (own if is_secret else others).append(value)
    return not _reachable_nodes(own).isdisjoint(_reachable_nodes(others))


def javascript_text(value: Any) -> str:
    """A value in the spelling of JavaScript."""
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case float() if value.is_integer():
            return str(int(value))
        case list():
            return ",".join("" if one is None else javascript_text(one) for one in value)
        case Mapping():
            return "[object Object]"
        case _:
            return str(value)


class _Text(str):
    __slots__ = ()


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


class _Loader(yaml.SafeLoader):
    """Reads unquoted values as js-yaml does.

    `<<` copies keys from other mappings. A chain of them can double their number at each step, so the total is limited.
    """

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._taken_over = 0

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        merged = [one for key, value in node.value if key.tag == _MERGE for one in _merged_mappings(value)]
        for one in merged:
            self.flatten_mapping(one)
        self._taken_over += sum(len(one.value) for one in merged)
        if self._taken_over > _MOST_TAKEN_OVER:
            raise yaml.constructor.ConstructorError(None, None, "it repeats itself too often", node.start_mark)
        super().flatten_mapping(node)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Keys are texts, and must not repeat, as in js-yaml's loader.js."""
        if not isinstance(node, yaml.MappingNode):
            return super().construct_mapping(node, deep)
        own = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode) and key.tag != _MERGE]
        if twice := _first_repeated(own):
            raise yaml.constructor.ConstructorError(None, None, f"the key {twice[:60]!r} occurs twice", node.start_mark)
        self.flatten_mapping(node)
        pairs = [(javascript_text(self.construct_object(key, deep=True)), value) for key, value in node.value]
        return {key: self.construct_object(value, deep=deep) for key, value in pairs}

    def construct_moment(self, node: Any) -> Moment:
        return parse_moment(self.construct_text(node))

    def construct_text(self, node: Any) -> str:
        return str(self.construct_scalar(node))

    def construct_number(self, node: Any) -> float:
        return shortest_number(self.construct_yaml_float(node))


def _first_repeated(keys: list[str]) -> str | None:
    """The first repeated key."""
    seen: set[str] = set()
    for key in keys:
        if key in seen:
            return key
        seen.add(key)
    return None


def _reachable_nodes(nodes: Iterable[yaml.Node]) -> set[int]:
    """These nodes and all below them. An alias gives the same node at each place."""
    left, seen = list(nodes), set[int]()
    while left:
        node = left.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, yaml.MappingNode):
            left += [each for pair in node.value for each in pair]
        elif isinstance(node, yaml.SequenceNode):
            left += node.value
    return seen


def _merged_mappings(value: yaml.Node) -> list[yaml.MappingNode]:
    nodes = value.value if isinstance(value, yaml.SequenceNode) else [value]
    return [one for one in nodes if isinstance(one, yaml.MappingNode)]


_Loader.yaml_implicit_resolvers = {None: list(RESOLVERS)}
_Loader.add_constructor(_MERGE, _Loader.construct_text)  # as a value, `<<` is a text
_Loader.add_constructor("tag:yaml.org,2002:timestamp", _Loader.construct_moment)
_Loader.add_constructor("tag:yaml.org,2002:float", _Loader.construct_number)
_Dumper.add_representer(_Text, lambda dumper, data: dumper.represent_scalar("tag:yaml.org,2002:str", data, style='"'))


def _quote_texts(value: Any) -> Any:
    match value:
        case str():
            return _Text(value)
        case Mapping():
            return {str(key): _quote_texts(one) for key, one in value.items()}
        case list() | tuple():
            return [_quote_texts(one) for one in value]
        case _:
            return value


@dataclass(frozen=True, slots=True)
class Exit:
    """`kind`: transient, permanent or unknown, by which OpenPAI decides about retries."""

    code: int
    phrase: str
    kind: str
    words: str
    began: bool = True

    @property
    def text(self) -> str:
        """The code in words. A program's own exit code has no explanation."""
        return f"exit code {self.code}" + (f": {self.words}" if self.words else "")


@cache
def _exit_rows() -> Mapping[int, Exit]:
    rows = ({key: value for key, value in row.items() if key != "when"} for row in table("openpai_exits")["exit"])
    return {row["code"]: Exit(**row) for row in rows}


def exit_of(code: int) -> Exit:
    """The meaning of a code. A code without a row is the program's own, or of a newer OpenPAI."""
    if code in _exit_rows():
        return _exit_rows()[code]
    undefined = _exit_rows()[_UNDEFINED]
    if code > 0:
        return Exit(code, "", undefined.kind, "")
    return Exit(code, undefined.phrase, undefined.kind, undefined.words)


def code_in(values: Mapping[str, Any], key: str) -> int | None:
    code = values.get(key)
    return code if type(code) is int else None
