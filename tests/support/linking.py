# SPDX-License-Identifier: Apache-2.0
"""A fast copy of large folders by hard links: `shutil.copytree(..., copy_function=link_or_copy)`."""

from __future__ import annotations

import os
import shutil


def link_or_copy(source: str, target: str) -> None:
    """Links a file if the file system allows it, and copies it otherwise. In an overlay, files of one folder may be on
    two disks."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
