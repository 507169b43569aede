# SPDX-License-Identifier: Apache-2.0
"""The page lists the same missing operations as the table."""

import re
from pathlib import Path

from localcloud.oci.gaps import coverage, render

PROJECT = Path(__file__).resolve().parents[2]


def test_the_page_of_gaps_is_up_to_date() -> None:
    document = (PROJECT / "docs" / "local-cloud-gaps.md").read_text()
    assert document == render(), "run: python -m localcloud.oci.gaps > docs/local-cloud-gaps.md"


def test_every_operation_in_use_is_implemented() -> None:
    """Components and clients use the operations in the catalog of permissions."""
    from components.oci.iam.permissions import operations

    implemented = {name for service in coverage() for name in service.implemented}
    missing = {name for service in coverage() for name in service.missing} - implemented
    in_use = {name for name in operations() if re.fullmatch(r"[A-Za-z]+", name)}
    # In the catalog for statements only; no code calls them.
    assert missing & in_use <= {"ChangeLogLogGroup", "GetDomain", "ListDomains", "DeleteObjectVersion"}
