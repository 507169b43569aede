# SPDX-License-Identifier: Apache-2.0
"""The page lists the same missing operations as the table."""

import re
from itertools import chain
from pathlib import Path

from components.oci.deployer import STEPS, calls_of_type
from components.oci.types import SERVED_TYPES
from components.oci.types.functions import FUNCTIONS
from localcloud.gaps import render_gaps_page
from localcloud.oci import services
from localcloud.oci.gaps import sdk_coverage

PROJECT = Path(__file__).resolve().parents[2]


def test_the_page_of_gaps_is_up_to_date() -> None:
    document = (PROJECT / "docs" / "local-cloud-gaps.md").read_text()
    assert document == render_gaps_page(), "run: python -m localcloud.gaps > docs/local-cloud-gaps.md"


def test_every_call_of_oracles_provider_is_implemented() -> None:
    """Their rows promise these calls for every step, except those that nothing here leads to."""
    implemented = {row.name for row in services.service_operations()}
    for token, row in SERVED_TYPES.items():
        assert not {*calls_of_type(token, STEPS), *chain(*row.stand_in.values())} - implemented, token
    for token, function in FUNCTIONS.items():
        assert set(function.calls) <= implemented, token


def test_every_operation_in_use_is_implemented() -> None:
    """Components and clients use the operations in the catalog of permissions."""
    from components.oci.iam.permissions import known_operations

    implemented = {name for service in sdk_coverage() for name in service.implemented}
    missing = {name for service in sdk_coverage() for name in service.missing} - implemented
    in_use = {name for name in known_operations() if re.fullmatch(r"[A-Za-z]+", name)}
    # In the catalog for statements only; no code calls them.
    assert missing & in_use <= {"GetDomain", "ListDomains", "DeleteObjectVersion"}
