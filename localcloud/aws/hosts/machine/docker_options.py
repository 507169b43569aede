# SPDX-License-Identifier: Apache-2.0
"""Parses the options of `docker run` that the stand-in supports."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

# Options with a value -> the field of RunOptions that gets it.
_TAKEN = {
    "-e": "environment", "--env": "environment", "--env-file": "env_file", "-v": "volumes", "--volume": "volumes",
    "-w": "folder", "--workdir": "folder", "--name": "name", "--entrypoint": "entrypoint",
    "--runtime": "runtime",
}  # fmt: skip
# Options with a value that have no effect: the stand-in lacks the feature, or always behaves like that.
_IGNORED = (
    "--cap-add", "--cap-drop", "--net", "--network", "--ipc", "--device", "--shm-size", "--ulimit", "-m",
    "--memory", "--restart", "--log-driver", "--log-opt", "--hostname", "-h", "-l", "--label", "--pull", "--platform",
    "--security-opt", "--stop-timeout", "--pid", "--uts", "--group-add", "-u", "--user", "--cpus", "--gpus",
    "--device-cgroup-rule", "--add-host", "--tmpfs", "--cgroupns", "--pids-limit", "--stop-signal", "--cidfile",
)  # fmt: skip
_FLAGS = ("-d", "--detach", "-i", "-t", "-it", "-ti", "--interactive", "--tty", "--rm", "--privileged", "--init",
          "--read-only", "--no-healthcheck", "--quiet", "-q")  # fmt: skip


class OptionsError(Exception):
    """The stand-in does not support a command line. The text says why."""


@dataclass
class RunOptions:
    """The options of one `docker run`."""

    image: str = ""
    command: tuple[str, ...] = ()
    name: str = ""
    folder: str = ""
    entrypoint: str = ""
    runtime: str = ""
    detached: bool = False
    removes_itself: bool = False
    environment: dict[str, str] = field(default_factory=dict)
    volumes: list[tuple[str, str]] = field(default_factory=list)
    without: list[str] = field(default_factory=list)

    def ignored(self) -> Iterator[str]:
        if self.without:
            yield f"docker: without effect here: {' '.join(self.without)}"


def parse_run(words: Sequence[str]) -> RunOptions:
    """Parses the command line. Options end at the image."""
    options, rest = RunOptions(), list(words)
    while rest and rest[0].startswith("-"):
        word = rest.pop(0)
        name, sign, value = word.partition("=")
        if name in _FLAGS:
            options.detached |= name in ("-d", "--detach")
            options.removes_itself |= name == "--rm"
            continue
        if name not in _TAKEN and name not in _IGNORED:
            raise OptionsError(f"this stand-in has no option {name!a}")
        if not sign:
            if not rest:
                raise OptionsError(f"{name} needs a value")
            value = rest.pop(0)
        if name in _TAKEN:
            _take_option(options, _TAKEN[name], value)
        else:
            options.without.append(f"{name}={value}")
    if not rest:
        raise OptionsError("the image is missing")
    options.image, command = rest[0], rest[1:]
    options.command = (*((options.entrypoint,) if options.entrypoint else ()), *command)
    if not options.command:
        raise OptionsError(f"name a command: this stand-in does not run images, so {options.image} has no default one")
    return options


def _take_option(options: RunOptions, taken: str, value: str) -> None:
    if taken == "environment":
        name, _, text = value.partition("=")
        options.environment[name] = text
    elif taken == "env_file":
        rows = (row for row in Path(value).read_text().splitlines() if row and not row.startswith("#"))
        # docker reads such files literally, without quotes or expansion.
        options.environment |= {name: text for name, _, text in (row.partition("=") for row in rows)}
    elif taken == "volumes":
        source, _, rest = value.partition(":")
        options.volumes.append((source, rest.partition(":")[0] or source))
    else:
        setattr(options, taken, value)
