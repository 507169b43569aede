# SPDX-License-Identifier: Apache-2.0
"""One router for every table of operations: OCI's (tests/unit/localcloud/oci/test_tables.py) and OpenPAI's."""

import pytest

from localcloud.openpai.cluster import ROUTES
from localcloud.server.routing import Router


@pytest.mark.parametrize(
    ("method", "path", "name", "parameters"),
    [
        ("GET", "/jobs/user~a%20b", "GetJob", {"job": "user~a b"}),
        ("GET", "/jobs/j/", "GetJob", {"job": "j"}),
        ("GET", "/tokens/check", "CheckToken", {}),
        ("DELETE", "/tokens/check", "DeleteToken", {"token": "check"}),
        ("DELETE", "/tokens/check/", "DeleteToken", {"token": "check"}),
        ("GET", "/jobs/j/job-attempts/healthz", "GetJobAttemptsHealth", {"job": "j"}),
        ("GET", "/jobs/j/job-attempts/0", "GetJobAttempt", {"job": "j", "attempt": "0"}),
    ],
)
def test_a_fixed_segment_precedes_a_parameter(method: str, path: str, name: str, parameters: dict[str, str]) -> None:
    found = Router(ROUTES).find(method, path)
    assert found is not None
    assert (found[0].name, found[1]) == (name, parameters)


@pytest.mark.parametrize(("method", "path"), [("PUT", "/tokens/check"), ("GET", "/jobs/j/none"), ("GET", "/jobs/j//")])
def test_other_paths_have_no_operation(method: str, path: str) -> None:
    assert Router(ROUTES).find(method, path) is None
