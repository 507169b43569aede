# SPDX-License-Identifier: Apache-2.0
"""Operation after the first `up`: drift, import, targeted changes, two stacks at once, `down` with a live run."""

import json
import os
import re
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import oci
import psutil
import pytest

from localcloud.control import Cloud
from tests.support.local_team import Team, ended, summary
from trainyard.local.cloud_use import CloudUse

pytestmark = pytest.mark.engine

WAITS = """\
import time
print("waiting", flush=True)
time.sleep(600)
"""


@pytest.fixture
def team(tmp_path: Path) -> Iterator[Team]:
    one = Team(tmp_path, "local", "oci-proof-of-concept")
    yield one
    one.end()


def client(cloud: Cloud, kind: Any) -> Any:
    return kind(oci.config.from_file(str(cloud.config_file), "deployer"), service_endpoint=cloud.endpoint)


def objects(team: Team) -> list[Any]:
    cloud = team.cloud
    storage = client(cloud, oci.object_storage.ObjectStorageClient)
    return list(storage.list_objects(cloud.namespace, "demo-local-training").data.objects)


def resource(team: Team, kind: str) -> dict[str, Any]:
    return next(row for row in team.resources() if row["type"] == kind)


def test_changes_outside_of_pulumi_are_detected_and_reverted(team: Team) -> None:
    team.trainyard("up", "local")
    cloud, rules = team.cloud, resource(team, "oci:Core/securityList:SecurityList")
    opened = oci.core.models.UpdateSecurityListDetails(
        ingress_security_rules=[oci.core.models.IngressSecurityRule(protocol="6", source="0.0.0.0/0")]
    )
    client(cloud, oci.core.VirtualNetworkClient).update_security_list(rules["id"], opened)
    policy = resource(team, "oci:Identity/policy:Policy")
    client(cloud, oci.identity.IdentityClient).delete_policy(policy["id"])

    seen = summary(team.on_stack("refresh", "--yes", "--skip-preview"))
    assert (seen["updated"], seen["deleted"], seen["unchanged"]) == (1, 1, 19)
    mended = summary(team.trainyard("up", "local"))
    assert (mended["created"], mended["updated"], mended["unchanged"]) == (1, 1, 19)
    team.trainyard("preview", "local", "--expect-no-changes")
    now = client(cloud, oci.core.VirtualNetworkClient).get_security_list(rules["id"]).data
    assert [rule.source for rule in now.ingress_security_rules if rule.source == "0.0.0.0/0"] == []


@pytest.mark.torture
def test_existing_resources_are_imported_and_single_ones_changed(team: Team) -> None:
    team.trainyard("up", "local")
    cloud = team.cloud
    details = oci.object_storage.models.CreateBucketDetails(
        name="older-than-the-stack", compartment_id=cloud.compartment, versioning="Enabled"
    )
    client(cloud, oci.object_storage.ObjectStorageClient).create_bucket(cloud.namespace, details)
    team.on_stack(
        "import", "oci:ObjectStorage/bucket:Bucket", "older", f"n/{cloud.namespace}/b/older-than-the-stack",
        "--yes", "--protect=false", "--generate-code=false", "--skip-preview",
    )  # fmt: skip
    buckets = [row for row in team.resources() if row["type"] == "oci:ObjectStorage/bucket:Bucket"]
    imported = next(row for row in buckets if row["urn"].endswith("::older"))
    assert imported["inputs"]["versioning"] == "Enabled"
    assert imported["inputs"]["compartmentId"] == cloud.compartment

    team.configure("logs", {"retentionDays": 60})
    team.configure("network", {"cidr": "10.20.0.0/16", "nat": True})
    targeted = team.trainyard("up", "local", "--target", resource(team, "oci:Logging/log:Log")["urn"])
    assert summary(targeted)["updated"] == 1
    assert "NatGateway" not in targeted
    rest = summary(team.trainyard("up", "local"))
    assert rest["created"] == 1, "the gateway"
    assert rest["deleted"] == 1, "the imported bucket, which no stack file asks for"
    assert "replaced" not in rest

    part = team.trainyard("down", "local", "--target", resource(team, "trainyard:index:Run")["urn"])
    assert summary(part)["deleted"] == 1
    assert re.search(r"\d+ resources of local are still there, because `--target` did not name them", part)
    assert objects(team), "a bucket that is not named keeps what is in it"


