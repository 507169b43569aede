# SPDX-License-Identifier: Apache-2.0
"""The page lists the same missing operations as the table."""

import re
from pathlib import Path

from localcloud.oci.gaps import coverage, render

PROJECT = Path(__file__).resolve().parents[2]


def test_the_page_of_gaps_is_up_to_date() -> None:
    document = (PROJECT / "docs" / "local-cloud-gaps.md").read_text()
    assert document == render(), "run: python -m localcloud.oci.gaps > docs/local-cloud-gaps.md"


def test_no_operation_that_the_components_and_clients_use_is_lacking() -> None:
    """The operations in the catalog of permissions are those that are used."""
    from components.oci.iam.permissions import operations

    there = {name for service in coverage() for name in service.there}
    lacking = {name for service in coverage() for name in service.lacking} - there
    in_use = {name for name in operations() if re.fullmatch(r"[A-Za-z]+", name)}
    # In the catalog for statements only; no code calls them.
    assert lacking & in_use <= {"ChangeLogLogGroup", "GetDomain", "ListDomains", "DeleteObjectVersion"}
