# SPDX-License-Identifier: Apache-2.0
"""The table of operations, held to the SDK's own tables."""

import pytest

from iam.permissions import operations as known_operations
from localcloud.api import sdk
from localcloud.api.authorization import _STANDS_FOR
from localcloud.api.operations import Operation
from localcloud.api.routing import Router
from localcloud.api.services import tables

ROWS = tables.operations()
OWN = frozenset({
    "PushContainerImage", "ListCalls", "ListFaults", "AddFault", "ClearFaults", "ClearFault", "IssueToken",
    "ReadEvidence", "ReadHosts",
})  # fmt: skip
# No document at hand says which permission these need: they are for the tenancy's administrators, until one does.
ADMINISTRATORS_ONLY = frozenset({"GetResourceAvailability", "ListLimitDefinitions", "ListLimitValues"})


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.name}-{row.service}")
def test_a_row_is_where_the_sdk_calls_it(row: Operation) -> None:
    if row.name not in OWN:
        assert sdk.operation_name(row.method, row.path) == row.name


@pytest.mark.parametrize("row", [row for row in ROWS if row.details], ids=lambda row: row.name)
def test_a_rows_details_are_a_model_of_the_sdk(row: Operation) -> None:
    assert sdk.model(row.service, row.details).fields


def test_a_permission_is_known_for_every_row_a_scientist_or_a_run_calls() -> None:
    moves = {row.name for row in ROWS if row.name.startswith("Change")}
    names = {_STANDS_FOR.get(row.name, row.name) for row in ROWS} - moves - OWN - ADMINISTRATORS_ONLY
    assert names <= known_operations().keys()


@pytest.mark.parametrize(
    ("method", "path", "name", "parameters"),
    [
        ("GET", "/n", "GetNamespace", {}),
        ("GET", "/n/", "GetNamespace", {}),
        ("PUT", "/n/s/b/x/o/a%2Fb%20c", "PutObject", {"namespaceName": "s", "bucketName": "x", "objectName": "a/b c"}),
        ("GET", "/n/s/b/x/o/a/b", "GetObject", {"namespaceName": "s", "bucketName": "x", "objectName": "a/b"}),
        ("GET", "/20190101/jobs/j/artifact/content", "GetJobArtifactContent", {"jobId": "j"}),
        ("GET", "/20160918/vcns/..%2Fx", "GetVcn", {"vcnId": "../x"}),
    ],
)
def test_a_path_finds_its_operation(method: str, path: str, name: str, parameters: dict[str, str]) -> None:
    found = Router(ROWS).find(method, path)
    assert found is not None
    assert (found[0].name, found[1]) == (name, parameters)


@pytest.mark.parametrize(("method", "path"), [("PATCH", "/n"), ("GET", "/"), ("GET", "/n/s/b/x/none"), ("GET", "")])
def test_other_paths_find_none(method: str, path: str) -> None:
    assert Router(ROWS).find(method, path) is None


def test_two_rows_for_one_call_are_a_mistake() -> None:
    with pytest.raises(ValueError, match="two operations"):
        Router([*ROWS, ROWS[0]])
