# SPDX-License-Identifier: Apache-2.0
"""Forgets stacks whose cloud was removed, by `trainyard cloud reset` or with its folder.

Their states still list resources that do not exist any more. With such a state `up` would change nothing and report
success, and `down` would refuse because another stack seems to depend on this one.
"""

from __future__ import annotations

import configparser
from collections.abc import Callable
from pathlib import Path

from components.platform.calls import Tell
from localcloud.control import Cloud
from schemas.names import plural


def forget_lost_stacks(home: Path, cloud: Cloud, stacks: list[str], forget: Callable[[str], None], tell: Tell) -> None:
    """Forgets `stacks` if their resources were made on another cloud, and notes this cloud's identity for next time."""
    note, here = home / "pulumi" / "cloud", _identity(cloud)
    there = note.read_text("utf-8").strip() if note.is_file() else ""
    if there and there != here and stacks:
        tell(
            f"The local cloud of {plural(len(stacks), 'stack')} was removed, and their resources with it: "
            f"{', '.join(stacks)}. `up` makes them again."
        )
        for stack in stacks:
            forget(stack)
    if there != here:
        note.parent.mkdir(parents=True, exist_ok=True)
        note.write_text(f"{here}\n", "utf-8")


def _identity(cloud: Cloud) -> str:
    """The fingerprint of the deployer's key, which each cloud makes at its first start."""
    config = configparser.ConfigParser()
    config.read(cloud.config_file, "utf-8")
    return config.get("deployer", "fingerprint", fallback="")
