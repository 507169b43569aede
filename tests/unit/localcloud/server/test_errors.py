# SPDX-License-Identifier: Apache-2.0
"""The server handles the errors of all APIs, and each API writes them in its own format."""

from __future__ import annotations

import asyncio
import errno
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from localcloud.aws.cloud import AwsCloud
from localcloud.oci.api import OciApi
from localcloud.openpai.cluster import OpenPaiCluster
from localcloud.server.api_errors import invalid_parameter
from localcloud.server.app import answer_request
from localcloud.server.faults import DroppedError
from localcloud.server.http import Body, HttpApi, Reply, Request

_APIS: tuple[type[Any], ...] = (OciApi, AwsCloud, OpenPaiCluster)
_FULL = OSError(errno.ENOSPC, "full")
_BROKEN = "The local cloud failed; its log has the traceback"


def _failing(api: type[Any], problem: BaseException) -> HttpApi:
    """An API whose answers always fail with this problem."""

    async def answer(self: Any, request: Request, body: Body) -> tuple[Reply, str]:
        raise problem

    names: dict[str, Callable[..., Any]] = {"answer": answer, "operation": lambda self, request: ""}
    failing = type("Failing", (api,), names)
    return cast(HttpApi, object.__new__(failing))


def _content(api: type[Any], problem: BaseException, home: Path) -> tuple[int, Any, str]:
    request = Request("POST", "/", "/", {"x-amz-target": "AmazonSSM.SendCommand"})
    reply, summary = asyncio.run(answer_request(_failing(api, problem), request, cast(Body, None), home))
    return reply.status, json.loads(reply.payload()), summary


@pytest.mark.parametrize(
    ("problem", "contents"),
    [
        (
            invalid_parameter("no"),
            [
                (400, {"code": "InvalidParameter", "message": "no"}),
                (400, {"__type": "SerializationException", "message": "no"}),
                (400, {"code": "InvalidParametersError", "message": "no"}),
            ],
        ),
        (
            KeyError("a mistake of ours"),
            [
                (500, {"code": "InternalError", "message": _BROKEN}),
                (500, {"__type": "InternalServerError", "message": _BROKEN}),
                (500, {"code": "UnknownError", "message": _BROKEN}),
            ],
        ),
    ],
)
def test_each_api_writes_an_error_in_its_own_format(
    problem: Exception, contents: list[tuple[int, Any]], tmp_path: Path
) -> None:
    assert [_content(api, problem, tmp_path)[:2] for api in _APIS] == contents


@pytest.mark.parametrize("api", _APIS)
def test_every_api_reports_a_full_disk(api: type[Any], tmp_path: Path) -> None:
    status, content, summary = _content(api, _FULL, tmp_path)
    assert status == 507
    assert set(content.values()) == {"InsufficientStorage", content["message"]}
    assert re.match("There is no space left under .*: this call changed nothing$", content["message"])
    assert summary == f"507 InsufficientStorage: {content['message']}"


@pytest.mark.parametrize("api", _APIS)
def test_a_dropped_call_gets_no_answer(api: type[Any], tmp_path: Path) -> None:
    with pytest.raises(DroppedError):
        _content(api, DroppedError(), tmp_path)
