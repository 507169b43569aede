# SPDX-License-Identifier: Apache-2.0
"""What tells one start of a run from another: its folder in the store bears the start's own name.

A run that is started again has the same job, run and attempt. Its nodes must not meet those of the earlier start, nor
mix their outputs with them, so peers, status and output of each start lie in a folder of that start alone.
"""

from __future__ import annotations

from dataclasses import replace

from launcher.document import Launch


def name_of(launch: Launch) -> str:
    """The start's name, alike on all its nodes; empty where nothing but the attempt tells starts apart."""
    return launch.identity.start(launch.rank, launch.nodes)


def placed(launch: Launch) -> Launch:
    """The same launch with the folder of its start in place of the attempt's."""
    if launch.folder is None:
        return launch
    name = name_of(launch)
    return replace(launch, folder=f"{launch.folder}/{name}") if name else launch
