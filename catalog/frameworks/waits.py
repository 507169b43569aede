# SPDX-License-Identifier: Apache-2.0
"""What the columns about waiting must say, so that every wait can end."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from catalog.frameworks import Framework, PortRow, RoleRow


def complaints_of_waits(framework: Framework) -> Iterator[str]:
    """Waits that never end: the port does not exist, is not fixed or not reachable, or nodes wait for one another."""
    for name, role in framework.roles.items():
        where = f"`roles.{name}`"
        for label in (*role.awaits, *role.awaits_every):
            row = framework.port(label)
            if row is None:
                yield f"{where} awaits `{label}`, which is not the label of a port"
            else:
                yield from _of_port(where, name, role, row)
        for label in role.awaits_every:
            yield from _of_every(framework, where, label)
        if _starts_only(role) and name in _awaited_starts(framework, name):
            yield f"{where} waits for nodes that wait for it, so none of them would ever start"


def _of_port(where: str, name: str, role: RoleRow, row: PortRow) -> Iterator[str]:
    if row.default == "all" or row.pinned == "kernel-range":
        yield f"{where} awaits `{row.label}`, but the kernel picks its ports, so the port to ask is unknown"
    alone = role.maximum == 1 and set(row.listens) == {name}
    if name not in row.reached_from and not alone:
        yield f"{where} awaits `{row.label}`, which it may not reach: add `{name}` to the port's `reached_from`"


def _of_every(framework: Framework, where: str, label: str) -> Iterator[str]:
    """Before the command starts, only the program of a role's `start` can answer on its nodes."""
    row = framework.port(label)
    for name in row.listens if row else ():
        listener = framework.roles.get(name)
        if listener is not None and not listener.start:
            yield (
                f"{where} awaits `{label}` on every node of `{name}`, but nothing listens there before the command:"
                f" give `roles.{name}` a `start`"
            )


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
        for listener in {one for row in rows for one in row.listens} - needed:
            needed.add(listener)
            spec = framework.roles.get(listener)
            if spec is not None and _starts_only(spec):
                ahead.append(listener)
    return needed
