# SPDX-License-Identifier: Apache-2.0
"""Runs programs with Pulumi's mocks, one stack after the other. Each runs in a fork, so that none influences the next.

It reads a line of JSON (file, preview, references, root) and writes a line of JSON for each. Pulumi is imported only
once, before the first fork.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import logging
import os
import sys
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pulumi

from components.program import STACKS, run
from tests.support.recorder.answers import HOME_REGION, Cloud
from trainyard.review.monitor import RecordingMonitor, plain_property, read_stack_configuration

# pulumi_oci imports its modules on first use. They are used here, so that not every fork has to import them.
USED = ("artifacts", "core", "datascience", "identity", "logging", "objectstorage", "vault")
# The packages of other platforms are small, so importing them takes little time.
PLATFORMS = ("components.oci.resources.deploy", "components.aws.resources.deploy")
NOBODY = 65534


class Told(logging.Handler):
    """The messages that the program logs through Pulumi."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.warnings: list[str] = []
        self.logger = logging.getLogger("told")
        self.logger.addHandler(self)
        self.logger.propagate = False

    def emit(self, record: logging.LogRecord) -> None:
        self.warnings.append(record.getMessage())


async def _exports(monitor: RecordingMonitor) -> dict[str, Any]:
    root = pulumi.runtime.get_root_resource()
    exported: dict[str, Any] = {}
    for name, value in dict(getattr(root, "outputs", {})).items():
        output = pulumi.Output.from_input(value)
        resolved = await output.future(with_unknowns=True)
        known = await output.is_known()
        exported[name] = {"(secret)": resolved} if await output.is_secret() else resolved if known else {"(unknown)": 1}
    return exported


def record(request: Mapping[str, Any]) -> dict[str, Any]:
    """Records everything that the program of one stack file registers with Pulumi."""
    file = Path(request["file"])
    monitor = RecordingMonitor(Cloud(request["preview"], request["references"], request["home"] or HOME_REGION))
    name = file.stem.removeprefix("Pulumi.")
    told = Told()
    pulumi.runtime.set_mocks(
        monitor.mocks,
        project="trainyard",
        stack=name,
        preview=request["preview"],
        monitor=monitor,
        organization="organization",
        logger=told.logger,
    )
    pulumi.runtime.settings.SETTINGS.root_directory = str(file.parent)
    os.chdir(request["root"])
    os.environ.update({STACKS: str(file.parent), **request["variables"]})
    if request["locked"]:
        _lock()
    pulumi.runtime.set_all_config(*read_stack_configuration(file))

    async def main() -> dict[str, Any]:
        await pulumi.runtime.stack.run_pulumi_func(run)
        return await _exports(monitor)

    exports = asyncio.get_event_loop().run_until_complete(main())
    return {
        "resources": monitor.recorded,
        "invokes": monitor.invoked,
        "exports": plain_property(exports),
        "warnings": told.warnings,
    }


def _lock() -> None:
    """Makes a folder read-only. Root may write everywhere, and `os.access` looks at the real user: so the process
    becomes `nobody`."""
    os.chmod(".", 0o555)
    if os.getuid() == 0:
        os.setresuid(NOBODY, 0, 0)


def answer(line: str) -> str:
    try:
        return json.dumps(record(json.loads(line)))
    except Exception:
        return json.dumps({"error": traceback.format_exc()})


def serve() -> None:
    for module in PLATFORMS:
        importlib.import_module(module)
    for module in USED:
        getattr(importlib.import_module(f"pulumi_oci.{module}"), "__all__", None)
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            print(answer(line), flush=True)
            # Ends at once, so that neither threads of the program's event loop nor this process's copied loop keep the
            # fork alive.
            os._exit(0)
        os.waitpid(child, 0)


if __name__ == "__main__":
    serve()
