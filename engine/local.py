# SPDX-License-Identifier: Apache-2.0
"""A place of its own for local stacks: a file backend and a passphrase that never touch the user's Pulumi login."""

import os
import secrets
from collections.abc import Mapping
from pathlib import Path

from engine.obtain import engine_folder
from engine.tools import write_tools

# Set by people for their own stacks; for a local one they would win over what is set here.
NOT_FOR_LOCAL_STACKS = (
    "PULUMI_CONFIG_PASSPHRASE",
    "PULUMI_ACCESS_TOKEN",
    "PULUMI_STACK",
    "PULUMI_IGNORE_AMBIENT_PLUGINS",
    "PULUMI_SELF_MANAGED_STATE_GZIP",
)


def environment(home: Path, base: Mapping[str, str] | None = None) -> dict[str, str]:
    """The whole environment for `pulumi` on a local stack kept under `home` (usually `.trainyard`).

    Its PATH leads to an engine (made first if the machine has none) and to the plugins of local stacks.
    `base` is the environment to start from, the process's own if absent.
    """
    env = dict(os.environ if base is None else base)
    engine = engine_folder(env)
    tools = write_tools(home, engine, env)
    pulumi_home = (home / "pulumi").absolute()
    state = pulumi_home / "state"
    state.mkdir(parents=True, exist_ok=True)
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
    """Made once, for this checkout's local stacks only; two set-ups at once agree on the first one's."""
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
