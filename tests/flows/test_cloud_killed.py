# SPDX-License-Identifier: Apache-2.0
"""The local cloud is killed at random moments: every change with a response is kept, and the state is consistent."""

import random
import sqlite3
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import oci
import pytest

from localcloud import control
from localcloud.control import Cloud
from tests.support.cloud_fixture import Clients, kill, local_cloud
from tests.support.counts import FIRST, wanted
from tests.support.waiting import LONGEST_SECONDS

NAMESPACE = "trainyardlocal"
ROUNDS = wanted(sample=3, full=40)
core, storage = oci.core.models, oci.object_storage.models
# The content that each of a worker's names must have, by the responses. None for a deleted one.
Known = dict[str, bytes | None]


def _objects(clients: Clients, chance: random.Random, known: Known) -> None:
    name, content = f"objects/{chance.randrange(4)}", chance.randbytes(chance.randrange(4000))
    doubt = known.pop(name, None)  # until it is answered, both may be
    if doubt is not None and chance.random() < 0.3:
        clients.storage.delete_object(NAMESPACE, "kept", name)
        known[name] = None
    else:
        clients.storage.put_object(NAMESPACE, "kept", name, content)
        known[name] = content


def _parts(clients: Clients, chance: random.Random, known: Known) -> None:
    name, content = f"parts/{chance.randrange(3)}", chance.randbytes(3000)
    known.pop(name, None)
    details = storage.CreateMultipartUploadDetails(object=name)
    upload = clients.storage.create_multipart_upload(NAMESPACE, "kept", details).data.upload_id
    parts = []
    for number in (1, 2, 3):
        piece = content[(number - 1) * 1000 : number * 1000]
        etag = clients.storage.upload_part(NAMESPACE, "kept", name, upload, number, piece).headers["etag"]
        parts.append(storage.CommitMultipartUploadPartDetails(part_num=number, etag=etag))
    if chance.random() < 0.2:
        clients.storage.abort_multipart_upload(NAMESPACE, "kept", name, upload)
        return
    commit = storage.CommitMultipartUploadDetails(parts_to_commit=parts)
    clients.storage.commit_multipart_upload(NAMESPACE, "kept", name, upload, commit)
    known[name] = content


def _networks(clients: Clients, chance: random.Random, known: Known) -> None:
    details = core.CreateVcnDetails(compartment_id=clients.cloud.compartment, cidr_block="10.0.0.0/16")
    vcn = clients.network.create_vcn(details).data
    clients.network.update_vcn(vcn.id, core.UpdateVcnDetails(display_name="changed"))
    if chance.random() < 0.7:
        clients.network.delete_vcn(vcn.id)


def _until_it_breaks(
    work: Callable[..., None], cloud: Cloud, seed: str, known: Known, begun: threading.Barrier
) -> None:
    clients, chance = Clients(cloud), random.Random(seed)
    clients.storage.get_namespace()
    begun.wait(LONGEST_SECONDS)
    try:
        while True:
            work(clients, chance, known)
    except Exception:  # the connection is cut in whichever of many ways
        return


@pytest.mark.parametrize("seed", range(FIRST, FIRST + ROUNDS))
def test_a_cloud_killed_during_mixed_work_keeps_every_answered_change(tmp_path: Path, seed: int) -> None:
    with local_cloud(tmp_path / "cloud") as cloud:
        details = storage.CreateBucketDetails(
            name="kept", compartment_id=cloud.compartment, versioning="Enabled" if seed % 2 else "Disabled"
        )
        Clients(cloud).storage.create_bucket(NAMESPACE, details)
        works = (_objects, _parts, _networks)
        known: list[Known] = [{} for _ in works]
        begun = threading.Barrier(len(works) + 1)
        with ThreadPoolExecutor(len(works)) as pool:
            for index, work in enumerate(works):
                pool.submit(_until_it_breaks, work, cloud, f"{seed} {index}", known[index], begun)
            begun.wait(LONGEST_SECONDS)
            # This test kills at a moment by time, so it does not wait for a condition.
            time.sleep(random.Random(seed).uniform(0.05, 0.6))
            kill(cloud)
        again = Clients(control.start_cloud(cloud.home))
        for name, content in {**known[0], **known[1]}.items():
            assert _read(again, name) == content, name
        _fits_together(cloud.home)
        _empty(again)


def _read(clients: Clients, name: str) -> bytes | None:
    try:
        return bytes(clients.storage.get_object(NAMESPACE, "kept", name).data.content)
    except oci.exceptions.ServiceError as error:
        if error.code != "ObjectNotFound":
            raise
        return None


def _fits_together(home: Path) -> None:
    connection = sqlite3.connect(f"file:{home / 'state.sqlite3'}?mode=ro", uri=True)
    try:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        sizes = "SELECT file, size FROM {} UNION ALL SELECT file, size FROM {} UNION ALL SELECT file, size FROM {}"
        rows = dict(connection.execute(sizes.format("objects", "parts", "versions WHERE NOT marker")))
        files = {path.name: path.stat().st_size for path in (home / "objects").iterdir() if path.is_file()}
        assert files == rows
        count = "SELECT count(*) FROM {} WHERE {}"
        orphans = count.format("parts", "upload NOT IN (SELECT id FROM uploads)")
        assert connection.execute(orphans).fetchone() == (0,)
        living = "SELECT count(*) FROM resources WHERE kind = ? AND live"
        vcns, *defaults = (
            connection.execute(living, (kind,)).fetchone()[0]
            for kind in ("vcn", "route-table", "security-list", "dhcp-options")
        )
        assert defaults == [vcns] * 3
    finally:
        connection.close()


def _empty(clients: Clients) -> None:
    """A client can delete everything that is left."""
    bucket: Any = (NAMESPACE, "kept")
    for upload in clients.storage.list_multipart_uploads(*bucket).data:
        clients.storage.abort_multipart_upload(*bucket, upload.object, upload.upload_id)
    listed = oci.pagination.list_call_get_all_results(clients.storage.list_object_versions, *bucket, limit=1000).data
    for item in getattr(listed, "items", listed):
        clients.storage.delete_object(*bucket, item.name, version_id=item.version_id)
    clients.storage.delete_bucket(*bucket)
    folder = clients.cloud.home / "objects"
    assert [path.name for path in folder.iterdir() if path.is_file()] == []
