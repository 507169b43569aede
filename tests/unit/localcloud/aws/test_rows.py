# SPDX-License-Identifier: Apache-2.0
"""The tables of the local AWS match botocore's models: operations, parameters, routes."""

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path
from string import Formatter
from typing import Any

import botocore.session
import pytest

from catalog.tables import table
from localcloud.aws import aws_errors
from localcloud.aws.aws_errors import Reason, RefusalError
from localcloud.aws.kept import SavedState
from localcloud.aws.refusals.in_use import USERS
from localcloud.aws.s3_operations import identify_s3_operation, s3_operation_names
from localcloud.aws.services import SERVICES, Wire
from tests.support.requests import request

# Services with other names in botocore than in signatures.
_MODELS = {"servicequotas": "service-quotas", "tag": "resourcegroupstaggingapi"}
CALLS = table("aws_calls")
REFUSALS = table("aws_refusals")


@cache
def _model(prefix: str) -> Any:
    return botocore.session.Session().get_service_model(_MODELS.get(prefix, prefix))


@cache
def _members(prefix: str, operation: str) -> frozenset[str]:
    return frozenset(getattr(_model(prefix).operation_model(operation).input_shape, "members", ()))


def test_every_service_is_in_botocore() -> None:
    for row in SERVICES.values():
        assert _model(row.prefix).signing_name == row.signing


@pytest.mark.parametrize("part", ["actions", "refused"])
def test_operations_with_rows_exist(part: str) -> None:
    for prefix, rows in CALLS[part].items():
        assert set(rows) <= set(_model(prefix).operation_names), prefix


def test_rows_name_resources_by_existing_parameters() -> None:
    for row in CALLS["resource"]:
        model = _model(row["service"])
        named = [one for one in (*row["operations"], *row.get("except", ())) if one != "*"]
        assert set(named) <= set(model.operation_names), row
        operations = model.operation_names if "*" in row["operations"] else named
        members = {
            name for one in operations for name in getattr(model.operation_model(one).input_shape, "members", ())
        }
        assert set(row["parameters"]) <= members, row


def test_refusal_rows_name_existing_operations_and_parameters() -> None:
    rows = [(name, row) for row in REFUSALS["document"] for name in row["operations"]]
    rows += [(row["operation"], row) for row in (*REFUSALS["in_use"], *REFUSALS["values"])]
    for operation, row in rows:
        prefix, _, name = operation.partition(".")
        parameter = row["parameter"] or "Policy"  # the policy of a bucket is the body
        assert parameter in _model(prefix).operation_model(name).input_shape.members, operation
    assert set(REFUSALS["limits"]) <= {row.prefix for row in SERVICES.values()}


def test_every_reason_has_a_code_in_every_format() -> None:
    assert set(REFUSALS["reasons"]) == {reason.value for reason in Reason}
    assert {frozenset(codes) for codes in REFUSALS["reasons"].values()} == {frozenset(wire.value for wire in Wire)}


def test_rows_of_found_refusals_are_raised_with_their_values() -> None:
    raised: dict[str, set[str | None]] = {}
    for file in Path(aws_errors.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "aws_refusal":
                given = {keyword.arg for keyword in node.keywords}
                assert raised.setdefault(ast.literal_eval(node.args[0]), given) == given
    fields = {
        name: {field for text in row[:2] for _, field, _, _ in Formatter().parse(text) if field}
        for name, row in REFUSALS["found"].items()
    }
    assert fields == raised


def test_every_kind_of_user_is_in_a_row() -> None:
    assert {kind for row in REFUSALS["in_use"] for kind in row["of"]} == set(USERS)


def test_rows_of_created_resources_name_existing_operations() -> None:
    assert set(CALLS["ec2"]["makes"]) <= set(_model("ec2").operation_names)
    kinds = {kind for kinds in CALLS["ec2"]["makes"].values() for kind in kinds}
    assert kinds <= set(CALLS["ec2"]["prefixes"].values())


@pytest.mark.parametrize(
    ("method", "target", "operation"),
    [
        ("GET", "/", "ListBuckets"),
        ("PUT", "/bucket", "CreateBucket"),
        ("GET", "/bucket?list-type=2", "ListObjectsV2"),
        ("GET", "/bucket/", "ListObjects"),
        ("HEAD", "/bucket", "HeadBucket"),
        ("PUT", "/bucket?policy", "PutBucketPolicy"),
        ("POST", "/bucket?delete", "DeleteObjects"),
        ("GET", "/bucket?versions", "ListObjectVersions"),
        ("PUT", "/bucket/a/b", "PutObject"),
        ("GET", "/bucket/a?tagging", "GetObjectTagging"),
        ("POST", "/bucket/a?uploads", "CreateMultipartUpload"),
        ("PUT", "/bucket/a?uploadId=1&partNumber=2", "UploadPart"),
        ("POST", "/bucket/a?uploadId=1", "CompleteMultipartUpload"),
        ("GET", "/bucket/a?uploadId=1", "ListParts"),
        ("DELETE", "/bucket/a?versionId=1", "DeleteObject"),
        ("GET", "/bucket?uploads", "ListMultipartUploads"),
    ],
)
def test_an_s3_request_is_identified_as_one_operation(method: str, target: str, operation: str) -> None:
    assert identify_s3_operation(request(method, target))[0] == operation
    assert operation in _model("s3").operation_names


@pytest.mark.parametrize(
    ("method", "target"),
    [
        ("DELETE", "/bucket?metrics&id=x"), ("GET", "/bucket?analytics"), ("DELETE", "/bucket?acl"),
        ("DELETE", "/bucket?versioning"), ("PUT", "/bucket?requestPayment"), ("DELETE", "/bucket/a?acl"),
        ("GET", "/bucket/a?retention"), ("PUT", "/bucket/a?policy"), ("PUT", "/bucket?uploads"),
    ],
)  # fmt: skip
def test_an_s3_request_that_moto_would_misread_is_refused(method: str, target: str) -> None:
    with pytest.raises(RefusalError):
        identify_s3_operation(request(method, target))


def test_all_s3_operations_exist() -> None:
    assert set(s3_operation_names()) <= set(_model("s3").operation_names)


def test_a_state_of_another_moto_is_set_aside(tmp_path: Path) -> None:
    first = SavedState(tmp_path)
    first._connection.execute("UPDATE facts SET value = 'moto 1.0 on Python 3.0'")
    first.close()
    SavedState(tmp_path).close()
    assert len(list(tmp_path.glob("state.sqlite3.????????"))) == 1


def test_starting_the_local_cloud_does_not_import_moto() -> None:
    slow = ("moto", "botocore", "flask", "boto3", "werkzeug")
    script = "import sys, localcloud.serve as server; [*server.server_parts()];" \
             f"print([name for name in sys.modules if name in {slow}])"  # fmt: skip
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
