# SPDX-License-Identifier: Apache-2.0
"""Stacks whose cloud is gone, with all that they made: `trainyard cloud reset`, or somebody removed its folder.

Their states would still list everything. `up` would then change nothing and say that the stack is up, and `down` would
refuse because of what another one no longer has.
"""

from __future__ import annotations

import configparser
from collections.abc import Callable
from pathlib import Path

from components.platform.calls import Tell
from localcloud.control import Cloud
from schemas.names import plural


def forget_lost_stacks(home: Path, cloud: Cloud, stacks: list[str], forget: Callable[[str], None], tell: Tell) -> None:
    """Forgets `stacks` if another cloud made what they have, and notes whose they are from now on."""
    note, here = home / "pulumi" / "cloud", _identity(cloud)
    there = note.read_text("utf-8").strip() if note.is_file() else ""
    if there and there != here and stacks:
        tell(
            f"The local cloud that had {plural(len(stacks), 'stack')} was removed, so nothing of them is left: "
            f"{', '.join(stacks)}. `up` makes them anew."
        )
        for stack in stacks:
            forget(stack)
    if there != here:
        note.parent.mkdir(parents=True, exist_ok=True)
        note.write_text(f"{here}\n", "utf-8")


def _identity(cloud: Cloud) -> str:
    """The deployer's key: a cloud makes its own at its first start, and keeps it."""
    config = configparser.ConfigParser()
    config.read(cloud.config_file, "utf-8")
    return config.get("deployer", "fingerprint", fallback="")
