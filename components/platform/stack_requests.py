# SPDX-License-Identifier: Apache-2.0
"""How a person asks the nodes of a run where they are: an object in the folder of the run's start, which launchers look
for. Each of them answers each token once, in its status object (docs/contracts.md)."""

from __future__ import annotations

import re
import secrets

# The launcher, which imports nothing of ours, has the same (launcher/board.py).
FOLDER = "peers/stacks/"
_TOKEN = re.compile(r"[0-9a-f]{16}")


def new_request_token() -> str:
    """A token that no other request has."""
    return secrets.token_hex(8)


def stack_request_name(token: str) -> str:
    """The name of the request's object, within the folder of the run's start. Its content does not matter."""
    if not _TOKEN.fullmatch(token):
        raise ValueError(f"{token!r} is not a token of 16 hexadecimal digits")
    return FOLDER + token
