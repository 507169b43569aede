# SPDX-License-Identifier: Apache-2.0
"""The page lists the same missing operations as the table."""

import re
from pathlib import Path

from catalog.tables import table
from localcloud.gaps import render_gaps_page
from localcloud.oci import services
from localcloud.oci.gaps import coverage

PROJECT = Path(__file__).resolve().parents[2]


def test_the_page_of_gaps_is_up_to_date() -> None:
    document = (PROJECT / "docs" / "local-cloud-gaps.md").read_text()
    assert document == render_gaps_page(), "run: python -m localcloud.gaps > docs/local-cloud-gaps.md"


def test_every_call_of_oracles_provider_is_implemented() -> None:
    """Its table promises these calls for every step, except those that nothing here leads to."""
    calls, implemented = table("oci_provider_calls"), {row.name for row in services.operations()}
    for token, row in {**calls["types"], **calls["functions"]}.items():
        steps = [row, *row.get("given", {}).values(), row.get("changed", {}), row.get("stand_in", {})]
        named = {call for step in steps for named in step.values() if isinstance(named, list) for call in named}
        promised = {call for call in named - {*row.get("ready", ()), *row.get("gone", ())} if call[0].isupper()}
        assert not promised - implemented, token


def test_every_operation_in_use_is_implemented() -> None:
    """Components and clients use the operations in the catalog of permissions."""
    from components.oci.iam.permissions import operations

    implemented = {name for service in coverage() for name in service.implemented}
    missing = {name for service in coverage() for name in service.missing} - implemented
    in_use = {name for name in operations() if re.fullmatch(r"[A-Za-z]+", name)}
    # In the catalog for statements only; no code calls them.
    assert missing & in_use <= {"GetDomain", "ListDomains", "DeleteObjectVersion"}
