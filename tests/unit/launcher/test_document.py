# SPDX-License-Identifier: Apache-2.0
"""Documents that cannot be used are refused with the reason and what to do; `--check` and `--help` start nothing."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any

import pytest

from launcher.document import VARIABLE, read_launch
from launcher.errors import LaunchError
from launcher.escaping import MASK
from launcher.placeholders import fill_placeholders
from launcher.printing import LinePrinter, secret_values
from launcher.start import VARIABLES
from tests.support.documents import document, launch
from tests.support.hostile import PLANTED, orders

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "is not set"),
        ("{", "is not JSON"),
        ("[]", "has version None"),
        (json.dumps({"version": 9}), "rebuild the image"),
        (json.dumps(document(roles=[])), "the run has no rank 0: it has 0 nodes"),
        (json.dumps(document(rank=None, peers={"from": "cluster-metadata"})), "NODE_RANK is not set"),
        (json.dumps(document(rank=None, folder=None, checkpoints=None)), "this platform sets none"),
        (json.dumps(document(role="worker")), "belongs to the role `main`"),
        (json.dumps({key: value for key, value in document().items() if key != "gang"}), "lacks 'gang'"),
        (json.dumps(document(ports=3)), "is not a launch document"),
        ("[" * 90_000 + "]" * 90_000, "is not JSON"),
        (json.dumps(document(rank=float("inf"))), "is not a launch document"),
        (
            json.dumps(document(ports={"x": {"range": [1], "listens": True, "pinned": False}})),
            "is not a launch document",
        ),
    ],
)
def test_unusable_documents_are_refused(text: str, why: str) -> None:
    with pytest.raises(LaunchError, match=why):
        read_launch({VARIABLE: text})


def test_ranks_and_roles() -> None:
    made = launch(1)
    assert [made.role_of(rank).name for rank in range(3)] == ["main", "worker", "worker"]
    assert list(made.ranks_of("worker")) == [1, 2]
    assert made.label(2) == "2 (worker-1)"
    with pytest.raises(LaunchError, match="no role `ps`"):
        made.ranks_of("ps")


def test_a_rank_of_openpai_follows_from_its_task() -> None:
    text = json.dumps(document(rank=None, role="worker", peers={"from": "openpai"}))
    told = {"PAI_CURRENT_TASK_ROLE_NAME": "worker", "PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX": "1"}
    assert read_launch({VARIABLE: text, **told}).rank == 2
    with pytest.raises(LaunchError, match="do not name a task"):
        read_launch({VARIABLE: text})


def test_an_unknown_placeholder_is_refused_with_the_known_ones() -> None:
    assert fill_placeholders("{rank} of {nodes}", {"rank": "1", "nodes": "2"}, "command") == "1 of 2"
    assert fill_placeholders('{"json": {}}', {}, "TF_CONFIG") == '{"json": {}}'
    with pytest.raises(LaunchError, match=r"`command` has the unknown placeholder \{rang\}.*\{rank\}"):
        fill_placeholders("{rang}", {"rank": "1"}, "command")


def test_secrets_are_masked_by_name_and_by_the_list_of_the_stack(capfd: pytest.CaptureFixture[str]) -> None:
    environment = {"MINE": "value-of-mine", "MY_TOKEN": "value-of-token", "USE_AUTH": "true", "PLAIN": "plain-value"}
    values = secret_values(environment, ["MINE"])
    LinePrinter("x", values)("value-of-mine value-of-token true plain-value")
    assert capfd.readouterr().out == f"[x] {MASK} {MASK} true plain-value\n"


def run(
    *arguments: str, variables: Mapping[str, str] = MappingProxyType({}), **changes: Any
) -> subprocess.CompletedProcess[str]:
    # The launcher makes its folder here, which a real node removes with its disk.
    with TemporaryDirectory() as folder:
        environment = {
            "PATH": os.environ["PATH"],
            "TMPDIR": folder,
            VARIABLE: json.dumps(document(**changes)),
            "SOME_TOKEN": "planted-secret",
            **variables,
        }
        return subprocess.run(
            [sys.executable, "-m", "launcher", *arguments], cwd=ROOT, env=environment, capture_output=True, text=True,
            timeout=60, check=False,
        )  # fmt: skip


def test_help_names_every_variable() -> None:
    done = run("--help")
    assert done.returncode == 0
    assert all(name in done.stdout for name in VARIABLES)
    source = "".join(path.read_text("utf-8") for path in (ROOT / "launcher").rglob("*.py"))
    assert all(f'"{name}"' in source.replace("VARIABLES = {", "") for name in VARIABLES)


def test_check_says_what_would_start_and_starts_nothing(tmp_path: Path) -> None:
    witness = tmp_path / "started"
    done = run("--check", command=["touch", str(witness), "planted-secret"], version=4, keep=["a/*.pt"])
    assert done.returncode == 0
    assert f"starts: [0] touch {witness}" in done.stdout
    assert "rank 0 (main-0) of 3 nodes" in done.stdout
    assert "keeps of the working directory, of any size: a/*.pt" in done.stdout
    assert "MASTER_ADDR=<address of main-0>" in done.stdout
    assert "planted-secret" not in done.stdout
    assert not witness.exists()


def test_check_prints_no_control_sequences() -> None:
    done = run("--check", command=["echo", PLANTED], run=PLANTED, environment={"A": PLANTED})
    assert done.returncode == 0
    assert "planted" in done.stdout
    assert orders(done.stdout.encode()) == []


def test_unknown_arguments_are_refused() -> None:
    assert orders(run("--\x1b[31m").stderr.encode()) == []
    done = run("--chek")
    assert (done.returncode, "see python -I -m launcher --help" in done.stderr) == (64, True)


def test_a_document_that_is_wrong_ends_with_78_and_no_traceback() -> None:
    done = run(rank=7)
    assert done.returncode == 78
    assert "the run has no rank 7: it has 3 nodes" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr


def test_a_node_without_an_identity_says_what_is_missing() -> None:
    done = run(folder="oci://b@n/f", peers={"from": "list", "addresses": ["10.0.0.1", "10.0.0.2", "10.0.0.3"]})
    assert done.returncode == 78
    assert "OCI_RESOURCE_PRINCIPAL_REGION is not set" in done.stdout


@pytest.mark.parametrize(
    ("name", "text"),
    [
        *((name, "abc") for name in VARIABLES if name.endswith(("_SECONDS", "_MINUTES"))),
        ("TRAINYARD_WAIT_SECONDS", "nan"),
        ("TRAINYARD_LOST_SECONDS", "-1"),
        ("TRAINYARD_GRACE_SECONDS", "1e999"),
        ("TRAINYARD_GRACE_SECONDS", "\x1b[31m"),
        ("TRAINYARD_PLACE", "/nowhere/at/all"),
    ],
)
def test_a_variable_that_cannot_be_read_is_named(name: str, text: str) -> None:
    done = run(variables={name: text}, folder=None, checkpoints=None)
    assert done.returncode == 78
    assert f"[launcher] {name} is {text!a}, which is not a" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr
    assert "\x1b" not in done.stdout


@pytest.mark.parametrize("path", sorted((ROOT / "launcher").rglob("*.py")), ids=lambda path: path.name)
def test_the_source_is_for_the_pythons_that_images_have(path: Path) -> None:
    ast.parse(path.read_text("utf-8"), feature_version=(3, 9))
