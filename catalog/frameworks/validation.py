# SPDX-License-Identifier: Apache-2.0
"""Checks that the columns of a framework fit together, so that a plan can be made and nodes can start."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import TYPE_CHECKING, Any

from catalog.frameworks.columns import FrameworkError

if TYPE_CHECKING:
    from catalog.frameworks import Framework, PortRow, RoleRow, StartOption

# Placeholders that a node fills in. docs/launcher.md explains them.
OF_A_NODE = frozenset({
    "rank", "nodes", "fewest", "role", "index", "run", "python", "launcher", "life", "address", "interface",
    "processes", "world", "scratch",
})  # fmt: skip
OF_A_PROCESS = frozenset({"local", "process"})
OF_TENSORFLOW = frozenset({"tf_config"})
_PLACEHOLDER = re.compile(r"\{([a-z_]+(?:\.[A-Za-z0-9_-]+)?(?::[a-z]+)?)\}")
# The forms of a port range: `8700-8800` (the placeholder itself), `8700:8800`, or one of its ends.
FORMS_OF_A_PORT = ("", ":colon", ":first", ":last")
_NAME = re.compile(r"[A-Za-z0-9_-]{1,40}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PORTS = re.compile(r"([0-9]{1,5})-([0-9]{1,5})")
_HIGHEST_PORT = 65535
_TYPES: Mapping[str, tuple[type, ...]] = {
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "string": (str,),
}


def waiting_problems(framework: Framework) -> Iterator[str]:
    """Waits that never end: the port does not exist, is not fixed or not reachable, or nodes wait for one another."""
    for name, role in framework.roles.items():
        where = f"`roles.{name}`"
        for label in (*role.awaits, *role.awaits_every):
            row = framework.port(label)
            if row is None:
                yield f"{where} awaits `{label}`, which is not the label of a port"
                continue
            if row.default == "all" or row.pinned == "kernel-range":
                yield f"{where} awaits `{row.label}`, but the kernel picks its ports, so the port to ask is unknown"
            if row.protocol == "udp":
                yield f"{where} awaits `{row.label}`, whose protocol is UDP, so nothing says whether it answers"
            alone = role.maximum == 1 and set(row.listens) == {name}
            if name not in row.reached_from and not alone:
                yield f"{where} awaits `{row.label}`, which it may not reach: add `{name}` to the port's `reached_from`"
        for label in role.awaits_every:
            row = framework.port(label)
            listeners = [listener for listener in row.listens if listener in framework.roles] if row else []
            # Before the command starts, only the program of a role's `start` can answer on its nodes.
            for listener in (listener for listener in listeners if not framework.roles[listener].start):
                yield (
                    f"{where} awaits `{label}` on every node of `{listener}`, but nothing listens there before the"
                    f" command: give `roles.{listener}` a `start`"
                )
        if _starts_only(role) and name in _awaited_starts(framework, name):
            yield f"{where} waits for nodes that wait for it, so none of them would ever start"


def _starts_only(role: RoleRow) -> bool:
    """Whether a role waits before its `start`. A role with a command starts first, and then waits."""
    return bool(role.start) and not role.runs_command


def _awaited_starts(framework: Framework, name: str) -> set[str]:
    """Every role that must start before this one, directly or through other roles."""
    needed: set[str] = set()
    ahead = [name]
    while ahead:
        role = framework.roles[ahead.pop()]
        rows = filter(None, map(framework.port, (*role.awaits, *role.awaits_every)))
        for listener in {listener for row in rows for listener in row.listens} - needed:
            needed.add(listener)
            spec = framework.roles.get(listener)
            if spec is not None and _starts_only(spec):
                ahead.append(listener)
    return needed


def require_valid(framework: Framework) -> None:
    """Raises FrameworkError for the first problem."""
    problems = chain(
        _role_problems(framework),
        _option_problems(framework),
        *(_port_problems(framework, port) for port in framework.ports),
        _reference_problems(framework),
        waiting_problems(framework),
        _placeholder_problems(framework),
    )
    for problem in problems:
        raise FrameworkError(problem)


def _role_problems(framework: Framework) -> Iterator[str]:
    for kind, names in (("roles", framework.roles), ("options", framework.options)):
        wrong = next((name for name in names if not _NAME.fullmatch(name)), None)
        if wrong is not None:
            yield f"`{kind}` has `{wrong}`: names have letters, digits, `-` and `_`"
    wrong_label = next((port.label for port in framework.ports if not _NAME.fullmatch(port.label)), None)
    if wrong_label is not None:
        yield f"`ports` has the label `{wrong_label}`: labels have letters, digits, `-` and `_`"
    if not framework.roles:
        yield "`roles` is empty"
    labels = [port.label for port in framework.ports]
    for name, role in framework.roles.items():
        where = f"`roles.{name}`"
        if role.minimum < 0 or (role.maximum is not None and role.maximum < max(1, role.minimum)):
            yield f"{where}: `minimum` must be 0 or more, and `maximum` must not be smaller"
        if not role.start and not role.runs_command:
            yield f"{where} has nothing to run: give it `start`, or `runs_command = true`"
    if len(set(labels)) < len(labels):
        yield f"`ports` has the label `{next(label for label in labels if labels.count(label) > 1)}` twice"


def _option_problems(framework: Framework) -> Iterator[str]:
    for name, row in framework.options.items():
        where = f"`options.{name}`"
        if type(row.default) not in _TYPES[row.type]:
            yield f"{where}: `default` is not of the type {row.type}"
        elif row.values and row.default not in row.values:
            yield f"{where}: `default` is not one of its `values`"
        elif isinstance(row.default, int | float) and not _is_within_bounds(row.default, row.minimum, row.maximum):
            yield f"{where}: `default` is outside `minimum` and `maximum`"
        if row.several_need is not None and row.several_need not in framework.options:
            yield f"{where}: `several_need` names the option `{row.several_need}`, which does not exist"


def _is_within_bounds(value: float, least: float | None, most: float | None) -> bool:
    """Whether a value is within bounds. `nan` never is, and is not a bound either."""
    bounds = [bound for bound in (least, most) if bound is not None]
    return all(map(math.isfinite, (value, *bounds))) and all(
        (least is None or value >= least, most is None or value <= most)
    )


def _port_problems(framework: Framework, port: PortRow) -> Iterator[str]:
    where = f"the port `{port.label}`"
    if not port.listens:
        yield f"{where} needs a role that `listens`"
    for role in (*port.listens, *port.reached_from):
        if role not in framework.roles:
            yield f"{where} names the role `{role}`, and {_list_or_none(framework.roles)} there are"
    if port.default == "all":
        first, last = 1, _HIGHEST_PORT
    elif isinstance(port.default, int):
        first = last = port.default
    else:
        match = _PORTS.fullmatch(port.default)
        first, last = (int(match[1]), int(match[2])) if match else (0, 0)
    if not 0 < first <= last <= _HIGHEST_PORT:
        yield f'{where}: `default` must be a port, a range such as "8700-8800", or "all"'
    elif not 1 <= port.minimum_size <= last - first + 1:
        yield f"{where}: `default` has fewer ports than `minimum_size`"


def _reference_problems(framework: Framework) -> Iterator[str]:
    """Other columns must name existing options and roles."""
    for port in framework.ports:
        yield from _named_option_problems(framework, port.when, f"the port `{port.label}`: `when`")
        yield from _named_option_problems(framework, port.per_node, f"the port `{port.label}`: `per_node`", "integer")
    yield from _named_option_problems(framework, framework.processes, "`processes`", "integer")
    for wrap in framework.wraps:
        yield from _named_option_problems(framework, wrap.when, "`wraps`: `when`")
    added = (("`start_options`", framework.start_options), ("`ads.start_options`", _of_ads(framework)))
    for where, extra in ((where, extra) for where, extras in added for extra in extras):
        yield from _named_option_problems(framework, extra.when, f"{where}: `when`")
        if extra.role not in framework.roles:
            yield f"{where} names the role `{extra.role}`, and {_list_or_none(framework.roles)} there are"


def _of_ads(framework: Framework) -> tuple[StartOption, ...]:
    return framework.ads.start_options if framework.ads else ()


def _named_option_problems(
    framework: Framework, name: str | None, where: str, kind: str | None = None
) -> Iterator[str]:
    if name is None:
        return
    row = framework.options.get(name)
    if row is None:
        yield f"{where} names the option `{name}`, which does not exist"
    elif kind is not None and row.type != kind:
        yield f"{where} names the option `{name}`, which is not of the type {kind}"


def _list_or_none(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names) or "no roles"


def _placeholder_problems(framework: Framework) -> Iterator[str]:
    """Finds unknown placeholders, which would stay in the text."""
    planned = {f"option.{name}" for name in framework.options} | {"nodes"}
    planned |= {f"port.{port.label}{end}" for port in framework.ports for end in FORMS_OF_A_PORT}
    node = planned | OF_A_NODE | {f"{kind}.{role}" for role in framework.roles for kind in ("address", "addresses")}
    process = node | OF_A_PROCESS | (OF_TENSORFLOW if framework.name == "tensorflow" else set())
    texts: list[tuple[str, Any, set[str]]] = [
        *((f"`roles.{name}.start`", role.start, node) for name, role in framework.roles.items()),
        *((f"`roles.{name}.awaits_command`", role.awaits_command, node) for name, role in framework.roles.items()),
        *(("`start_options`", (*extra.then, *extra.otherwise), node) for extra in framework.start_options),
        *(("`wraps`", wrap.words, process) for wrap in framework.wraps),
        ("`environment`", framework.environment, process),
        *((f"`options.{name}.environment`", row.environment, process) for name, row in framework.options.items()),
    ]
    if framework.ads:
        texts += [
            ("`ads.start_arguments`", framework.ads.start_arguments, planned),
            *(("`ads.start_options`", (*extra.then, *extra.otherwise), planned) for extra in _of_ads(framework)),
            ("`ads.environment`", framework.ads.environment, planned),
        ]
    for where, part, answered in texts:
        if isinstance(part, Mapping):
            wrong = next((name for name in part if not _VARIABLE.fullmatch(name)), None)
            if wrong is not None:
                yield f"{where} has `{wrong}`, which is not a valid name of a variable"
            part = part.values()
        for name in (name for text in part for name in _PLACEHOLDER.findall(text) if name not in answered):
            yield f"{where} has the placeholder `{{{name}}}`, which nothing fills in"
