# SPDX-License-Identifier: Apache-2.0
"""OCIDs and names, told apart: what may be named by either asks here."""

from __future__ import annotations


def is_ocid(text: str) -> bool:
    return text.startswith("ocid1.")
