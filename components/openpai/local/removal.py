# SPDX-License-Identifier: Apache-2.0
"""What goes with a stack of OpenPAI: its live runs. Storages belong to the cluster, and stay."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from components.openpai.client.jobs import PLATFORM, Job, moment_of
from components.openpai.client.runs import OpenPaiRunPlatform
from components.openpai.local.sessions import DEPLOYER, runs_of
from components.platform.calls import Tell, call_of
from components.platform.local_cloud import LocalCloud
from components.platform.removal import LiveRun, Removal
from components.platform.runs import NodeRun
from components.platform.states import Row
from components.platform.waiting import wait_for_end

_MINUTES_TO_END = 20.0


def describe_removal(cloud: LocalCloud, rows: Sequence[Row], tell: Tell) -> Removal:
    """`rows` are removed."""
    platform, call = runs_of(cloud), call_of("down", tell)
    live = []
    for job in _living(platform, rows, tell):
        detail = platform.job(call, job.user, job.name) or {}
        status = detail.get("jobStatus") or {}
        since = moment_of(status.get("submissionTime") or status.get("createdTime"))
        began = datetime.fromisoformat(since) if since else datetime.now(UTC)
        live.append(LiveRun(job.title, str(status.get("state") or "RUNNING"), began))
    return Removal(tuple(live), ())


def end_other_runs(cloud: LocalCloud, rows: Sequence[Row], tell: Tell) -> None:
    """Tries of the jobs that go. Runs of the stack itself end with their own removal."""
    platform, call = runs_of(cloud), call_of("down", tell)
    own = {node["id"] for row in rows for node in (row.get("outputs") or {}).get("nodeRuns") or ()}
    living = _living(platform, rows, tell)
    others = [NodeRun(str(node["name"]), job.run_id(node), "") for job in living for node in job.nodes]
    others = [node for node in others if node.id not in own]
    if others:
        tell("Ending runs beside the stack's own.")
        platform.cancel(call, others)
        wait_for_end(call, platform, others, _MINUTES_TO_END)


def _living(platform: OpenPaiRunPlatform, rows: Sequence[Row], tell: Tell) -> Iterator[Job]:
    """The runs that have not ended, of the jobs whose runs go."""
    tags = [inputs.get("tags") or {} for row in rows if (inputs := row.get("inputs") or {}).get("platform") == PLATFORM]
    going = {(one.get("stack"), one.get("job")) for one in tags}
    if going:
        for job in platform.living(call_of("down", tell), DEPLOYER):
            if (job.tags.get("stack"), job.tags.get("job")) in going:
                yield job
