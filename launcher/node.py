# SPDX-License-Identifier: Apache-2.0
"""Runs one node's command: placeholders filled in, output marked with its node, signals handed over, true exit code."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping

from launcher.document import Launch, LaunchError

PLACEHOLDER = re.compile(r"\{([a-z_]+(?:\.[a-z-]+)?)\}")
HANDED_OVER = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
# A shell's way to say which signal ended a process.
SIGNALLED = 128


def run(launch: Launch) -> int:
    """Starts the command and waits for its end."""
    known = {"rank": str(launch.rank), "nodes": str(launch.nodes), "role": launch.role, "python": sys.executable}
    if launch.start:
        raise LaunchError(
            f"the role `{launch.role}` starts a service of its framework, which needs its peers' addresses"
        )
    told = {name: _filled(text, known, name) for name, text in launch.environment.items()}
    words = [_filled(word, known, "command") for word in launch.command]
    if not words:
        raise LaunchError(f"the role `{launch.role}` has nothing to run")
    return _wait(_interpreted(words), {**os.environ, **told}, f"[{launch.node}] ")


def _filled(text: str, known: Mapping[str, str], where: str) -> str:
    def value(match: re.Match[str]) -> str:
        if match[1] not in known:
            raise LaunchError(f"`{where}` asks for {match[0]}, which only a run of several nodes can answer")
        return known[match[1]]

    return PLACEHOLDER.sub(value, text)


def _interpreted(words: list[str]) -> list[str]:
    """A Python script is run by the Python of the image."""
    return [sys.executable, "-u", *words] if words[0].endswith(".py") else words


def _wait(words: list[str], environment: Mapping[str, str], prefix: str) -> int:
    try:
        process = subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    except OSError as error:
        raise LaunchError(f"`{words[0]}` cannot be started: {error.strerror}") from None
    for number in HANDED_OVER:
        signal.signal(number, lambda received, _frame: process.send_signal(received))
    if process.stdout is not None:
        for line in process.stdout:
            sys.stdout.write(prefix + line.decode(errors="replace"))
            sys.stdout.flush()
    code = process.wait()
    return SIGNALLED - code if code < 0 else code
