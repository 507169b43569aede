# SPDX-License-Identifier: Apache-2.0
"""Several stacks on one local cloud: one file on two platforms, what another stack left, and a deleted cloud."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from components.oci.client.session import Session
from tests.support.local_team import Team, summary

pytestmark = pytest.mark.engine

_OWNER = (
    "  trainyard:team: vision\n  trainyard:environment: dev\n  trainyard:access: { users: { group: scientists } }\n"
)
_TENANCY = (
    "  trainyard:tenancy: ocid1.tenancy.oc1..aaaaaaaa5ht5rzh6lhj3ybgbqwbxgmdkob7kyfkwpemy6rgxtk3wvnslxbux\n"
    "  trainyard:compartment: ocid1.compartment.oc1..aaaaaaaaqa3fdyvnsps4m4cxbrubespqea6ex72r5ddlzdt7f3dgpjyxynbn\n"
)
# Both files have the same team and environment, so all of their resources have the same names.
FILES = {
    "one": f"config:\n  oci:region: us-ashburn-1\n{_OWNER}{_TENANCY}",
    "two": "config:\n  aws:region: us-east-1\n  trainyard:platform: aws-dl1\n"
    f'{_OWNER}  trainyard:account: "123456789012"\n  trainyard:network: {{ zone: us-east-1a }}\n',
}


@pytest.fixture
def team(tmp_path: Path) -> Iterator[Team]:
    one = Team(tmp_path)
    for name, text in FILES.items():
        (one.stacks / f"Pulumi.{name}.yaml").write_text(text)
    try:
        yield one
    finally:
        one.end()


def test_stacks_that_differ_only_in_platform_are_removed_independently(team: Team) -> None:
    for name in FILES:
        assert summary(team.trainyard("up", name))["created"]
    gone = team.trainyard("down", "one", "--delete-data", "--yes")
    assert "Still up: two." in gone
    assert not [name for kind, name in team.in_cloud() if kind == "bucket"]
    team.trainyard("preview", "two", "--expect-no-changes")

    # The cloud is deleted with everything in it. That blocks no command of the other stacks.
    team.trainyard("up", "one")
    reset = team.run("cloud", "reset", "--yes", "--home", str(team.home / "cloud"))
    assert reset.returncode == 0, reset.stderr
    down = team.trainyard("down", "one", "--delete-data", "--yes")
    assert "was removed, and their resources with it: one, two. `up` makes them again." in down
    assert "Nothing is left; the local cloud is stopped." in down


@pytest.mark.torture
def test_a_kept_bucket_is_imported_by_the_command_in_the_error(team: Team) -> None:
    """As in docs/leaving.md: once with `trainyard import`, once with plain Pulumi, which warns about the code."""
    team.file = team.stacks / "Pulumi.one.yaml"
    team.trainyard("up", "one")
    (bucket,) = [row for row in team.resources() if row["type"] == "oci:ObjectStorage/bucket:Bucket"]
    storage = Session.of({}, team.env()).client("object_storage")
    storage.put_object(bucket["outputs"]["namespace"], bucket["outputs"]["name"], "weights", b"worth keeping")
    copy = team.home / "pulumi" / "stacks" / "Pulumi.one.yaml"
    for local in (True, False):
        team.pulumi("state", "delete", bucket["urn"], "--stack", "one", "--yes", "--force")
        refused = team.attempt("up", "one")
        said = re.sub(r"\s+", " ", refused.stdout)
        assert "409 BucketAlreadyExists" in said
        (words,) = set(re.findall(r"`(trainyard import [^`]*)`" if local else r"`(pulumi import [^`]*)`", said))
        _, command, *rest = shlex.split(words)
        done = team.run(command, *rest) if local else team.pulumi(command, *rest, "--yes", "--config-file", str(copy))
        assert done.returncode == 0, done.stdout + done.stderr
        assert "not implemented" not in done.stderr
        assert local or "# Nothing to copy: a program of trainyard declares" in done.stdout
        team.trainyard("preview", "one", "--expect-no-changes")
    assert summary(team.trainyard("up", "one")).keys() == {"unchanged"}
