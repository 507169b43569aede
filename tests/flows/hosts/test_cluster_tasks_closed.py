# SPDX-License-Identifier: Apache-2.0
"""A task of the local OpenPAI cannot get out of its host, neither directly nor by files that it leaves in a storage."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from components.openpai.client.storages import storages_folder
from localcloud.openpai.storages import task_storages
from localcloud.openpai.tasks import TaskStorage
from tests.flows.hosts.ways_out import DOORS, try_all
from tests.support.cluster_tasks import Reports, attempt_of, carried_out

_JOB = {"extras": {"storages": [{"name": "data", "share": False, "mountPath": "/mnt/own"}]}}
# The kernel's settings are read-only, and so are the replacements of the machine's own files.
_CLOSED = """
! unshare --user true 2>/dev/null
! touch /usr/mine 2>/dev/null
test "$(cat /proc/sys/user/max_user_namespaces)" = 0
"""


def test_no_link_in_a_storage_gives_a_task_other_files(tmp_path: Path) -> None:
    """Users of a storage can make a link in place of a user's folder or of a mount point."""
    storage, secret = storages_folder(tmp_path) / "data", tmp_path / "secret"
    storage.mkdir(parents=True)
    secret.mkdir()
    (secret / "key").write_text("secret")
    before = os.stat(secret / "key")
    (storage / "ann").symlink_to(secret)
    (storage / "bob").symlink_to(secret / "key")
    (storage / "cid").write_text("a file")
    (storage / "up").symlink_to(tmp_path)
    attempts = [
        replace(attempt_of(name, tmp_path, "cat /mnt/own/key || touch /mnt/own/mine"), storages=shown, user=name)
        for name in ("ann", "bob", "cid", "dan")
        for shown in (task_storages(tmp_path, _JOB, name),)
    ]
    below = TaskStorage("data", "/mnt/own", storage / "up" / "secret")
    attempts.append(attempt_of("eve", tmp_path, "cat /mnt/own/key", storages=(below,)))
    reports = Reports()
    ends = carried_out(tmp_path, reports, attempts)
    refused = dict.fromkeys(("ann", "bob", "cid", "eve"), -1204)
    assert {name: how.code for name, how in ends.items()} == {**refused, "dan": 0}, ends
    assert "is not a folder" in ends["ann"].details
    assert (storage / "dan" / "mine").exists()
    assert sorted(path.name for path in secret.iterdir()) == ["key"]
    assert (os.stat(secret / "key").st_uid, os.stat(secret).st_uid) == (before.st_uid, before.st_uid)


def test_no_storage_hides_the_files_that_confine_a_task(tmp_path: Path) -> None:
    """A fake /proc must not make the task's first program skip its restrictions."""
    storage = storages_folder(tmp_path) / "data"
    (storage / "self").mkdir(parents=True)
    (storage / "self" / "mountinfo").write_text("")
    (storage / "sys" / "user").mkdir(parents=True)
    (storage / "sys" / "user" / "max_user_namespaces").write_text("9")
    (storage / "link").symlink_to("/proc")
    places = {"double": ["//proc"], "below": ["/proc/sys"], "linked": ["/mnt/a", "/mnt/a/link"], "good": ["/mnt/a"]}
    attempts = [
        attempt_of(name, tmp_path, _CLOSED, storages=tuple(
            TaskStorage(f"s{number}", mount, storage) for number, mount in enumerate(mounts)
        ))
        for name, mounts in places.items()
    ]  # fmt: skip
    ends = carried_out(tmp_path, Reports(), attempts)
    refused = {name for name, how in ends.items() if how.code == -1204 and "choose another path" in how.details}
    assert (refused, ends["good"].code) == ({"double", "below", "linked"}, 0), ends
    assert (storage / "sys" / "user" / "max_user_namespaces").read_text() == "9"


def test_a_task_cannot_use_refused_system_calls(tmp_path: Path) -> None:
    script = try_all(DOORS, planted=False)
    attempt = attempt_of("a", tmp_path, f"cat > tries.py <<'END'\n{script}\nEND\npython tries.py")
    ends = carried_out(tmp_path, Reports(), [attempt])
    said = (attempt.logs / "all").read_text().splitlines()
    assert (ends["a"].code, said[-1:]) == (0, ["all tried"]), said
    tried = [line.split(" ", 2) for line in said[:-1]]
    assert [int(number) for number, *_ in tried] == list(range(len(DOORS)))
    assert not {DOORS[int(number)].name: what for number, came, what in tried if came != "held"}
