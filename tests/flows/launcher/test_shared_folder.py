# SPDX-License-Identifier: Apache-2.0
"""Nodes that share only a folder, without a platform: they use it for rendezvous, checkpoints and output."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from components.plan.model import NodePlan
from launcher.printing import LinePrinter
from launcher.stores import EXISTS, ChangedError, Folder, StoreError, folder_opener
from tests.support.nodes import BUCKET, Nodes, Place, nodes, planned, waited
from tests.support.repository import repository
from tests.support.samples import plan

SCRIPT = """# {number}
import json, os, pathlib, signal, sys
kept = pathlib.Path(os.environ["TRAINYARD_CHECKPOINTS"], f"step-{os.environ['RANK']}")
before = int(kept.read_text()) if kept.exists() else 0
kept.write_text(str(before + 1))
pathlib.Path(os.environ["TRAINYARD_OUTPUT"], "model").write_text(f"{os.environ['RANK']} after {before + 1}")
with open(os.environ["TRAINYARD_PROGRESS"], "a") as progress:
    print(json.dumps({"step": before + 1}), file=progress)
import helper
print("step", before + 1, helper.WORD, sorted(name for name in os.environ if name.startswith(("OCI_", "PAI_"))))
if before == 0 and "FAILS" in os.environ:
    sys.exit(3) if os.environ["RANK"] == "1" else signal.pause()
