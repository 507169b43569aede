# SPDX-License-Identifier: Apache-2.0
"""`python -m bench.programs.once ours|flat|... oci|aws FILE FOLDER`: runs one program, and prints its times as JSON.

`imports`: the time of all imports; with `ours-lean` only those that the program makes itself, as for users.
`program`: the time from the configuration to the last resource. Both are processor seconds, on which other work on the
machine has little effect.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import sys
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pulumi

# The SDK's modules that both programs use. The SDK imports a module when an attribute is first read.
USED = {
    "oci": ("artifacts", "core", "datascience", "identity", "logging", "objectstorage"),
    "aws": ("cloudwatch", "ec2", "ecr", "iam", "s3", "secretsmanager", "vpc"),
}
OURS = {"oci": "components.oci.resources.deploy", "aws": "components.aws.resources.deploy"}


def main(which: str, sdk: str, file: Path, folder: Path) -> None:
    ours = which.startswith("ours")
    for module in ("components.program", OURS[sdk]) if ours else ("components.runs",):
        import_module(module)
    for module in USED[sdk] if which != "ours-lean" else ():
        getattr(import_module(f"pulumi_{sdk}.{module}"), "__all__", None)
    imports = time.process_time()
    if which == "flat-uncollected":
        gc.disable()
    program = _ours(file) if ours else _flat(file)
    os.chdir(folder)
    began = time.process_time()
    asyncio.get_event_loop().run_until_complete(pulumi.runtime.stack.run_pulumi_func(program))
    print(json.dumps({"imports": imports, "program": time.process_time() - began}))


def _mocks(stack: str) -> None:
    from tests.support.recorder.answers import Cloud

    pulumi.runtime.set_mocks(Cloud(False, {}), project="trainyard", stack=stack, preview=False, organization="bench")


def _ours(file: Path) -> Callable[[], None]:
    from components.program import STACKS, run
    from trainyard.review.monitor import read_stack_configuration

    _mocks(file.stem.removeprefix("Pulumi."))
    os.environ[STACKS] = str(file.parent)
    pulumi.runtime.set_all_config(*read_stack_configuration(file))
    return run


def _flat(file: Path) -> Callable[[], None]:
    from bench.programs.flat import load

    _mocks(file.stem)
    flat = load(file.read_text("utf-8"))
    pulumi.runtime.set_all_config({"aws:region": flat.region})
    return flat.run


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]).resolve(), Path(sys.argv[4]))
