# SPDX-License-Identifier: Apache-2.0
"""The list of what the local cloud lacks is that of its table."""

import re
from pathlib import Path

from localcloud.oci.gaps import coverage, render

PROJECT = Path(__file__).resolve().parents[2]


def test_the_page_of_gaps_is_up_to_date() -> None:
    document = (PROJECT / "docs" / "local-cloud-gaps.md").read_text()
    assert document == render(), "run: python -m localcloud.oci.gaps > docs/local-cloud-gaps.md"


def test_no_operation_that_the_components_and_clients_use_is_lacking() -> None:
    """Those that the catalog of permissions names are the ones in use."""
    from components.oci.iam.permissions import operations

    there = {name for service in coverage() for name in service.there}
    lacking = {name for service in coverage() for name in service.lacking} - there
    in_use = {name for name in operations() if re.fullmatch(r"[A-Za-z]+", name)}
    # Known for other reasons: statements speak of them, and nothing here calls them.
    assert lacking & in_use <= {"ChangeLogLogGroup", "GetDomain", "ListDomains", "DeleteObjectVersion"}
