# SPDX-License-Identifier: Apache-2.0
"""`python -m trainyard.review.record`: runs the programs of stacks against a monitor that only writes down.

A line of JSON in (file, root, state), a line of JSON out (a `Recorded`, or an error). Each program runs in a fork, so
none leaves anything behind for the next; Pulumi is imported once, before the first fork. No engine, no cloud, no
credentials: what a program looks up is answered from its own stack file (components/platform/review.py), and what it
asks of its own state from the other side's recording.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import logging
import os
import signal
import sys
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pulumi

from catalog.platforms import platform_in
from components.plan.build import WARNINGS_SHOWN, plan_of
from components.plan.show import plain as plain_plan
from components.platform.base import answers
from components.platform.review import SECRET, OfflineStack, Snapshot
from components.program import STACKS, run
from components.runs import ARTIFACTS
from schemas.judge import judge_file
from trainyard.review.monitor import ORGANIZATION, MockedCloud, RecordingMonitor, configuration, encrypted_texts, plain
from trainyard.review.recorder import Recorded, masked, resource_of

# A program takes a second. One that waits for what never comes ends too; a busy machine may take long for the second.
SECONDS = 900
_STACK_TYPE = "pulumi:pulumi:Stack"
_ABOVE = "pulumi:"
# Packages of these names are read in parts, as programs need them.
_SDKS = ("pulumi_", "components.")


class _Remarks(logging.Handler):
    """What the program tells people."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.texts: list[str] = []
        self.logger = logging.getLogger("program")
        self.logger.addHandler(self)
        self.logger.propagate = False

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())


async def _exports() -> dict[str, Any]:
    root = pulumi.runtime.get_root_resource()
    exported: dict[str, Any] = {}
    for name, value in dict(getattr(root, "outputs", {})).items():
        output = pulumi.Output.from_input(value)
        resolved = await output.future(with_unknowns=True)
        exported[name] = SECRET if await output.is_secret() else resolved
    return exported


def record(request: Mapping[str, Any]) -> dict[str, Any]:
    """All that the program of one stack file asks of Pulumi."""
    file, state = Path(request["file"]), request.get("state") or {}
    name = file.stem.removeprefix("Pulumi.")
    judged = judge_file(file)
    data = judged.source.data
    written = data.get("config") if isinstance(data, Mapping) else None
    written = written if isinstance(written, Mapping) else {}
    platform = platform_in(written)
    if judged.errors:
        return Recorded(Snapshot(name, platform, {}, (), refused=_first_error(judged.errors))).as_json()
    stack, project = OfflineStack(name, written), "trainyard"
    monitor = RecordingMonitor(MockedCloud(answers(platform).offline, stack, project, state))
    remarks, exports, refused = _run(monitor, file, request["root"], name, project)
    rows = [row for row in monitor.recorded if "read" not in row and row["type"] != _STACK_TYPE]
    recorded = Recorded(
        Snapshot(
            name,
            platform,
            plain_plan(plan_of(judged)),
            tuple(resource_of(row) for row in sorted(rows, key=lambda row: row["urn"])),
            tuple(remarks),
            refused,
        ),
        masked(plain(exports)),
        {row["urn"]: masked(row["outputs"]) for row in rows if row["custom"] and not row["type"].startswith(_ABOVE)},
    )
    return _without(recorded.as_json(), encrypted_texts(file))  # type: ignore[no-any-return]


def _run(
    monitor: RecordingMonitor, file: Path, root: str, name: str, project: str
) -> tuple[list[str], dict[str, Any], str]:
    told = _Remarks()
    pulumi.runtime.set_mocks(
        monitor.mocks, project=project, stack=name, preview=False, monitor=monitor, organization=ORGANIZATION,
        logger=told.logger,
    )  # fmt: skip
    pulumi.runtime.settings.SETTINGS.root_directory = str(file.parent)
    os.chdir(root)
    # Findings of the file are read where they are: the program need not repeat them.
    os.environ.update({STACKS: str(file.parent), WARNINGS_SHOWN: "1"})
    # Packed code is named by its content, below the folder of this recording: the same on both sides.
    os.environ.pop(ARTIFACTS, None)
    pulumi.runtime.set_all_config(*configuration(file))

    async def main() -> dict[str, Any]:
        await pulumi.runtime.stack.run_pulumi_func(run)
        return await _exports()

    try:
        return told.texts, asyncio.get_event_loop().run_until_complete(main()), ""
    except pulumi.RunError as refused:
        return told.texts, {}, str(refused)


def _first_error(errors: Any) -> str:
    return "The stack file has errors: " + "; ".join(f"{one.code} {one.message}" for one in errors[:3])


def _without(value: Any, secret: tuple[str, ...]) -> Any:
    """Nothing that is encrypted in the file leaves this process, wherever a program may have put it."""
    if isinstance(value, Mapping):
        return {_without(key, secret): _without(item, secret) for key, item in value.items()}
    if isinstance(value, list):
        return [_without(item, secret) for item in value]
    if isinstance(value, str):
        for one in secret:
            value = value.replace(one, SECRET)
    return value


def answer(line: str) -> str:
    try:
        return json.dumps(record(json.loads(line)))
    except BaseException:  # a program that exits is no end of this fork: its threads would keep it
        return json.dumps({"error": traceback.format_exc()})


def serve(write: Callable[[str], object]) -> None:
    prepared: set[str] = set()
    used: list[str] = []
    for line in sys.stdin:
        _import_all(used)
        platform = json.loads(line).get("platform", "")
        if platform not in prepared:
            prepared.add(platform)
            _prepare(platform)
        used = _record_in_fork(write, line)


def _prepare(platform: str) -> None:
    """A platform whose packages are not installed says so when its program is recorded."""
    with suppress(ModuleNotFoundError):
        answers(platform).offline.prepare()


def _import_all(names: list[str]) -> None:
    """What one fork had to import, the next ones find here."""
    for name in names:
        if name.startswith(_SDKS):
            with suppress(Exception):
                importlib.import_module(name)


def _record_in_fork(write: Callable[[str], object], line: str) -> list[str]:
    """The names of what was imported for it."""
    reading, writing = os.pipe()
    had = set(sys.modules)
    child = os.fork()
    if child == 0:
        os.close(reading)
        signal.alarm(SECONDS)
        write(answer(line))
        with os.fdopen(writing, "w") as used:
            used.write("\n".join(sys.modules.keys() - had))
        # Threads of the program's own loop must not keep the fork, nor its copy of this loop, alive.
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as used:
        names = sorted(used.read().split("\n"))
    status = os.waitpid(child, 0)[1]
    if status:
        code = os.waitstatus_to_exitcode(status)
        ended = f"it did not end within {SECONDS} s" if code == -signal.SIGALRM else f"it ended itself, with {code}"
        write(json.dumps({"error": ended}))
    return names


def main() -> None:
    # What a program prints is not an answer.
    answers_to = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def write(text: str) -> None:
        answers_to.write(text + "\n")
        answers_to.flush()

    serve(write)


if __name__ == "__main__":
    main()
