# SPDX-License-Identifier: Apache-2.0
"""`python -m tests.frameworks.ports [--documented] [EXAMPLE…]`: measures the table of docs/ports.md again.

Each example trains on three hosts of a local cloud under the planned rules; the output shows which node connected to
which, and on which port. With --documented only the ports of Oracle's documents are open, and the output shows how the
run ended, and when.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from catalog import frameworks
from components.values.security_rules import SecurityRule, port_range_text
from tests.support.cloud_fixture import Clients, local_cloud
from tests.support.cloud_world import World
from tests.support.field import Field, Run
from tests.support.framework_examples import EXAMPLES, Example

NODES = 3
LONGEST_SECONDS = 900.0


def main(words: list[str]) -> int:
    documented = "--documented" in words
    names = [word for word in words if not word.startswith("-")] or list(EXAMPLES)
    with tempfile.TemporaryDirectory() as home, local_cloud(Path(home) / "cloud") as cloud:
        field = Field(World(Clients(cloud)))
        for name in names:
            rows = _documented(field, EXAMPLES[name]) if documented else _planned(field, EXAMPLES[name])
            for row in rows:
                print(f"| {name} | {row} |", flush=True)
    return 0


def _planned(field: Field, example: Example) -> Iterator[str]:
    with field.run(example.job(NODES), example.folder, example.environment()) as run:
        run.succeeds()
        by_port: Counter[tuple[str, str, str]] = Counter()
        for (source, target, port), connections in run.flowed().items():
            by_port[(_role(run, source), _role(run, target), _named(run, port))] += connections
        for (first, second, ports), connections in sorted(by_port.items()):
            yield f"{first} -> {second} | {ports} | {connections}"


def _documented(field: Field, example: Example) -> Iterator[str]:
    """The documented ports, and the ports of a framework that a documented port represents."""
    rows = frameworks.framework_row(example.framework, example.strategy).ports
    known = {str(row.default) for row in rows if row.documented}
    began = time.monotonic()

    def open_now(rule: SecurityRule) -> bool:
        return rule.ports is None or port_range_text(rule.ports, "all") in known

    with field.run(example.job(NODES), example.folder, example.environment(), only=open_now) as run:
        try:
            states = run.finished(LONGEST_SECONDS)
        except AssertionError:
            states = run.states()
        seconds = time.monotonic() - began
        dropped = Counter(_named(run, port) for _, _, port in run.dropped())
        yield f"{', '.join(states)} | after {seconds:.0f} s | dropped: {dict(dropped)}"
        yield from [line for line in run.printed().splitlines() if "rror" in line or "imeout" in line][-6:]


def _role(run: Run, rank: int) -> str:
    return run.documents[rank].role


def _named(run: Run, port: int) -> str:
    for label, row in run.documents[0].launch["ports"].items():
        if row["range"] and row["range"][0] <= port <= row["range"][1]:
            return f"{label} {_text(*row['range'])}"
    return "another port"


def _text(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}-{last}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
