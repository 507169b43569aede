# SPDX-License-Identifier: Apache-2.0
"""Jobs on the local OpenPAI by its REST API: tasks share storages, reach the cloud, and are retried after a kill of the
cloud."""

from __future__ import annotations

import json
from pathlib import Path

from localcloud import control
from localcloud.control import Cloud
from tests.support.cloud_fixture import kill
from tests.support.openpai_world import OpenPaiWorld, job
from tests.support.waiting import eventually

# A file on the storage counts the attempts. The first one waits until it is killed.
_GOES_ON = """
echo "$FC_TASK_ATTEMPT_ID of $FC_FRAMEWORK_ATTEMPT_ID as <% $secrets.word %>" >> /mnt/all/attempts
[ $(wc -l < /mnt/all/attempts) -gt 1 ] || sleep 600
"""
_ASKS = """
import os, urllib.request
with urllib.request.urlopen(os.environ["CLOUD"] + "/rest-server/api/v2/info") as answer:
    print("the cluster answers", answer.status)
"""


def _storage(cloud: Cloud) -> tuple[str, Path]:
    """The storage that every local cluster has."""
    (folder,) = (cloud.home / "storages").iterdir()
    return folder.name, folder


def test_a_killed_cloud_loses_no_job_and_leaves_no_secret(cloud: Cloud) -> None:
    world, (name, folder) = OpenPaiWorld(cloud), _storage(cloud)
    storages = {"storages": [{"name": name, "mountPath": "/mnt/all"}]}
    goes_on = world.submitted(job("goes-on", _GOES_ON, extras=storages, secrets={"word": "quiet"}))
    asks = f"export CLOUD={cloud.endpoint}\npython - <<'END'{_ASKS}END"
    assert world.ended(world.submitted(job("asks", asks)))["jobStatus"]["state"] == "SUCCEEDED"
    eventually(lambda: (folder / "attempts").exists(), bool)
    assert world.reaches(goes_on, "RUNNING")
    kill(cloud)
    world = OpenPaiWorld(control.start_cloud(cloud.home))
    ended = world.ended(goes_on)["jobStatus"]
    assert (ended["state"], ended["retries"], ended["retryDetails"]["user"]) == ("SUCCEEDED", 1, 0), json.dumps(ended)
    assert (folder / "attempts").read_text().splitlines() == ["0 of 0 as quiet", "0 of 1 as quiet"]
    left = [path for path in (cloud.home / "tasks").rglob("*") if path.is_file()]
    assert left == [], "scripts have secrets in them"