def test_down_cancels_runs_and_lists_the_resources_that_stay(team: Team) -> None:
    (team.stacks / "local" / "train.py").write_text(WAITS)
    team.change("base: { until: finished }", "base: { until: started }")
    team.change("bucket: { name: demo-local-training, keep: false }", "bucket: { name: demo-local-training }")
    going = team.trainyard("up", "local")
    assert "run      line/base: IN_PROGRESS" in going
    assert "trainyard runs watch local --local" in going
    alive = [node.pid for node in psutil.Process(team.cloud.pid).children(recursive=True) if _trains(node)]
    assert alive
    bucket = client(team.cloud, oci.object_storage.ObjectStorageClient)
    bucket.put_object(team.cloud.namespace, "demo-local-training", "weights", b"worth keeping")

    before = team.in_cloud()
    asked = at_a_terminal(team, "down", "local", answer="n")
    assert re.search(r"ends +line/base: IN_PROGRESS for", asked.stdout), asked.stdout
    assert "End the runs that are still training? [y/N]" in asked.stdout
    assert "Nothing was removed." in asked.stderr
    assert asked.returncode == 1
    assert team.in_cloud() == before
    assert not any(map(ended, alive))

    unasked = team.attempt("down", "local")
    assert "There is no terminal to ask at: End the runs that are still training?\nTo answer yes, add --yes." in (
        unasked.stderr
    )
    assert unasked.returncode == 2
    assert team.in_cloud() == before

    # Without its file, as after a rename.
    team.file.unlink()
    kept = team.trainyard("down", "local", "--yes")
    said, _, removed = kept.partition("Destroying")
    assert re.search(r"ends +line/base: IN_PROGRESS for", said), kept
    assert "records  of 1 job run go with their jobs, and what they printed with the log demo-local-runs" in said
    assert "bucket   demo-local-training stays with its" in said
    assert "deleted" in removed
    assert "Kept, as the stack file says: bucket demo-local-training." in kept
    assert "trainyard down local --local --delete-data" in kept
    assert "Still up" not in kept
    assert "protected resources" not in kept, "Pulumi counts providers and components, too"
    assert all(map(ended, alive))
    assert [name for kind, name in team.in_cloud() if kind == "bucket"] == ["demo-local-training"]
    assert bucket.get_object(team.cloud.namespace, "demo-local-training", "weights").data.content == b"worth keeping"

    by_hand = oci.object_storage.models.CreateBucketDetails(name="by-hand", compartment_id=team.cloud.compartment)
    bucket.create_bucket(team.cloud.namespace, by_hand)
    bucket.put_object(team.cloud.namespace, "by-hand", "weights", b"of no stack")
    last = team.trainyard("down", "local", "--delete-data")
    assert "Nothing is left" not in last
    assert "No stack is up any more, and the local cloud is stopped." in last
    assert re.search(r"bucket +by-hand with its 1 object\n", last)
    assert f"trainyard cloud reset --home {team.home / 'cloud'}" in last
    assert team.in_cloud() == [("bucket", "by-hand")]


def at_a_terminal(team: Team, *words: str, answer: str) -> subprocess.CompletedProcess[str]:
    """A local command whose standard input is a terminal, with input that was typed in advance."""
    ours, theirs = os.openpty()
    try:
        os.write(ours, f"{answer}\n".encode())
        return team.attempt(*words, stdin=theirs)
    finally:
        os.close(ours)
        os.close(theirs)


def _trains(process: psutil.Process) -> bool:
    try:
        return "train.py" in process.cmdline()
    except psutil.NoSuchProcess:
        return False


@pytest.mark.torture
def test_a_network_grows_in_place_and_a_moved_one_is_replaced(team: Team) -> None:
    """`up` and the cloud agree, and a preview names the obstacles to a move."""
    team.configure("network", {"cidr": "10.20.0.0/20"})
    team.trainyard("up", "local")
    network = client(team.cloud, oci.core.VirtualNetworkClient)
    vcn = resource(team, "oci:Core/vcn:Vcn")

    team.configure("network", {"cidr": "10.20.0.0/16"})
    assert summary(team.trainyard("up", "local"))["updated"] == 1
    assert network.get_vcn(vcn["id"]).data.cidr_blocks == ["10.20.0.0/16"]

    team.configure("network", {"cidr": "10.30.0.0/16"})
    refused = team.attempt("preview", "local")
    words = re.sub(r"\s+", " ", refused.stdout + refused.stderr)
    assert refused.returncode != 0
    assert "subnets lie outside of 10.30.0.0/16" in words
    assert re.search(r"demo-local-nodes 10\.20\.0\.0/\d+ \(ocid1\.subnet", words)
    assert f"trainyard up local --local --replace '{vcn['urn']}' --stacks {team.stacks}`" in words
    assert f"pulumi up --stack local --replace '{vcn['urn']}'`" in words
    assert network.get_vcn(vcn["id"]).data.cidr_blocks == ["10.20.0.0/16"]

    assert summary(team.trainyard("up", "local", "--replace", vcn["urn"]))["replaced"]
    moved = resource(team, "oci:Core/vcn:Vcn")["id"]
    assert network.get_vcn(moved).data.cidr_blocks == ["10.30.0.0/16"]
    assert [one.cidr_block[:6] for one in network.list_subnets(team.cloud.compartment).data] == ["10.30."]


@pytest.mark.torture
def test_two_stacks_are_up_at_the_same_time(team: Team) -> None:
    names = ("local", "oci-proof-of-concept")
    with ThreadPoolExecutor() as pool:
        assert all(summary(output)["created"] for output in pool.map(lambda name: team.trainyard("up", name), names))
        for name in names:
            team.trainyard("preview", name, "--expect-no-changes")
        another = CloudUse(team.home, print)
        downs = list(pool.map(lambda name: team.trainyard("down", name), names))
        assert all(summary(output)["deleted"] for output in downs)
        assert sum("Another command uses the local cloud, so it keeps running." in output for output in downs) >= 1
        assert team.in_cloud() == []
    del another
    assert "Nothing is left; the local cloud is stopped." in team.trainyard("down", "local")
    last = json.loads(team.pulumi("stack", "ls", "--json", "--cwd", str(team.home / "pulumi" / "stacks")).stdout)
    assert last == []


def test_a_stack_that_another_stack_uses_is_not_removed(tmp_path: Path) -> None:
    team = Team(tmp_path, "oci-team", "oci-platform")
    try:
        early = team.attempt("preview", "oci-team")
        assert early.returncode != 0
        assert re.search(
            r"from oci-platform, which is not up\.\nBring it up first: \S*trainyard up oci-platform", early.stderr
        )
    finally:
        team.end()
