# SPDX-License-Identifier: Apache-2.0
"""Checks that a machine has what runs need. An AMI that is made for its accelerators brings all of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

from launcher.aws_dl1.accelerators import Accelerator
from launcher.aws_dl1.machine.commands import CommandError, run_program
from launcher.aws_dl1.machine.facts import MachinePaths, Settings

_IMAGE = "use an AMI made for {}, or install what is missing there"
_PLACEMENT = "start the instance through its stack, with that many EFA interfaces"


@dataclass(frozen=True)
class Equipment:
    """Something that runs need. `problem` is empty if the machine has it."""

    what: str
    problem: str
    remedy: str


def check_equipment(settings: Settings, paths: MachinePaths) -> list[Equipment]:
    """Checks everything that runs need."""
    accelerator = settings.accelerator
    software = f" release {settings.release}" if settings.release else ""
    remedy = _IMAGE.format(f"{accelerator.words}{software}" if accelerator.count else "containers")
    runtime = f" with the runtime {accelerator.runtime}" if accelerator.runtime else ""
    rows: list[tuple[str, Callable[[], str], str]] = [
        (f"docker{runtime}", lambda: _runtime_problem(accelerator.runtime), remedy),
        ("ssh-keygen", _ssh_problem, remedy),
    ]
    if accelerator.shows:
        rows.append((f"{accelerator.count} {accelerator.words}", lambda: _accelerators_problem(accelerator), remedy))
    if settings.efa_interfaces:
        what = f"{settings.efa_interfaces} EFA interfaces"
        rows.append((what, lambda: _efa_problem(settings.efa_interfaces, paths), _PLACEMENT))
    return [Equipment(what, problem(), remedy) for what, problem, remedy in rows]


def equipment_problems(equipment: list[Equipment]) -> str:
    """All problems in one line; empty if there are none."""
    return "; ".join(f"{part.problem}: {part.remedy}" for part in equipment if part.problem)


def _runtime_problem(runtime: str) -> str:
    try:
        runtimes = json.loads(run_program(["docker", "info", "--format={{json .}}"])).get("Runtimes") or {}
    except (CommandError, ValueError, AttributeError) as error:
        return f"docker does not answer ({error})"
    fits = not runtime or runtime in runtimes
    return "" if fits else f"docker has no runtime `{runtime}`, only {', '.join(sorted(runtimes))}"


def _accelerators_problem(accelerator: Accelerator) -> str:
    try:
        count = accelerator.count_shown(run_program(accelerator.shows))
    except (CommandError, ValueError) as error:
        return f"the driver of {accelerator.words} does not answer ({error})"
    fits = count >= accelerator.count
    return "" if fits else f"the driver shows {count} of {accelerator.count} {accelerator.words}"


def _ssh_problem() -> str:
    try:
        run_program(["sh", "-c", "command -v ssh-keygen"])
    except CommandError:
        return "there is no ssh-keygen"
    return ""


def _efa_problem(wanted: int, paths: MachinePaths) -> str:
    """Counts interfaces. libfabric lists each one per transport: `rdmap16s27-rdm` and `-dgrm` are one interface."""
    try:
        lines = (line.strip().partition(":") for line in run_program(["fi_info", "-p", "efa"]).splitlines())
        domains = (value.strip() for key, _, value in lines if key == "domain")
        count = len({domain.rpartition("-")[0] or domain for domain in domains})
    except CommandError as error:
        devices = "" if paths.rdma_devices.is_dir() else ", and there is no /dev/infiniband"
        return f"libfabric finds no EFA ({error}){devices}"
    return "" if count >= wanted else f"libfabric finds {count} EFA interfaces of {wanted}"