"""


def _of_no_platform() -> tuple[NodePlan, ...]:
    spec = planned("pytorch", {"main": 1, "worker": 1}, ports={"data": "all"}, command="python main.py")
    planned_nodes = plan(jobs={"train": spec}).jobs["train"].runs["base"].nodes
    return tuple(
        replace(node, environment={key: text for key, text in node.environment.items() if not key.startswith("OCI_")})
        for node in planned_nodes
    )


@contextmanager
def sharing(tmp_path: Path, start: str, **changes: Any) -> Iterator[Nodes]:
    folder = f"{(tmp_path / 'shared').as_uri()}/train/base"
    told = {"folder": f"{folder}/1", "checkpoints": f"{folder}/checkpoints", "peers": {"from": "bucket"}, **changes}
    spec = planned("pytorch", {"main": 1, "worker": 1}, ports={"data": "all"}, command="python main.py")
    variables = {"TRAINYARD_START": start}
    with nodes(None, tmp_path / start, spec, "base", _of_no_platform(), changes=told, variables=variables) as run:
        yield run


def test_nodes_train_and_resume_with_a_shared_folder(tmp_path: Path) -> None:
    """Code comes from git by the document. A rank that fails takes the other along, and both start again."""
    (tmp_path / "origin").mkdir()
    url, commit = repository(tmp_path / "origin" / "code", SCRIPT)
    code = {"git": {"url": url, "branch": "main", "commit": commit}}
    given = {"version": 3, "code": code, "retry": {"count": 1}}
    with sharing(tmp_path, "first", **given) as run:
        assert run.start(FAILS="1").codes() == [0, 0], run.shown()
        assert f"code of {url} cloned at {commit[:12]}" in run.launchers[1].text
        assert "stopped: rank 1 (worker-0) failed, so all ranks start again" in run.launchers[0].text
        assert "[0] step 2 helps []" in run.launchers[0].text
    left = tmp_path / "shared" / "train" / "base"
    assert (left / "1" / "first" / "output" / "model").read_text() == "0 after 2"
    assert (left / "1" / "first" / "output" / "rank-1" / "model").read_text() == "1 after 2"
    status = json.loads((left / "1" / "first" / "status" / "1.json").read_text())
    assert (status["state"], status["tries"], status["progress"]) == ("succeeded", 2, {"step": 2})
    with sharing(tmp_path, "second", **given) as run:
        assert run.start().codes() == [0, 0], run.shown()
        assert "[1] step 3 helps []" in run.launchers[1].text, "checkpoints of the first start are restored"
    assert sorted(path.name for path in (left / "1").iterdir()) == ["first", "second"]
    assert not [path for path in left.rglob("*") if "draft" in path.name]


def test_a_node_without_a_start_name_reports_that(tmp_path: Path) -> None:
    with sharing(tmp_path, "") as run:
        assert run.start(0).codes() == [78]
        assert "TRAINYARD_START is not set" in run.launchers[0].text


@pytest.fixture(params=["bucket", "folder"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Folder]:
    """Both stores keep to one contract."""
    if request.param == "folder":
        environment, uri = {}, f"{(tmp_path / 'a b').as_uri()}/below"
    else:
        place: Place = request.getfixturevalue("place")
        environment, uri = place.environment, f"oci://{BUCKET}@{place.namespace}/contract/{tmp_path.name}"
    with closing(folder_opener(environment, LinePrinter())(uri)) as opened:
        yield opened


def _digest(content: bytes) -> str:
    return base64.b64encode(hashlib.md5(content, usedforsecurity=False).digest()).decode()


def test_both_stores_handle_objects_alike(folder: Folder, tmp_path: Path) -> None:
    assert (folder.list(""), folder.get("a/b")) == ([], None)
    folder.remove("a/b")
    first = folder.put("a/b", b"one")
    assert folder.put("a/b", b"two") != first, "another content is another object"
    folder.put("a/c d", b"")
    folder.put("ab", b"three")
    assert [(item.name, item.size) for item in folder.list("a/")] == [("a/b", 3), ("a/c d", 0)]
    assert [item.name for item in folder.list("a")] == ["a/b", "a/c d", "ab"]
    assert folder.get("a/b") == b"two"
    with pytest.raises(StoreError) as there:
        folder.put("a/b", b"four", new=True)
    assert there.value.status == EXISTS
    claimed = folder.put("claims/x", b"{}", new=True)
    assert [item.etag for item in folder.list("claims/")] == [claimed]
    folder.remove("a/b")
    assert [item.name for item in folder.list("")] == ["a/c d", "ab", "claims/x"]


def test_both_stores_handle_files_alike(folder: Folder, tmp_path: Path) -> None:
    content, path = os.urandom(3 << 20), tmp_path / "back"
    file = io.BytesIO(content)
    file.seek(100)  # As a computation of the digest leaves it.
    etag = folder.put_file("big", file, len(content), 1_700_000_000.5, _digest(content))
    (listed,) = folder.list("")
    assert (listed.name, listed.size, listed.etag) == ("big", len(content), etag)
    assert listed.modified > "2026", "the store's time, not the file's"
    assert folder.get_file("big", str(path)) == etag
    assert path.read_bytes() == content
    assert path.stat().st_mtime == 1_700_000_000.5
    with pytest.raises(ChangedError):
        folder.put_file("big", io.BytesIO(content), len(content), 1.0, _digest(b"other"))
    assert [item.etag for item in folder.list("")] == [etag], "what changed meanwhile is not kept"
    with pytest.raises(StoreError):
        folder.get_file("nothing", str(path))
    assert path.read_bytes() == content
    assert not list(tmp_path.glob("back?*"))


def test_object_names_that_leave_the_folder_are_refused(tmp_path: Path) -> None:
    folder = folder_opener({}, LinePrinter())((tmp_path / "below").as_uri())
    for name in ("../up", "/etc/x", "a/../../up", "a//b", ""):
        with pytest.raises(StoreError, match="not a name that a file can have"):
            folder.put(name, b"x")
    (tmp_path / "below").mkdir()
    folder.put("a", b"x")
    with pytest.raises(StoreError):
        folder.put("a/b", b"x")


def test_openpai_tasks_that_start_one_by_one_rendezvous_in_the_folder(tmp_path: Path) -> None:
    """When the first task starts, OpenPAI has only its own address: the other task has no host yet."""
    task = "PAI_CURRENT_TASK_ROLE_NAME", "PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX"
    known = {"PAI_JOB_NAME": "ann~base-1f2e3d4c", "FC_FRAMEWORK_ATTEMPT_ID": "2"}
    script = {"command": ["python", "-c", "import os; print('main is at', os.environ['MASTER_ADDR'])"]}
    told = {"peers": {"from": "openpai"}, "gang": False, **script}
    with sharing(tmp_path, "", **told) as run:
        run.start(0, **known, **dict(zip(task, ("main", "0"), strict=True)), PAI_HOST_IP_main_0="127.0.0.1")
        waited(lambda: any((tmp_path / "shared").rglob("here/127.0.0.1")))
        own = {"PAI_HOST_IP_main_0": "127.0.0.1", "PAI_HOST_IP_worker_0": "127.0.0.2"}
        run.start(1, **known, **dict(zip(task, ("worker", "0"), strict=True)), **own)
        assert run.codes() == [0, 0], run.shown()
        assert "all 2 nodes are there" in run.launchers[0].text
        assert "[1] main is at 127.0.0.1" in run.launchers[1].text
    (start,) = (tmp_path / "shared" / "train" / "base" / "1").iterdir()
    assert start.name == "base-1f2e3d4c-2"


def test_a_gang_without_all_addresses_from_openpai_reports_that(tmp_path: Path) -> None:
    variables = {"PAI_CURRENT_TASK_ROLE_NAME": "main", "PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX": "0"}
    with sharing(tmp_path, "", peers={"from": "openpai"}) as run:
        assert run.start(0, **variables, PAI_HOST_IP_main_0="127.0.0.1").codes() == [132], (
            "a code that OpenPAI does not try again"
        )
        assert "PAI_HOST_IP_worker_0 is not set" in run.launchers[0].text
