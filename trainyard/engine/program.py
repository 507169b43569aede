# SPDX-License-Identifier: Apache-2.0
"""Runs one Pulumi program under the Python of its own project.

The language host starts this file as a script and sends the settings as JSON on standard input. There they can have
any size, and secrets are never in a process's environment or arguments. The file imports nothing of trainyard, because
it runs in the environments of other projects.
"""

import asyncio
import inspect
import json
import logging
import os
import runpy
import signal
import sys
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

# This exit code says that the user has seen the error: the host answers with `bail`, and the engine reports no more.
TOLD_THE_USER = 32
NO_SDK = (
    "The Pulumi SDK is not installed for {python}.\n"
    "Install the project's requirements into that environment: `{python} -I -m pip install pulumi`,"
    " or run `make setup`."
)


def main() -> int:
    settings: dict[str, Any] = json.load(sys.stdin)
    try:
        import pulumi
    except ImportError:
        traceback.print_exc()
        print(NO_SDK.format(python=sys.executable), file=sys.stderr)
        return 1
    configure_pulumi(pulumi, settings)
    entry = settings["entry"]
    sys.argv = [entry, *settings["arguments"]]
    # As with `python __main__.py`, a program can import the modules in its own folder.
    sys.path[0] = str(Path(entry) if Path(entry).is_dir() else Path(entry).parent)
    return run_program(pulumi, entry, settings["parallel"])


def configure_pulumi(pulumi: Any, settings: dict[str, Any]) -> None:
    pulumi.runtime.set_all_config(settings["config"], settings["secret_keys"])
    parameters = inspect.signature(pulumi.runtime.Settings).parameters
    supported = {key: value for key, value in settings["deployment"].items() if key in parameters}
    pulumi.runtime.configure(pulumi.runtime.Settings(**supported))


def run_program(pulumi: Any, entry: str, parallel: int) -> int:
    import grpc

    # A failed deployment leaves futures unresolved on purpose. asyncio's warnings about them would hide the cause.
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    loop.set_default_executor(ThreadPoolExecutor(max_workers=min(max(parallel, 1) * 4, 256)))
    try:
        loop.run_until_complete(pulumi.runtime.run_in_stack(lambda: runpy.run_path(entry, run_name="__main__")))
        return 0
    except KeyboardInterrupt:
        return TOLD_THE_USER
    except pulumi.RunError as problem:
        pulumi.log.error(str(problem))
        return TOLD_THE_USER
    except grpc.RpcError as problem:
        # UNAVAILABLE: the engine has ended. It has reported why, and nobody would read another error.
        if problem.code() != grpc.StatusCode.UNAVAILABLE:
            pulumi.log.error(unhandled_error(problem))
        return TOLD_THE_USER
    except Exception as problem:
        pulumi.log.error(unhandled_error(problem))
        return TOLD_THE_USER
    finally:
        loop.close()
        sys.stdout.flush()
        sys.stderr.flush()


def unhandled_error(problem: BaseException) -> str:
    """The traceback from the user's first frame on, without the frames of trainyard, Pulumi and Python before it."""
    frame = problem.__traceback__
    machinery = (__file__, "<frozen runpy>", os.sep + os.path.join("pulumi", "runtime", "stack.py"))
    while (
        frame and frame.tb_next and frame.tb_frame.f_code.co_filename.endswith((*machinery, "asyncio/base_events.py"))
    ):
        frame = frame.tb_next
    lines = traceback.format_exception(type(problem), problem, frame)
    return "Program failed with an unhandled exception:\n" + "".join(lines)


def end_on_interrupt(number: int, frame: object) -> None:
    """Ends the program. The engine may send a second interrupt, which is ignored."""
    signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


if __name__ == "__main__":
    signal.signal(signal.SIGINT, end_on_interrupt)
    try:
        code = main()
    except KeyboardInterrupt:
        code = TOLD_THE_USER
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if code:
        # A normal exit would wait for threads whose calls the engine does not answer any more.
        sys.stderr.flush()
        os._exit(code)
