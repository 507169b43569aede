# SPDX-License-Identifier: Apache-2.0
"""Calls of a cloud that a command makes itself: what is said meanwhile, and how an ending is told."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

import click

from cli.render import printable
from provider.base.resource import Call, Stop

# What a shell expects of a command that Ctrl-C ended: 128 and the number of SIGINT.
INTERRUPTED = 130


class Terminal:
    """Notes go to stderr: what a command is asked for has stdout to itself."""

    def info(self, message: str) -> None:
        click.echo(printable(message), err=True)

    warning = info

    def status(self, message: str) -> None:
        """Shown by engines only; each lasting word of it comes by `info` as well."""


def call_of(name: str) -> Call:
    return Call(urn="", type="", name=name, report=Terminal(), stop=Stop())


def of_the_disk(problem: OSError) -> str:
    """What cannot be read or written, why, and what to do."""
    where = f"{problem.filename}: " if problem.filename else ""
    return f"{where}{problem.strerror or problem}; TRAINYARD_HOME says where a local stack keeps its things"


def telling(body: Callable[..., Any]) -> Callable[..., Any]:
    """What a person can do something about is said in words, and Ctrl-C ends at once and quietly."""

    @functools.wraps(body)
    def told(*arguments: Any, **options: Any) -> Any:
        from localcloud.control import CloudError
        from provider.base.errors import ProviderError

        try:
            return body(*arguments, **options)
        except (ProviderError, CloudError) as problem:
            raise click.ClickException(str(problem)) from None
        except (KeyboardInterrupt, click.Abort):
            sys.exit(INTERRUPTED)
        except BrokenPipeError:
            # `| head` has seen enough. Python would say so once more when it flushes on its way out.
            sys.stdout = None
            sys.exit(0)
        except OSError as problem:
            raise click.ClickException(of_the_disk(problem)) from None
        except Exception as problem:
            # Told by its module: importing the SDK for its exceptions would cost every command half a second.
            if type(problem).__module__ != "oci.exceptions":
                raise
            raise click.ClickException(f"the cloud refused a call: {getattr(problem, 'message', problem)}") from None

    return told
