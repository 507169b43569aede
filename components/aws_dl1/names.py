# SPDX-License-Identifier: Apache-2.0
"""Names that AWS takes."""

from __future__ import annotations

import re

# Of a group, role or policy in IAM.
NAME = re.compile(r"[A-Za-z0-9+=,.@_-]{1,64}")
