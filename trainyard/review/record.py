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
from components.plan.show import plain as plain_plan
from components.platform.review import SECRET, OfflineCloud, OfflineStack, Snapshot
from components.program import STACKS, run
from components.runs import ARTIFACTS
from schemas.judge import judge_file
from trainyard.review.monitor import ORGANIZATION, MockedCloud, RecordingMonitor, configuration, encrypted_texts, plain
from trainyard.review.recorder import Recorded, masked, resource_of

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


async def _exports() -> dict[str, Any]:
    root = pulumi.runtime.get_root_resource()
    exported: dict[str, Any] = {}
    for name, value in dict(getattr(root, "outputs", {})).items():
        output = pulumi.Output.from_input(value)
        resolved = await output.future(with_unknowns=True)
        exported[name] = SECRET if await output.is_secret() else resolved
    return exported


def record(request: Mapping[str, Any]) -> dict[str, Any]:
    """Records all requests of one stack's program to Pulumi."""
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
    monitor = RecordingMonitor(MockedCloud(_offline_cloud(platform), stack, project, state))
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
    return _without_secrets(recorded.as_json(), encrypted_texts(file))  # type: ignore[no-any-return]


def _run(
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
    pulumi.runtime.set_all_config(*configuration(file))

    async def main() -> dict[str, Any]:
        await pulumi.runtime.stack.run_pulumi_func(run)
        return await _exports()

    try:
        return remarks.texts, asyncio.get_event_loop().run_until_complete(main()), ""
    except pulumi.RunError as refused:
        return remarks.texts, {}, str(refused)


def _first_error(errors: Any) -> str:
    return "The stack file has errors: " + "; ".join(f"{one.code} {one.message}" for one in errors[:3])


def _without_secrets(value: Any, secret: tuple[str, ...]) -> Any:
    """Removes the encrypted texts of the file from the recording, wherever the program put them."""
    if isinstance(value, Mapping):
        return {_without_secrets(key, secret): _without_secrets(item, secret) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_secrets(item, secret) for item in value]
    if isinstance(value, str):
        for one in secret:
            value = value.replace(one, SECRET)
    return value


def answer(line: str) -> str:
    try:
        return json.dumps(record(json.loads(line)))
    except BaseException:  # SystemExit too: the fork must answer, and must not wait for threads
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


def _offline_cloud(platform: str) -> OfflineCloud:
    found = find_capability(platform, OfflineCloud)
    return OfflineCloud() if isinstance(found, Lacks) else found


def _prepare(platform: str) -> None:
    """Imports the platform's packages. If they are missing, recording a program reports it."""
    with suppress(ModuleNotFoundError):
        _offline_cloud(platform).prepare()


def _import_all(names: list[str]) -> None:
    """Imports what an earlier fork needed, so that later forks need not."""
    for name in names:
        if name.startswith(_SDKS):
            with suppress(Exception):
                importlib.import_module(name)


def _record_in_fork(write: Callable[[str], object], line: str) -> list[str]:
    """Returns the names of the modules that the fork imported."""
    reading, writing = os.pipe()
    had = set(sys.modules)
    child = os.fork()
    if child == 0:
        os.close(reading)
        signal.alarm(SECONDS)
        write(answer(line))
        with os.fdopen(writing, "w") as used:
            used.write("\n".join(sys.modules.keys() - had))
        # Neither the program's threads nor this process's loop may continue in the fork.
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as used:
        names = sorted(used.read().split("\n"))
    status = os.waitpid(child, 0)[1]
    if status:
        code = os.waitstatus_to_exitcode(status)
        ended = f"it did not end within {SECONDS} s" if code == -signal.SIGALRM else f"it exited with {code}"
        write(json.dumps({"error": ended}))
    return names


def main() -> None:
    # A program's prints go to stderr, because stdout is for answers.
    answers_to = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def write(text: str) -> None:
        answers_to.write(text + "\n")
        answers_to.flush()

    serve(write)


if __name__ == "__main__":
    main()
