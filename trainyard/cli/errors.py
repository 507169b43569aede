# SPDX-License-Identifier: Apache-2.0
"""Turns exceptions into messages for users. All commands report errors through this module."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path
from typing import Any, NoReturn

import click

from trainyard.cli.out import escape_message, escape_unencodable, say

CHECKOUT = Path(__file__).resolve().parents[2]
# The exit code after Ctrl-C, as shells expect it: 128 and the number of SIGINT.
INTERRUPTED = 130
# Exceptions whose text is a message for users. By name, so that no command imports what it does not use.
_IN_WORDS = frozenset(
    {
        "components.platform.images.ImageError",
        "components.platform.local.LocalStackError",
        "trainyard.engine.versions.EngineError",
        "localcloud.control.CloudError",
        "components.platform.calls.ProviderError",
        "components.platform.files.TransferError",
    }
)
# The part of a name that a message shows.
_LONGEST_NAME = 80
# A full disk, quota or file-size limit, or a failing device.
_CANNOT_WRITE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})


def error_message(problem: BaseException) -> str | None:
    """The message for an error that the user can fix. None for a bug of trainyard."""
    names = {f"{kind.__module__}.{kind.__qualname__}" for kind in type(problem).__mro__}
    if names & _IN_WORDS:
        return str(problem)
    if type(problem).__module__ == "oci.exceptions":
        why = getattr(problem, "message", None) or problem
        return (
            f"the cloud refused a call: {why}\nOn the local cloud, `trainyard cloud log` shows the call and the reason."
        )
    if (
        isinstance(problem, ModuleNotFoundError)
        and "." not in (problem.name or ".")
        and (CHECKOUT / str(problem.name)).is_dir()
    ):
        return (
            f"this checkout's Python environment is older than its package {problem.name}\n"
            "Bring it up to date with: make setup"
        )
    if isinstance(problem, OSError) and problem.errno == errno.ENAMETOOLONG:
        return f"{str(problem.filename)[:_LONGEST_NAME]}…: no name of a file or folder can be that long"
    if isinstance(problem, OSError):
        where = f"{problem.filename}: " if problem.filename else ""
        return (
            f"{where}{problem.strerror or problem}; TRAINYARD_HOME sets the folder where local stacks keep their files"
        )
    return None


class ResultCommand(click.Command):
    """A command whose exit code 1 is a result, such as drift. Failures end it with 2."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except click.ClickException as problem:
            _end_with_2(problem, ctx)
        except BrokenPipeError:
            raise
        except Exception as problem:
            if (message := error_message(problem)) is None or _is_of_the_output(problem):
                raise
            _end_with_2(click.ClickException(message), ctx)


def _end_with_2(problem: click.ClickException, ctx: click.Context) -> NoReturn:
    problem.show()
    ctx.exit(2)


class ErrorReportingGroup(click.Group):
    """Commands that show a traceback only for a bug of trainyard."""

    def main(self, *args: Any, **options: Any) -> Any:
        """Any command may write to a full disk, or may be started without output streams."""
        for name in ("stdout", "stderr"):
            if getattr(sys, name) is None:
                setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 (as long as the process)
        escape_unencodable()
        try:
            return super().main(*args, **options)
        except OSError as problem:
            if problem.errno not in _CANNOT_WRITE:
                raise
            # Python does not try to write the rest at exit.
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, sys.stdout.fileno())
            os.close(nowhere)
            where = f" to {problem.filename}" if problem.filename else ""
            say(f"trainyard: cannot write{where}: {problem.strerror}", err=True)
            sys.exit(2)

    def make_context(self, *args: Any, **options: Any) -> click.Context:
        try:
            return super().make_context(*args, **options)
        except click.ClickException as problem:
            raise escape_message(problem) from None

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            sys.exit(INTERRUPTED)
        except BrokenPipeError:
            # The reader, such as `| head`, has ended. Python would report it again when it flushes at exit.
            sys.stdout = None
            sys.exit(0)
        except click.ClickException as problem:
            raise escape_message(problem) from None
        except Exception as problem:
            if (message := error_message(problem)) is None or _is_of_the_output(problem):
                raise
            raise escape_message(click.ClickException(message)) from None


def _is_of_the_output(problem: Exception) -> bool:
    """Whether printing failed: such an error names no file. `main` reports it, because it can also occur at exit."""
    return isinstance(problem, OSError) and problem.errno in _CANNOT_WRITE and not problem.filename
