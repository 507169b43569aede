# SPDX-License-Identifier: Apache-2.0
"""What ends a local command with words for a person; trainyard/cli/problems.py tells it."""

from __future__ import annotations


class LocalStackError(Exception):
    """What keeps a stack from coming up, going down or being rehearsed here. Its text is the whole message."""
