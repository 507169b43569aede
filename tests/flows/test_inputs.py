# SPDX-License-Identifier: Apache-2.0
"""The input data of a job is a folder on its nodes, and the stack's own statements allow reading it."""

from collections.abc import Iterator
from pathlib import Path

import oci
import pytest
import yaml

from tests.support.local_team import Team

pytestmark = pytest.mark.engine

LOOKS = """\
import os
from pathlib import Path
Path(os.environ["TRAINYARD_OUTPUT"], "sum.txt").write_text("3")
for mount in ("measured", "own", "missing"):
    print(mount, sorted(path.name for path in Path("/trainyard-data", mount).iterdir()))
    for path in sorted(Path("/trainyard-data", mount).rglob("*")):
        print(path, path.read_text() if path.is_file() else "")
"""


@pytest.fixture
def team(tmp_path: Path) -> Iterator[Team]:
    one = Team(tmp_path)
    yield one
    one.end()


@pytest.mark.torture
def test_a_job_reads_its_stacks_bucket_and_another(team: Team) -> None:
    cloud = team.cloud
    storage = oci.object_storage.ObjectStorageClient(
        oci.config.from_file(str(cloud.config_file), "deployer"), service_endpoint=cloud.endpoint
    )
    details = oci.object_storage.models.CreateBucketDetails(name="measurements", compartment_id=cloud.compartment)
    storage.create_bucket(cloud.namespace, details)
    storage.put_object(cloud.namespace, "measurements", "2026/november", b"dry")
    (team.stacks / "local" / "train.py").write_text(LOOKS)
    jobs = yaml.safe_load(team.file.read_text())["config"]["trainyard:jobs"]
    jobs["line"]["inputs"] = [
        {"mount": "/trainyard-data/measured", "bucket": "measurements", "prefix": "2026/"},
        {"mount": "/trainyard-data/own", "prefix": "points/"},
        {"mount": "/trainyard-data/missing", "bucket": "of-others"},
    ]
    jobs["line"]["command"] = "train.py"
    team.configure("jobs", jobs)
    said = team.trainyard("up", "local")
    assert "/trainyard-data/measured/november dry" in said
    assert "missing []" in said
    assert "bucket of-others: an empty one stands in" in said

    (team.home / "first").write_text("1 2")
    told = team.trainyard("data", "put", "local", str(team.home / "first"), "points")
    assert "prefix: points/" in told, "what the job's inputs say"
    jobs["line"]["runs"]["base"]["attempt"] = 2
    team.configure("jobs", jobs)
    assert "/trainyard-data/own/first 1 2" in team.trainyard("up", "local")
    team.trainyard("runs", "outputs", "local", "line/base", "--to", str(team.home / "results"))
    assert (team.home / "results" / "line" / "base" / "sum.txt").read_text() == "3"
    team.trainyard("down", "local")
    assert team.in_cloud() == [("bucket", "measurements")]
