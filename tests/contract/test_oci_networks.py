# SPDX-License-Identifier: Apache-2.0
"""Compares NCCL's variables by shape with their source, a page of Oracle, if a checkout of it is available."""

from __future__ import annotations

import hashlib
import json
import os
import re
from pathlib import Path

from catalog.tables import table

# A checkout of oracle-quickstart/oci-hpc-oke.
PLACE = os.environ.get("TRAINYARD_OCI_HPC_SOURCE", "")
PAGE = "docs/recommended-nccl-rccl-parameters-by-shape.md"
# Hash of the page at the commit that catalog/oci_networks.toml names.
RECORDED = "ec4ba5898305cf60944f01a0e6f40125e468c526bf9194eebdfdaa4fea0f9d1a"
_SHAPE = re.compile(r"^## (\S+)\n\n```\n(.*?)```", re.MULTILINE | re.DOTALL)


def test_the_rows_match_the_published_page() -> None:
    rows = table("oci_networks")["nccl"]
    assert hashlib.sha256(json.dumps(rows, sort_keys=True).encode()).hexdigest() == RECORDED
    assert all(set(table("oci_networks")["of_the_fabric"]) & set(row) for row in rows.values() if len(row) > 7)
    if PLACE:
        text = Path(PLACE, PAGE).read_text("utf-8")
        found = {match[1]: dict(line.split("=", 1) for line in match[2].split()) for match in _SHAPE.finditer(text)}
        assert found == rows
