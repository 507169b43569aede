# SPDX-License-Identifier: Apache-2.0
"""Clients of AWS from configuration and environment, and messages for AWS's errors, without a cloud."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError, ConnectionClosedError, EndpointConnectionError

from components import s3
from components.platform.calls import Call, ProviderError, Stop
from components.s3 import Session
from provider.base.wire import Engine, UrnReporter

PROFILE = "[profile deployer]\nregion = us-west-2\n"
KEYS = "[deployer]\naws_access_key_id = AKIDDEPLOYER\naws_secret_access_key = s\n"


def _call() -> Call:
    return Call("urn", "t", "n", UrnReporter(Engine(), "urn", frozenset()), Stop())


def _refused(code: str, status: int = 400, message: str = "no") -> ClientError:
    answer = {
        "Error": {"Code": code, "Message": message},
        "ResponseMetadata": {"HTTPStatusCode": status, "RequestId": "R"},
    }
    return ClientError(answer, "SendCommand")


@pytest.fixture
def variables(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "config").write_text(PROFILE)
    (tmp_path / "credentials").write_text(KEYS)
    return {
        "AWS_ENDPOINT_URL": "http://127.0.0.1:1",
        "AWS_PROFILE": "deployer",
        "AWS_CONFIG_FILE": str(tmp_path / "config"),
        "AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "credentials"),
    }


def test_a_given_environment_leads_to_its_own_cloud(variables: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDOFTHESHELL")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "t")
    client = Session.of({}, variables).client("s3")
    assert client.meta.endpoint_url == "http://127.0.0.1:1"
    assert client.meta.region_name == "us-west-2"
    assert client._get_credentials().access_key == "AKIDDEPLOYER"


def test_botocores_own_variables_count(variables: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    client = Session.of({"region": "us-east-1"}).client("ec2")
    assert client.meta.endpoint_url == "http://127.0.0.1:1"
    assert client.meta.region_name == "us-east-1"
    assert client._get_credentials().access_key == "AKIDDEPLOYER"


def test_many_threads_share_one_client(variables: dict[str, str]) -> None:
    session = Session.of({}, variables)
    with ThreadPoolExecutor(8) as pool:
        clients = set(pool.map(lambda _: id(session.client("ssm")), range(32)))
    assert len(clients) == 1


def test_credentials_that_do_not_work_are_said(variables: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ProviderError, match=r"nobody.*\n.*AWS_PROFILE"):
        Session.of({"profile": "nobody"}, variables).client("s3")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    empty = {**variables, "AWS_PROFILE": "", "AWS_SHARED_CREDENTIALS_FILE": "/none", "AWS_REGION": "us-east-1"}
    with pytest.raises(ProviderError, match="No credentials"):
        Session.of({}, empty).client("s3")


def test_a_cloud_that_is_not_there_is_said_with_its_address(variables: dict[str, str]) -> None:
    with pytest.raises(ProviderError, match=r"127\.0\.0\.1:1.*\n.*AWS_ENDPOINT_URL"):
        _ = Session.of({}, variables).account


@pytest.mark.parametrize(
    ("error", "retried", "text"),
    [
        (_refused("ThrottlingException"), True, ""),
        (_refused("InternalError", 500), True, ""),
        (_refused("InsufficientInstanceCapacity", 500), False, "no free machine"),
        (_refused("VcpuLimitExceeded"), False, "quota of vCPUs"),
        (_refused("ExpiredToken", 403), False, "have expired"),
        (
            _refused("AccessDenied", 403, "u is not authorized to perform: s3:PutObject on x"),
            False,
            "not do s3:PutObject",
        ),
        (_refused("AccessDenied", 403, "Access Denied"), False, "not do SendCommand"),
        (_refused("ValidationError"), False, "ValidationError: no"),
        (EndpointConnectionError(endpoint_url="http://x"), True, ""),
    ],
    ids=str,
)
def test_what_an_answer_means(error: Exception, retried: bool, text: str) -> None:
    tries = []

    def operation() -> str:
        tries.append(1)
        if len(tries) == 1:
            raise error
        return "made"

    if retried:
        assert s3.call_aws(_call(), "Do it", operation) == "made"
    else:
        with pytest.raises(ProviderError) as refused:
            s3.call_aws(_call(), "Do it", operation)
        assert text in str(refused.value)
        assert "Do it" in refused.value.cause


def test_a_page_that_failed_once_is_asked_for_again(variables: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    client = Session.of({}, variables).client("s3")
    asked: list[Any] = []

    def list_page(**request: Any) -> Any:
        asked.append(request.get("ContinuationToken"))
        if len(asked) == 2:
            raise _refused("SlowDown", 503)
        more = {"NextContinuationToken": "b"} if len(asked) == 1 else {}
        return {"IsTruncated": bool(more), "Contents": [{"Key": str(len(asked))}], **more}

    monkeypatch.setattr(client, "list_objects_v2", list_page)
    seen = [
        page["Contents"][0]["Key"] for page in s3.list_aws_pages(_call(), "List", client, "list_objects_v2", Bucket="b")
    ]
    assert (seen, asked) == (["1", "3"], [None, "b", "b"])


def test_words_of_strangers_are_escaped() -> None:
    assert "\x1b" not in s3.aws_error_text(_refused("NoSuchKey", 404, "\x1b[2J"))
    assert s3.is_missing_in_aws(_refused("NoSuchKey", 404))
    assert not s3.is_missing_in_aws(_refused("AccessDenied", 403))


def test_a_connection_that_closes_without_a_response_is_a_refusal_with_a_remedy() -> None:
    closed = ConnectionClosedError(endpoint_url="https://s3.example", error=None)
    assert closed.response is None
    assert "cannot be reached" in s3.aws_refusal("List", closed).remedy
