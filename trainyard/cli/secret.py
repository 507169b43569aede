# SPDX-License-Identifier: Apache-2.0
"""`trainyard secret`: writes secrets into stack files, encrypted by the stack's own key."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from components.platform.calls import Tell
from components.platform.local import LocalStackError
from schemas.load import stack_name
from schemas.name_suggestions import suggest_name
from schemas.source import read_source
from trainyard.cli.out import ask_secret, say, say_aside
from trainyard.cli.planning import find_stack_file, stacks_option
from trainyard.engine.obtain import engine_folder
from trainyard.local.local_stack import PROJECT, LocalStack

NAMESPACE = "trainyard:"


@click.group()
def secret() -> None:
    """Write secrets into stack files, encrypted by the stack's own key."""


@secret.command("set")
@click.argument("stack")
@click.argument("key")
@stacks_option
@click.option(
    "--local", is_flag=True, help="Use the key of this machine's local stacks, for a stack that is only local."
)
def set_secret_command(stack: str, key: str, stacks: Path, local: bool) -> None:
    """Set KEY of the stack file to a secret, such as jobs.resnet.env.HF_TOKEN.

    The value is asked for, or read from stdin; it is never an argument. The file keeps its comments. The stack's own
    secrets provider encrypts it: you need what `pulumi config set --secret` needs, the passphrase or the login. Only
    that command is run, with the engine that trainyard uses.
    """
    file = find_stack_file(stack, stacks).resolve()
    full = key if ":" in key.partition(".")[0] else NAMESPACE + key
    # Pulumi would create missing parents of the key, for example a misspelled job.
    data = read_source(file).data
    here: Any = data.get("config") if isinstance(data, Mapping) else None
    if not isinstance(here, Mapping):
        raise click.ClickException(f"{file} has no `config:`")
    # The last step may be new, and so may the object that it is in: `env`.
    for step in full.split(".")[:-2]:
        if not isinstance(here, Mapping) or step not in here:
            there = [str(name) for name in here] if isinstance(here, Mapping) else []
            raise click.UsageError(f"{file.name} has no `{step}` where `{full}` says: {suggest_name(step, there)}")
        here = here[step]
    value = ask_secret(f"Value of {full}") if sys.stdin.isatty() else sys.stdin.read().rstrip("\n")
    if not value:
        raise click.UsageError("the value is empty; type it, or give it on stdin")
    if local:
        set_local_secret(file, full, value, say_aside)
    else:
        set_secret(file, full, value)
    say(f"{file}: {full} is a secret now.")


def set_secret(file: Path, key: str, value: str) -> None:
    """Encrypts with the stack's own secrets provider, in the user's environment."""
    engine = engine_folder(os.environ)
    env = {**os.environ, "PATH": os.pathsep.join([str(engine), os.environ.get("PATH", os.defpath)])}
    why = run_set(file, key, value, env, PROJECT)
    if "no stack named" in why:
        why += f"\nThe stack has to exist before it can have secrets: {engine / 'pulumi'} stack init {stack_name(file)}"
    if "PULUMI_ACCESS_TOKEN" in why:
        why += (
            "\nThe secrets of a stack need its backend: `pulumi login`, or PULUMI_BACKEND_URL. For a stack that is "
            "only on the local cloud, add --local"
        )
    if why:
        raise LocalStackError(f"Pulumi did not set the secret: {why}")


def set_local_secret(file: Path, key: str, value: str, tell: Tell) -> None:
    """Encrypts with the key of this checkout's local stacks. `up --local` uses such values as they are."""
    place = LocalStack(stack_name(file), file.parent, tell)
    if place.has_foreign_secrets():
        raise LocalStackError(
            f"{file} has secrets of another key, and a stack file has only one key. On the local cloud, stand-ins "
            "replace such secrets. Without --local, the stack's own key is used"
        )
    why = run_set(file, key, value, place.env, place.local_file().parent)
    if why:
        raise LocalStackError(f"Pulumi did not set the secret: {why}")


def run_set(file: Path, key: str, value: str, env: Mapping[str, str], folder: Path) -> str:
    """Passes the value through a pipe, because everybody can read the arguments of a process. Returns why it failed."""
    words = ["pulumi", "config", "set", "--secret", "--path", key, "--non-interactive", "--cwd", str(folder)]
    words += ["--stack", stack_name(file), "--config-file", str(file)]
    done = subprocess.run(words, input=value, env=env, capture_output=True, text=True)
    return (done.stderr.strip() or done.stdout.strip() or "no reason given") if done.returncode else ""
