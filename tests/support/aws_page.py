# SPDX-License-Identifier: Apache-2.0
"""The tables of docs/aws.md, from the rows of the catalog. `python -m tests.support.aws_page` writes them anew."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from catalog.aws import AwsMachine, accelerators, aws_machine
from catalog.tables import table

PAGE = Path(__file__).parents[2] / "docs" / "aws.md"
UNKNOWN = "unknown"


def render_aws_page(text: str) -> str:
    """The page with tables of today's rows in place of its own. KeyError if the page lacks one."""
    for name, lines in {"machines": _machine_lines(), "quotas": _quota_lines(), "images": _image_lines()}.items():
        block = re.compile(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.DOTALL)
        if not block.search(text):
            raise KeyError(name)
        text = block.sub("".join((r"\g<1>", *(f"{line}\n" for line in lines), r"\g<2>")), text)
    return text


def _machine_lines() -> Iterator[str]:
    yield "| machine | accelerators | vCPUs | GiB | local disks | EFA | addresses | blocks | quota | $ an hour |"
    yield "| --- | --- | ---: | ---: | --- | ---: | ---: | --- | --- | ---: |"
    prices = table("aws_machines")["usd_per_hour"]
    for name in table("aws_machines")["machines"]:
        machine = aws_machine(name)
        assert machine is not None
        cells = (
            f"`{name}`", _accelerator_words(machine), machine.vcpus, f"{machine.memory_gb:g}", _disk_words(machine),
            machine.efa_interfaces or "-", sum(one.has_address for one in machine.interfaces(machine.efa_interfaces)),
            "yes" if machine.blocks else "no", machine.quota, f"{prices[name]:.2f}" if name in prices else UNKNOWN,
        )  # fmt: skip
        yield f"| {' | '.join(map(str, cells))} |"


def _accelerator_words(machine: AwsMachine) -> str:
    return f"{machine.accelerators} {machine.model}" if machine.accelerators else "none"


def _disk_words(machine: AwsMachine) -> str:
    return f"{machine.disks} x {machine.disk_gb} GB" if machine.disks else "none"


def _quota_lines() -> Iterator[str]:
    yield "| quota | counts the vCPUs of running | On-Demand | spot |"
    yield "| --- | --- | --- | --- |"
    rows: Mapping[str, Mapping[str, Any]] = table("aws_machines")["quotas"]
    for name, row in rows.items():
        yield f"| {name} | {row['words']} | {row['on_demand']} | {row.get('spot', UNKNOWN)} |"


def _image_lines() -> Iterator[str]:
    yield "| `ami` | for machines with | the public parameter |"
    yield "| --- | --- | --- |"
    for name, row in accelerators().items():
        if row.ami:
            yield f"| `{name}` | {row.words} | `{row.ami}` |"


if __name__ == "__main__":
    PAGE.write_text(render_aws_page(PAGE.read_text("utf-8")), "utf-8")
