# SPDX-License-Identifier: Apache-2.0
"""Which platform a node is on: the document says it, else the environment; where neither does, nothing is assumed."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

from launcher import platforms
from launcher.errors import LaunchError, MissingError
from launcher.network import own_address
from launcher.printing import LinePrinter
from launcher.retries import start_name
from launcher.stores import folder_opener
from tests.support.documents import launch

LAUNCHER = Path(__file__).parents[3] / "launcher"
OWN = {"launcher.aws_dl1", "launcher.oci", "launcher.openpai", "launcher.shared"}
OF_OCI, OF_OPENPAI, OF_NOBODY = "launcher.oci.identity", "launcher.openpai.identity", "launcher.platforms"
SHARED: dict[str, Any] = {"folder": "file:///runs/train", "checkpoints": None}
LIST = {"from": "list", "addresses": ["10.0.0.1", "10.0.0.2", "10.0.0.3"]}


@pytest.mark.parametrize(
    ("changes", "environment", "module"),
    [
        ({}, {}, OF_OCI),
        ({"peers": {"from": "cluster-metadata"}, "folder": None}, {}, OF_OCI),
        ({"peers": {"from": "openpai"}}, {}, OF_OPENPAI),
        (SHARED, {}, OF_NOBODY),
        ({**SHARED, "peers": LIST}, {}, OF_NOBODY),
        ({**SHARED, "peers": {"from": "openpai"}}, {"JOB_RUN_OCID": "ocid1.run.a"}, OF_OPENPAI),
        (SHARED, {"JOB_RUN_OCID": "ocid1.run.a"}, OF_OCI),
        ({"folder": None, "peers": LIST}, {"PAI_JOB_NAME": "train"}, OF_OPENPAI),
        # A launch document of OCI in a shell on OpenPAI.
        ({}, {"PAI_JOB_NAME": "train"}, OF_OCI),
    ],
)
def test_the_document_names_the_platform_before_the_environment_does(
    changes: dict[str, Any], environment: dict[str, str], module: str
) -> None:
    assert type(launch(0, environment, **changes).identity).__module__ == module


def test_a_node_without_platform_reads_its_start_from_a_variable() -> None:
    assert start_name(launch(1, {"TRAINYARD_START": "a1-B2_c3"}, **SHARED)) == "a1-B2_c3"
    with pytest.raises(LaunchError, match="TRAINYARD_START is not set, so this node could meet nodes of an earlier"):
        start_name(launch(0, **SHARED))
    assert start_name(launch(0, **{**SHARED, "peers": LIST})) == ""


@pytest.mark.parametrize("name", ["../other", "a/b", "-x", "é", "a\nb", "."])
def test_an_invalid_start_name_is_refused(name: str) -> None:
    with pytest.raises(LaunchError, match=r"TRAINYARD_START is .* use letters"):
        start_name(launch(0, {"TRAINYARD_START": name}, **SHARED))


def test_a_neutral_identity_assumes_nothing() -> None:
    identity = launch(0, {"NODE_RANK": "0", "HOME": "/root"}, **SHARED).identity
    assert (identity.git(), identity.unpacked(), dict(identity.outputs("/output"))) == (None, None, {})
    with pytest.raises(LaunchError, match="needs the secret key, but this platform keeps no secrets"):
        identity.secret("key", LinePrinter())


def test_an_unknown_store_is_refused_with_the_known_ones() -> None:
    for uri in ("gs://bucket/train", "bucket/train", "/runs/train"):
        with pytest.raises(LaunchError, match=rf"cannot open `{uri}`, only oci://, s3://, file://: rebuild it"):
            folder_opener({}, LinePrinter())(uri)
    for uri in ("file://host/runs", "file:runs", "file:///runs?x", "oci://bucket/train"):
        with pytest.raises(
            (LaunchError, MissingError), match=r"write file:///path|cannot open|OCI_RESOURCE_PRINCIPAL_REGION"
        ):
            folder_opener({}, LinePrinter())(uri)


def test_a_node_of_a_shared_folder_needs_an_address_variable() -> None:
    assert own_address({"TRAINYARD_NODE_ADDRESS": "10.0.0.7"}, "") == "10.0.0.7"
    with pytest.raises(LaunchError, match="TRAINYARD_NODE_ADDRESS is not set"):
        own_address({}, "")


def test_only_launcher_platforms_names_modules_of_platforms() -> None:
    """import-linter holds the imports; names in texts, by which modules are imported late, are held here."""
    named = {
        path.relative_to(LAUNCHER).as_posix()
        for path in LAUNCHER.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        if any(node.value.startswith(own) for own in OWN)
    }
    # What user data brings starts the program of its own platform.
    assert named == {"platforms.py", "aws_dl1/fetch.py"}
    rows = [*platforms.PLATFORMS]
    modules = {module for row in rows for module in (*row.stores.values(), *row.peers.values(), row.identity) if module}
    assert {module.rpartition(".")[0] for module in modules} == OWN
