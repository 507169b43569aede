# SPDX-License-Identifier: Apache-2.0
"""The marker by which a local cloud is recognized. Who may read it: tests/flows/test_other_accounts.py."""

from typing import Any, cast

from localcloud.server import marker
from localcloud.server.http import Request


def test_a_node_learns_that_this_is_a_local_cloud_and_no_more() -> None:
    request = Request("GET", marker.PATH, marker.PATH, {"host": "127.0.0.1:80"}, of_a_node=True)
    reply = marker.answer(cast(Any, None), request)
    assert (reply.status, set(reply.body)) == (200, {"cloud", "version"})
