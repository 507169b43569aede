# SPDX-License-Identifier: Apache-2.0
"""The table of operations agrees with the SDK's own tables."""

from functools import partial

import pytest

from components.oci.iam.permissions import known_operations as known_operations
from localcloud.oci import models, sdk, services
from localcloud.oci.api import TAIL
from localcloud.oci.authorization import STANDS_FOR
from localcloud.oci.kinds import ResourceKind
from localcloud.oci.operations import ApiOperation
from localcloud.server.routing import Router

ROWS = services.service_operations()
OWN = frozenset({
    "PushContainerImage", "ListCalls", "ListFaults", "AddFault", "ClearFaults", "ClearFault", "IssueToken",
    "ReadEvidence", "ReadHosts", "ReadProgress",
})  # fmt: skip
# The permissions of these are not documented, so only the tenancy's administrators may call them.
ADMINISTRATORS_ONLY = frozenset({"GetResourceAvailability", "ListLimitDefinitions", "ListLimitValues"})

# Fields of requests that no response shows.
READ_ONLY_ONCE = {"secret": frozenset({"secretContent"})}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.name}-{row.service}")
def test_a_row_has_the_path_that_the_sdk_calls(row: ApiOperation) -> None:
    if row.name not in OWN:
        assert sdk.operation_name(row.method, row.path) == row.name


@pytest.mark.parametrize("row", [row for row in ROWS if row.details], ids=lambda row: row.name)
def test_the_details_of_a_row_are_a_model_of_the_sdk(row: ApiOperation) -> None:
    assert sdk.sdk_model(row.service, row.details).fields


def test_the_catalog_has_the_permissions_of_every_operation() -> None:
    names = {STANDS_FOR.get(row.name, row.name) for row in ROWS} - OWN - ADMINISTRATORS_ONLY
    assert names <= known_operations().keys()


def _kinds() -> list[ResourceKind]:
    """The kinds that have operations."""
    handlers = [row.handler for row in ROWS if isinstance(row.handler, partial)]
    return list(
        {each.name: each for handler in handlers for each in handler.args if isinstance(each, ResourceKind)}.values()
    )


@pytest.mark.parametrize("kind", _kinds(), ids=lambda kind: kind.name)
def test_every_model_sends_empty_tags(kind: ResourceKind) -> None:
    """Without them, every plan of Oracle's provider would show a change."""
    for name in filter(None, (kind.title, kind.summary)):
        tags = {field for field in models.model_fields(kind.service, name) if field.endswith("Tags")}
        tags -= models.NEVER_SENT.get((kind.service, name), frozenset())
        assert tags
        assert models.shape_reply(kind.service, name, {}) == {key: {} for key in tags}


@pytest.mark.parametrize("kind", _kinds(), ids=lambda kind: kind.name)
def test_no_field_of_a_request_is_dropped(kind: ResourceKind) -> None:
    """A field that is neither shown, nor read, nor refused would be silently ignored."""
    shown = (
        models.model_fields(kind.service, kind.title)
        | kind.unserved.keys()
        | READ_ONLY_ONCE.get(kind.name, frozenset())
    )
    given = {"Create": kind.create_details, "Update": kind.update_details}
    for verb, details in given.items():
        if verb in kind.verbs:
            assert models.model_fields(kind.service, details or f"{verb}{kind.title}Details") <= shown


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
    found = Router(ROWS, TAIL).find(method, path)
    assert found is not None
    assert (found[0].name, found[1]) == (name, parameters)


@pytest.mark.parametrize(
    ("method", "path"),
    [("PATCH", "/n"), ("GET", "/"), ("GET", "/n/s/b/x/none"), ("GET", ""), ("GET", "/20190301/secretbundles/actions")],
)
def test_an_unknown_path_has_no_operation(method: str, path: str) -> None:
    assert Router(ROWS, TAIL).find(method, path) is None


def test_two_rows_for_one_call_are_refused() -> None:
    with pytest.raises(ValueError, match="two operations"):
        Router([*ROWS, ROWS[0]])
