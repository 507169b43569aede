# SPDX-License-Identifier: Apache-2.0
"""A cluster behind TLS with an authority of its own: real handshakes, through the provider."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from components.platform.values import Properties
from localcloud.control import Cloud
from tests.support.openpai_runs import openpai_engine, run_inputs
from tests.support.openpai_world import USER, OpenPaiWorld
from tests.support.provider_client import EngineSide, Failed
from tests.support.tls_front import Authority, tls_front

RUN = "trainyard:index:Run"
# Bundles have comments, in any language.
COMMENT = "# Főtanúsítvány of the company\n"


@pytest.fixture
def engine() -> Iterator[EngineSide]:
    with openpai_engine() as engine:
        yield engine


def _behind(cloud: Cloud) -> tuple[str, int]:
    parts = urlsplit(cloud.endpoint)
    assert parts.hostname
    assert parts.port
    return parts.hostname, parts.port


def _inputs(cloud: Cloud, uri: str, **more: object) -> Properties:
    cluster = {"uri": uri, "user": USER, "virtualCluster": "default"}
    return run_inputs(OpenPaiWorld(cloud), "behind-tls", "echo trained", "exit 3", cluster=cluster, **more)


def test_a_run_works_with_a_private_certificate_authority(
    shared_cloud: Cloud, engine: EngineSide, tmp_path: Path
) -> None:
    own, other = Authority.made("the company"), Authority.made("another company")
    with tls_front(_behind(shared_cloud), own.context(tmp_path, "127.0.0.1")) as uri:
        # The run is submitted and followed, its log is read, and its failure is reported, each over a TLS handshake.
        with pytest.raises(Failed, match="trained") as ended:
            engine.create(RUN, "own", _inputs(shared_cloud, uri, certificate=COMMENT + own.pem))
        kept = ended.value.kept
        assert kept is not None
        file = tmp_path / "own.pem"
        file.write_text(COMMENT + other.pem + COMMENT + own.pem)
        engine.delete(replace(kept, outputs={**kept.outputs, "certificate": str(file)}))

        for certificate in ("", other.pem):
            with pytest.raises(Failed, match=r"certificate.*\n.*name its file in `certificate`"):
                engine.create(RUN, "other", _inputs(shared_cloud, uri, certificate=certificate))
        with pytest.raises(Failed, match="cannot be read") as unreadable:
            engine.create(RUN, "none", _inputs(shared_cloud, uri, certificate=str(tmp_path / "nowhere.pem")))
        assert "nowhere.pem" in str(unreadable.value)


@pytest.mark.parametrize(
    ("address", "days", "remedy"),
    [("127.0.0.2", 1, "for another name"), ("127.0.0.1", -1, "not valid at this time")],
    ids=["name", "time"],
)
def test_a_certificate_error_gives_the_reason(
    address: str, days: int, remedy: str, shared_cloud: Cloud, engine: EngineSide, tmp_path: Path
) -> None:
    own = Authority.made("the company")
    with (
        tls_front(_behind(shared_cloud), own.context(tmp_path, address, days)) as uri,
        pytest.raises(Failed, match=remedy),
    ):
        engine.create(RUN, "own", _inputs(shared_cloud, uri, certificate=own.pem))


def test_a_portal_without_tls_is_not_reported_as_a_certificate_error(shared_cloud: Cloud, engine: EngineSide) -> None:
    with pytest.raises(Failed, match="does not use TLS"):
        engine.create(RUN, "plain", _inputs(shared_cloud, shared_cloud.endpoint.replace("http://", "https://")))
