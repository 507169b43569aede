# SPDX-License-Identifier: Apache-2.0
"""If a file changes during its upload, the upload is abandoned. Even if that fails, the change is reported."""

from __future__ import annotations

import socket

import pytest

from components.platform.calls import Call, call_of


@pytest.fixture
def call() -> Call:
    return call_of("put", lambda line: None)


@pytest.fixture
def closed() -> str:
    """An address at which nobody listens."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{held.getsockname()[1]}"


def test_an_unreachable_s3_does_not_hide_the_change(call: Call, closed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("botocore")
    from components.aws.client.files import BucketStore
    from components.s3 import Session

    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "mine")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "mine")
    monkeypatch.setenv("AWS_ENDPOINT_URL", closed)
    store = BucketStore(Session.of({"region": "us-east-1"}), call, "bucket", lambda error: error)
    store.abandon("name", "upload")


def test_an_unreachable_object_storage_does_not_hide_the_change(call: Call) -> None:
    oci = pytest.importorskip("oci")
    from components.oci.client.files import BucketStore

    class Unreachable:
        """A session, and its client."""

        def client(self, name: str) -> Unreachable:
            return self

        def abort_multipart_upload(self, *place: str) -> None:
            raise oci.exceptions.ConnectTimeout("nobody answers")

    store = BucketStore(Unreachable(), call, "namespace", "bucket", lambda error: error)  # type: ignore[arg-type]
    store.abandon("name", "upload")
