# SPDX-License-Identifier: Apache-2.0
"""The forms of a git repository's address."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.job_code import git_host, git_port
from tests.support.samples import stack


@pytest.mark.parametrize(
    ("url", "port", "inside"),
    [
        ("https://git.example.com/vision/train.git", 443, False),
        ("https://user:word@git.example.com:8443/train.git", 8443, False),
        ("http://git.example.com/train.git", 80, False),
        ("git@git.example.com:vision/train.git", 22, False),
        ("git@git.example.com:2222/train.git", 22, False),  # a path, as git reads it
        ("ssh://git@git.example.com/train.git", 22, False),
        ("ssh://git@git.example.com:2222/train.git", 2222, False),
        ("git://git.example.com/train.git", 9418, False),
        ("https://devops.scmservice.us-ashburn-1.oci.oraclecloud.com/namespaces/a/train", 443, True),
        ("ssh://devops.scmservice.us-ashburn-1.oci.oraclecloud.com/namespaces/a/train", 22, True),
        ("https://oraclecloud.com.example.com/train.git", 443, False),
    ],
)
def test_the_port_and_whether_the_service_gateway_leads_there(url: str, port: int, inside: bool) -> None:
    assert (git_port(url), stack().is_inside(git_host(url))) == (port, inside)


@given(url=st.text(max_size=60))
def test_any_text_has_a_port(url: str) -> None:
    assert 0 < git_port(url) < 65536
    assert git_host(url) in url
