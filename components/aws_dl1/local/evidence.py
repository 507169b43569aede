# SPDX-License-Identifier: Apache-2.0
"""What a rehearsal left, read from AWS's API: objects, last lines of logs, and what rules name by ids."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from components.aws_dl1.client.runs import AwsRunPlatform
from components.aws_dl1.client.tickets import RunId
from components.aws_dl1.local.calls import ask
from components.aws_dl1.local.sessions import DEPLOYER, session_of
from components.platform.calls import Tell, call_of
from components.platform.errors import ProviderError
from components.platform.local_cloud import LocalCloud
from components.platform.rehearsal import Artifact
from components.platform.rehearsed_runs import People, StartedRun
from components.platform.runs import NodeRun
from components.platform.status import RunStatus
from localcloud import admin

_LAST_LINES = 12
_OUTPUT = "output/"


def hosts(outputs: Mapping[str, Any], job: str, nodes: Iterable[NodeRun]) -> dict[str, str]:
    """The instance of each node: it stays, and carries one run after the other."""
    instances = outputs["jobs"][job]["instances"]
    return {node.id: str(instances[node.name]) for node in nodes}


def peers(cloud: LocalCloud, outputs: Mapping[str, Any]) -> dict[str, str]:
    """Groups and prefix lists by their names."""
    ec2 = session_of(cloud, DEPLOYER, str(outputs["region"])).client("ec2")
    groups = ec2.describe_security_groups()["SecurityGroups"]
    lists = ec2.describe_managed_prefix_lists()["PrefixLists"]
    return {row["GroupId"]: row["GroupName"] for row in groups} | {
        row["PrefixListId"]: row["PrefixListName"] for row in lists
    }


def caller(who: People) -> str:
    """The ARN of the people."""
    return str(who.session.client("sts").get_caller_identity()["Arn"])


def judged_calls(cloud: LocalCloud) -> list[Mapping[str, Any]]:
    """Those of people and nodes. The deployer is an administrator, and no policy of the stack decides about it."""
    return [row for row in admin.list_calls(cloud, of="aws") if row["principal"]["name"] != DEPLOYER]


def artifacts(who: People, outputs: Mapping[str, Any], started: StartedRun) -> Iterator[Artifact]:
    """What lies in the run's output folder in the bucket, as its people see it."""
    folder = str(started.run.nodes[0].launch.get("folder") or "").partition("/")[2]
    run = RunId.parse(started.nodes[0].id) if started.nodes else None
    if not folder or run is None:
        return
    prefix = f"{folder}/s{run.number:08}/{_OUTPUT}"
    list_objects = partial(who.session.client("s3").list_objects_v2, Bucket=str(outputs["bucket"]), Prefix=prefix)
    try:
        listed = ask(lambda line: None, "List its output", list_objects)
    except ProviderError:
        return
    for one in listed.get("Contents", ()):
        yield Artifact(one["Key"].removeprefix(prefix), int(one["Size"]))


def last_lines(who: People, seen: RunStatus, tell: Tell) -> Iterator[str]:
    """As the run's people read them; those of ranks that succeeded have nothing to tell."""
    platform, call = AwsRunPlatform(who.session), call_of("rehearse", tell)
    for node in seen.nodes:
        if node.run.state == "SUCCEEDED":
            continue
        if node.log is None:
            lines = ["(the stack keeps no logs; with --keep, what it printed is in the cloud's folder)"]
        else:
            try:
                lines = platform.last_lines(call, node.run, _LAST_LINES)
            except ProviderError as refused:
                lines = [refused.cause]
        yield from (f"[{node.rank} {node.run.name}] {line}" for line in lines)
