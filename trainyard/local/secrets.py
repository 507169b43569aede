# SPDX-License-Identifier: Apache-2.0
"""Sets secrets of stack files by Pulumi's engine, which nobody needs to have on PATH."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from components.platform.calls import Tell
from components.platform.local_errors import LocalStackError
from schemas.load import stack_name
from trainyard.engine.obtain import engine_folder
from trainyard.local.place import PROJECT, Place


def set_secret(file: Path, key: str, value: str) -> None:
    """By the stack's own secrets provider, in the user's own environment."""
    engine = engine_folder(os.environ)
    env = {**os.environ, "PATH": os.pathsep.join([str(engine), os.environ.get("PATH", os.defpath)])}
    why = run_set(file, key, value, env, PROJECT)
    if "no stack named" in why:
        why += f"\nThe stack has to exist before it can have secrets: {engine / 'pulumi'} stack init {stack_name(file)}"
    if why:
        raise LocalStackError(f"Pulumi did not set the secret: {why}")


def set_local_secret(file: Path, key: str, value: str, tell: Tell) -> None:
    """By the key of this checkout's local stacks. `up --local` uses such values as they are."""
    place = Place(stack_name(file), file.parent, tell)
    if place.has_foreign_secrets():
        raise LocalStackError(
            f"{file} keeps its secrets by another key, and a stack file has one key. On the local cloud, stand-ins "
            "take the places of such secrets. Without --local, the stack's own key is used"
        )
    why = run_set(file, key, value, place.env, place.local_file().parent)
    if why:
        raise LocalStackError(f"Pulumi did not set the secret: {why}")


def run_set(file: Path, key: str, value: str, env: Mapping[str, str], folder: Path) -> str:
    """The value goes by a pipe: arguments of processes can be read by everybody. Returns why it failed."""
    words = ["pulumi", "config", "set", "--secret", "--path", key, "--non-interactive", "--cwd", str(folder)]
    words += ["--stack", stack_name(file), "--config-file", str(file)]
    done = subprocess.run(words, input=value, env=env, capture_output=True, text=True)
    return (done.stderr.strip() or done.stdout.strip() or "no reason given") if done.returncode else ""
