# SPDX-License-Identifier: Apache-2.0
"""`python -m trainyard.review.record`: runs the programs of stacks against a monitor that only records.

A request is one line of JSON (file, root, platform, state), and so is the answer (a `Recorded`, or an error). Each
program runs in a fork, so it cannot affect the next one. Pulumi is imported once, before the first fork. No engine,
cloud or credentials are needed: lookups are answered from the stack file (components/platform/review.py), and requests
for the stack's own state from the recording of the other side. Reviews of other releases start this module by its name
(recorder.py), so its name and the keys of the JSON must not change.
"""

from __future__ import annotations

import asyncio
import gc
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

from catalog.platforms import Lacks, find_capability, platform_in
from components.plan.build import WARNINGS_SHOWN, plan_of
from components.plan.show import to_plain_values as plain_plan
from components.platform.review import SECRET, OfflineCloud, OfflineStack, Snapshot
from components.program import STACKS, run
from components.runs import ARTIFACTS
from schemas.judge import judge_file
from trainyard.review.monitor import (
    ORGANIZATION,
    MockedCloud,
    RecordingMonitor,
    encrypted_texts,
    plain_property,
    read_stack_configuration,
)
from trainyard.review.recording import Recorded, mask_marked_values, resource_of_recording

# Timeout of a program. It needs a second, but far more on a busy machine.
SECONDS = 900
_STACK_TYPE = "pulumi:pulumi:Stack"
_ABOVE = "pulumi:"
# Prefixes of packages that import their modules on first use.
_SDKS = ("pulumi_", "components.")


class _Remarks(logging.Handler):
    """Collects the warnings that the program shows to people."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.texts: list[str] = []
        self.logger = logging.getLogger("program")
        self.logger.addHandler(self)
        self.logger.propagate = False

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())


def record_program(request: Mapping[str, Any]) -> dict[str, Any]:
    """Records all requests of one stack's program to Pulumi."""
    file, state = Path(request["file"]), request.get("state") or {}
    name = file.stem.removeprefix("Pulumi.")
    judged = judge_file(file)
    data = judged.source.data
    written = data.get("config") if isinstance(data, Mapping) else None
    written = written if isinstance(written, Mapping) else {}
    platform = platform_in(written)
    if judged.errors:
        listed = "; ".join(f"{error.code} {error.message}" for error in judged.errors[:3])
        return Recorded(Snapshot(name, platform, {}, (), refused=f"The stack file has errors: {listed}")).as_json()
    stack, project = OfflineStack(name, written), "trainyard"
    cloud = MockedCloud(_offline_cloud(platform), stack, project, state)
    monitor = RecordingMonitor(cloud, cloud.keep_earlier_name)
    remarks, exports, refused = _run_recorded(monitor, file, request["root"], name, project)
    rows = [row for row in monitor.recorded if "read" not in row and row["type"] != _STACK_TYPE]
    recorded = Recorded(
        Snapshot(
            name,
            platform,
            plain_plan(plan_of(judged)),
            tuple(resource_of_recording(row) for row in sorted(rows, key=lambda row: row["urn"])),
            tuple(remarks),
            refused,
        ),
        mask_marked_values(plain_property(exports)),
        {
            row["urn"]: mask_marked_values(row["outputs"])
            for row in rows
            if row["custom"] and not row["type"].startswith(_ABOVE)
        },
    )
    return _without_secrets(recorded.as_json(), encrypted_texts(file))  # type: ignore[no-any-return]


def _run_recorded(
    monitor: RecordingMonitor, file: Path, root: str, name: str, project: str
) -> tuple[list[str], dict[str, Any], str]:
    remarks = _Remarks()
    pulumi.runtime.set_mocks(
        monitor.mocks, project=project, stack=name, preview=False, monitor=monitor, organization=ORGANIZATION,
        logger=remarks.logger,
    )  # fmt: skip
    pulumi.runtime.settings.SETTINGS.root_directory = str(file.parent)
    os.chdir(root)
    # `check` reports the findings of the file, so the program need not.
    os.environ.update({STACKS: str(file.parent), WARNINGS_SHOWN: "1"})
    # Packed code goes into the folder of this recording, named by its content, so its name is the same on both sides.
    os.environ.pop(ARTIFACTS, None)
    pulumi.runtime.set_all_config(*read_stack_configuration(file))

    async def main() -> dict[str, Any]:
        await pulumi.runtime.stack.run_pulumi_func(run)
        exported: dict[str, Any] = {}
        for key, value in dict(getattr(pulumi.runtime.get_root_resource(), "outputs", {})).items():
            output = pulumi.Output.from_input(value)
            resolved = await output.future(with_unknowns=True)
            exported[key] = SECRET if await output.is_secret() else resolved
        return exported

    try:
        return remarks.texts, asyncio.get_event_loop().run_until_complete(main()), ""
    except pulumi.RunError as refused:
        return remarks.texts, {}, str(refused)


def _without_secrets(value: Any, secret: tuple[str, ...]) -> Any:
    """Removes the encrypted texts of the file from the recording, wherever the program put them."""
    if not secret:
        return value
    if isinstance(value, Mapping):
        return {_without_secrets(key, secret): _without_secrets(item, secret) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_secrets(item, secret) for item in value]
    if isinstance(value, str):
        for text in secret:
            value = value.replace(text, SECRET)
    return value


def answer_request(line: str) -> str:
    try:
        return json.dumps(record_program(json.loads(line)))
    except BaseException:  # SystemExit too: the fork must answer, and must not wait for threads
        return json.dumps({"error": traceback.format_exc()})


def serve_requests(write: Callable[[str], object]) -> None:
    prepared: set[str] = set()
    used: list[str] = []
    for line in sys.stdin:
        # What an earlier fork needed, so that later forks need not import it.
        for module in used:
            with suppress(Exception):
                importlib.import_module(module)
        platform = json.loads(line).get("platform", "")
        if platform not in prepared:
            prepared.add(platform)
            # If packages of the platform are missing, recording a program reports it.
            with suppress(ModuleNotFoundError):
                _offline_cloud(platform).prepare()
        used = _record_in_fork(write, line)


def _offline_cloud(platform: str) -> OfflineCloud:
    found = find_capability(platform, OfflineCloud)
    return OfflineCloud() if isinstance(found, Lacks) else found


def _record_in_fork(write: Callable[[str], object], line: str) -> list[str]:
    """Returns the names of the modules of SDKs that the fork imported."""
    reading, writing = os.pipe()
    had = set(sys.modules)
    child = os.fork()
    if child == 0:
        os.close(reading)
        signal.alarm(SECONDS)
        # The fork ends with its one program: what it leaves need not be looked for.
        gc.disable()
        write(answer_request(line))
        with os.fdopen(writing, "w") as used:
            used.write("\n".join(sys.modules.keys() - had))
        # Neither the program's threads nor this process's loop may continue in the fork.
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as used:
        modules = sorted(name for name in used.read().split("\n") if name.startswith(_SDKS))
    status = os.waitpid(child, 0)[1]
    if status:
        code = os.waitstatus_to_exitcode(status)
        ended = f"it did not end within {SECONDS} s" if code == -signal.SIGALRM else f"it exited with {code}"
        write(json.dumps({"error": ended}))
    return modules


def main() -> None:
    # A program's prints go to stderr, because stdout is for answers.
    answers_to = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def write(text: str) -> None:
        answers_to.write(text + "\n")
        answers_to.flush()

    serve_requests(write)


if __name__ == "__main__":
    main()
