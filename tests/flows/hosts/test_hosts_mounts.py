# SPDX-License-Identifier: Apache-2.0
"""Buckets that a job mounts are folders on its nodes, at any path. The machine's own folders do not change."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import oci
import pytest

from localcloud import control
from localcloud.control import Cloud
from tests.support.cloud_fixture import Clients
from tests.support.cloud_world import World
from tests.support.network_world import PRELUDE, Network

OBJECTS = {
    "images/one": b"1",
    "images/deep/two": b"22",
    "images/empty/": b"",
    "other": b"x",
    "images//odd": b"",
    "images/../up": b"",
}
ALLOWED, CLOSED = "mounted", "closed"


@pytest.fixture(scope="module")
def world(shared_cloud: Cloud) -> World:
    return furnished(shared_cloud)


def furnished(cloud: Cloud) -> World:
    """A cloud with one bucket that runs may read, and one that they may not."""
    world = World(Clients(cloud))
    storage, identity, models = world.clients.storage, world.clients.identity, oci.identity.models
    for name in (ALLOWED, CLOSED):
        details = oci.object_storage.models.CreateBucketDetails(name=name, compartment_id=world.compartment)
        storage.create_bucket(cloud.namespace, details)
    for name, content in OBJECTS.items():
        storage.put_object(cloud.namespace, ALLOWED, name, content)
    place = {"compartment_id": cloud.tenancy, "name": "mounting", "description": "mounting"}
    rule = f"all {{resource.type = 'datasciencejobrun', resource.compartment.id = '{world.compartment}'}}"
    identity.create_dynamic_group(models.CreateDynamicGroupDetails(**place, matching_rule=rule))
    permissions = "{BUCKET_READ, OBJECT_INSPECT, OBJECT_READ}"
    narrowed = f"in compartment training where target.bucket.name='{ALLOWED}'"
    statement = f"allow dynamic-group mounting to {permissions} {narrowed}"
    identity.create_policy(models.CreatePolicyDetails(**place, statements=[statement]))
    return world


def mount(path: str | None, name: str, prefix: str | None = None, bucket: str = ALLOWED) -> Any:
    return oci.data_science.models.ObjectStorageMountConfigurationDetails(
        destination_path=path, destination_directory_name=name, namespace="trainyardlocal", bucket=bucket, prefix=prefix
    )


_LOOK = """
from pathlib import Path
def tree(top): return sorted(str(path.relative_to(top)) + '/' * path.is_dir() for path in Path(top).rglob('*'))
tell(tree('/trainyard-data/images'))
tell(tree('/mnt/trainyard-all'))
tell(Path('/usr/share/trainyard/images/one').read_text(), len(os.listdir('/usr/share')) > 1)
tell(Path('/trainyard-data/images/deep/two').read_text(), Path('/etc/passwd').exists())
try:
    Path('/trainyard-data/images/new').touch()
except OSError as error:
    tell(error.strerror)
"""
_SEEN = [
    "['deep/', 'deep/two', 'empty/', 'one']",
    "['images/', 'images/deep/', 'images/deep/two', 'images/empty/', 'images/one', 'other']",
    "1 True",
    "22 True",
    "Read-only file system",
]
MOUNTS = [mount("/trainyard-data", "images", "images/"), mount(None, "trainyard-all"), mount("/usr/share", "trainyard")]


def _in_a_subnet(world: World) -> Any:
    network = Network(world)
    subnet = network.subnet("10.0.1.0/24", [], [])
    return world.run(network.job(_LOOK, subnet, job_storage_mount_configuration_details_list=MOUNTS))


def _without(world: World) -> Any:
    return world.run(world.job(PRELUDE + _LOOK, job_storage_mount_configuration_details_list=MOUNTS))


@pytest.mark.parametrize("start", [_in_a_subnet, _without])
def test_a_node_reads_what_its_job_mounts(world: World, start: Callable[[World], Any]) -> None:
    run = start(world)
    assert world.finished(run).lifecycle_state == "SUCCEEDED", world.lines(run)
    assert world.lines(run) == _SEEN
    assert not Path("/trainyard-data").exists()
    assert not Path("/mnt/trainyard-all").exists()
    assert not Path("/usr/share/trainyard").exists()


def test_mounts_work_for_an_account_without_privileges(cloud_of_nobody: Cloud) -> None:
    world = furnished(cloud_of_nobody)
    run = _in_a_subnet(world)
    assert world.finished(run).lifecycle_state == "SUCCEEDED", world.lines(run)
    assert world.lines(run) == _SEEN


def test_mounts_work_for_an_account_with_private_files(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        cloud = control.start_cloud(tmp_path / "cloud")
    finally:
        os.umask(before)
    try:
        world = furnished(cloud)
        run = _in_a_subnet(world)
        done = world.finished(run)
        assert done.lifecycle_state == "SUCCEEDED", (done.lifecycle_details, world.lines(run))
        assert world.lines(run) == _SEEN
    finally:
        control.stop_cloud(cloud.home)


@pytest.mark.parametrize("bucket", [CLOSED, "nowhere"])
def test_a_run_cannot_mount_a_bucket_that_it_may_not_read(world: World, bucket: str) -> None:
    mounts = [mount("/trainyard-data", "images", bucket=bucket)]
    run = world.run(world.job("print('here')", job_storage_mount_configuration_details_list=mounts))
    done = world.finished(run)
    assert (done.lifecycle_state, f"The bucket {bucket} cannot be mounted" in done.lifecycle_details) == (
        "FAILED",
        True,
    )


@pytest.mark.parametrize(
    "mounts",
    [
        [mount(None, "/data/images")],
        [mount("/data", "images"), mount("/data", "images", "deep/")],
        [mount("/data", f"number-{number}") for number in range(6)],
    ],
)
def test_a_job_with_invalid_mounts_is_refused(world: World, mounts: list[Any]) -> None:
    with pytest.raises(oci.exceptions.ServiceError) as refused:
        world.job("pass", job_storage_mount_configuration_details_list=mounts)
    assert (refused.value.status, refused.value.code) == (400, "InvalidParameter")
