# SPDX-License-Identifier: Apache-2.0
"""Keeps local stacks apart: a file backend and a passphrase of their own, away from the user's Pulumi login."""

import os
import secrets
from collections.abc import Mapping
from pathlib import Path

from trainyard.engine.obtain import engine_folder
from trainyard.engine.tools import write_tools
from trainyard.engine.trusted import close_below, private_folder

# People set these variables for their own stacks. For a local stack they would override our settings.
NOT_FOR_LOCAL_STACKS = (
    "PULUMI_CONFIG_PASSPHRASE",
    "PULUMI_ACCESS_TOKEN",
    "PULUMI_STACK",
    "PULUMI_IGNORE_AMBIENT_PLUGINS",
    "PULUMI_SELF_MANAGED_STATE_GZIP",
)


def environment(home: Path, base: Mapping[str, str] | None = None) -> dict[str, str]:
    """All variables for `pulumi` on a local stack that is kept under `home` (usually `.trainyard`).

    PATH leads to an engine (which is made first if the machine has none) and to the plugins of local stacks.
    `base` is the environment to start from. The default is this process's own.
    """
    env = dict(os.environ if base is None else base)
    engine = engine_folder(env)
    tools = write_tools(home, engine, env)
    pulumi_home = private_folder((home / "pulumi").absolute())
    state = private_folder(pulumi_home / "state")
    for folder in (state, pulumi_home / "stacks"):
        close_below(folder)
    for name in NOT_FOR_LOCAL_STACKS:
        env.pop(name, None)
    return env | {
        "PATH": os.pathsep.join([str(tools), str(engine), env.get("PATH", os.defpath)]),
        "PULUMI_HOME": str(pulumi_home),
        "PULUMI_BACKEND_URL": state.as_uri(),
        "PULUMI_CONFIG_PASSPHRASE_FILE": str(passphrase_file(pulumi_home)),
        "PULUMI_SKIP_UPDATE_CHECK": "true",
    }


def passphrase_file(pulumi_home: Path) -> Path:
    """The passphrase file of this checkout's local stacks, made on first use. If two processes make it at once, the
    first one counts."""
    path = pulumi_home / "passphrase"
    if path.exists():
        return path
    candidate = pulumi_home / f".passphrase-{os.getpid()}-{secrets.token_hex(4)}"
    candidate.touch(mode=0o600)
    candidate.write_text(secrets.token_urlsafe(32) + "\n")
    try:
        os.link(candidate, path)
    except FileExistsError:
        pass
    finally:
        candidate.unlink()
    return path
