# SPDX-License-Identifier: Apache-2.0
"""The text of a new stack file: its keys in the order of the examples, with comments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from textwrap import indent
from typing import Any

import yaml

from launcher.escaping import terminal_line

_WIDTH = 120
_JOBS = "trainyard:jobs"
_ORDER_OF_JOB = (
    "framework", "strategy", "start", "image", "shape", "cluster", "roles", "options", "ports", "speaks", "code",
    "requirements", "command", "env", "parameters", "prerequisites", "plugins", "jobPriorityClass", "inputs",
    "blockStorageGb", "maximumRuntimeMinutes", "runs",
)  # fmt: skip


def stack_config(
    team: str, environment: str, keys: Mapping[str, Any], jobs: Mapping[str, Mapping[str, Any]]
) -> Mapping[str, Any]:
    """The configuration of a stack: region, platform and names first, jobs last. `keys`: of the whole stack."""
    first = {key: value for key, value in keys.items() if not key.startswith("trainyard:") or key.endswith(":platform")}
    named = {"trainyard:team": team, "trainyard:environment": environment}
    ordered = {
        name: {key: job[key] for key in dict.fromkeys((*_ORDER_OF_JOB, *job)) if key in job}
        for name, job in jobs.items()
    }
    return {**first, **named, **keys, **({_JOBS: ordered} if ordered else {})}


def stack_text(
    head: Iterable[str],
    config: Mapping[str, Any],
    comments: Mapping[str, str] | None = None,
    notes: Mapping[str, Sequence[str]] | None = None,
) -> str:
    """`head`: comments on the whole file. `comments`: by key of the stack. `notes`: by job."""
    lines = [*map(_comment_line, head), "config:"]
    before = ""
    for key, value in config.items():
        comment = (comments or {}).get(key, "")
        if comment and comment != before:
            lines.append(f"  {_comment_line(comment)}")
        before = comment
        if key != _JOBS:
            lines.append(indent(_yaml_text(key, value), "  "))
            continue
        lines.append(f"  {key}:")
        for name, job in value.items():
            named, _, rest = _yaml_text(name, job).partition("\n")
            written = [_comment_line(note) for note in (notes or {}).get(name, ())]
            lines += [f"    {named}", *(f"      {note}" for note in written), indent(rest, "    ")]
    return "\n".join([*lines, ""])


def _comment_line(text: str) -> str:
    return f"# {terminal_line(text)}"


def _yaml_text(key: str, value: Any) -> str:
    text = yaml.dump(_Lines({key: value}), Dumper=_Dumper, sort_keys=False, width=_WIDTH, allow_unicode=True)
    return text.removesuffix("\n")


class _Lines(dict[str, Any]):
    """A table whose keys have lines of their own."""


class _Dumper(yaml.SafeDumper):
    """Writes the innermost tables on one line, and texts of several lines as such."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text.strip("\n") else None)


def _represent_mapping(dumper: yaml.SafeDumper, table: Mapping[str, Any]) -> yaml.MappingNode:
    node = dumper.represent_mapping("tag:yaml.org,2002:map", table.items())
    is_innermost = not any(isinstance(value, Mapping | list) and value for value in table.values())
    fits = len(str(dict(table))) < _WIDTH - 40 and not any("\n" in str(value) for value in table.values())
    node.flow_style = is_innermost and fits and not isinstance(table, _Lines)
    return node


def _represent_list(dumper: yaml.SafeDumper, items: list[Any]) -> yaml.SequenceNode:
    flow = not any(isinstance(item, Mapping | list) for item in items)
    return dumper.represent_sequence("tag:yaml.org,2002:seq", items, flow_style=flow)


_Dumper.add_representer(str, _represent_text)
_Dumper.add_representer(dict, _represent_mapping)
_Dumper.add_representer(_Lines, _represent_mapping)
_Dumper.add_representer(list, _represent_list)
