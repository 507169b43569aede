# SPDX-License-Identifier: Apache-2.0
"""Large folders, copied at little cost: `shutil.copytree(..., copy_function=link_or_copy)`."""

from __future__ import annotations

import os
import shutil


def link_or_copy(source: str, target: str) -> None:
    """A file is linked where the file system allows. An overlay may show one folder's files from two disks."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
