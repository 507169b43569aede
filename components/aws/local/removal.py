# SPDX-License-Identifier: Apache-2.0
"""Describes what is lost when a stack on AWS is removed: live runs, machines, objects and images."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

from components.aws.client.aws_session import (
    DEPLOYER,
    ask_aws,
    ask_aws_if_exists,
    list_pages,
    local_aws_regions,
    local_aws_session,
    region_of,
)
from components.aws.client.buckets import empty_bucket
from components.aws.client.runs import AwsRuns
from components.aws.client.ticket_queue import Queue
from components.aws.client.tickets import Cluster, RunId, Ticket
from components.plan.model import RunPlan
from components.platform.calls import LocalCloud, ProviderError, Tell, call_of
from components.platform.client import wait_for_end
from components.platform.local import (
    LiveRun,
    LocalPlatform,
    Outputs,
    Removal,
    Row,
    State,
    attempt_folder,
    data_line,
    has_address,
    ids_of_own_runs,
    named_results,
)
from components.platform.runs import NodeRun
from components.platform.status import duration_text
from components.s3 import Session
from localcloud.aws.account import aws_folder
from localcloud.aws.kept import exists as is_aws_kept
from schemas.name_suggestions import count_noun

BUCKET = "aws:s3/bucket:Bucket"
REPOSITORY = "aws:ecr/repository:Repository"
LOG_GROUP = "aws:cloudwatch/logGroup:LogGroup"
ROLE = "aws:iam/role:Role"
PROFILE = "aws:iam/instanceProfile:InstanceProfile"
INSTANCE = "aws:ec2/instance:Instance"
OBJECT = "aws:s3/bucketObjectv2:BucketObjectv2"
# Each setting of a bucket is a resource. They are not listed one by one.
_SETTINGS = "aws:s3/bucket"
# Types whose usual name differs from the type's name.
_WORDS = {REPOSITORY: "repository", "aws:ec2/vpc:Vpc": "VPC", "aws:ec2/eip:Eip": "Elastic IP"}
_HUMPS = re.compile(r"(?<=[a-z])(?=[A-Z])")
_ID = re.compile(r"[a-z]+-[0-9a-f]{8,17}")
# Types that other stacks refer to by name, and the output with that name.
_NAMED = {LOG_GROUP: "logGroup", ROLE: "nodesRole", PROFILE: "instanceProfile"}
# Names of log groups are unique in a region, the others in the account.
_REGIONAL = frozenset({LOG_GROUP})
_UP = ("pending", "running")
# Counting ends here. Larger numbers are shown as `more than`.
_MOST_COUNTED = 1000
_MINUTES_TO_END = 20.0


class AwsRemoval(LocalPlatform):
    """What a stack on the local AWS holds, and how it is emptied before its removal."""

    def describe_resource(self, row: Row) -> str:
        """The resource in words, such as `security group demo-prod-nodes`."""
        if row["type"] == OBJECT:
            return f"object {(row.get('inputs') or {}).get('key', '')} in the bucket {name_in_aws(row)}"
        if row["type"].startswith(_SETTINGS) and row["type"] != BUCKET:
            return f"settings of the bucket {name_in_aws(row)}"
        kind = _WORDS.get(row["type"]) or _HUMPS.sub(" ", row["type"].rpartition(":")[2]).lower()
        return f"{kind} {name_in_aws(row)}"

    def is_named(self, row: Row, own: State, by: State, inputs: str) -> bool:
        if _ID.fullmatch(row["id"]) and row["id"] in inputs:
            return True
        outputs = by.outputs() if by.provider("aws") and any(by.made()) else {}
        if output := _NAMED.get(row["type"]):
            place = ("account", "region") if row["type"] in _REGIONAL else ("account",)
            here = own.outputs()
            return outputs.get(output) == name_in_aws(row) and all(outputs.get(key) == here.get(key) for key in place)
        address = f"s3://{name_in_aws(row)}" if row["type"] == BUCKET else ""
        if row["type"] == REPOSITORY:
            address = str((row.get("outputs") or {}).get("repositoryUrl", ""))
        return bool(address) and (
            has_address(inputs, address) or address in (outputs.get("bucketUri"), outputs.get("imagePushAddress"))
        )

    def list_results(
        self, cloud: LocalCloud, outputs: Outputs, run: RunPlan, nodes: Sequence[Mapping[str, Any]], tell: Tell
    ) -> Iterator[str]:
        folder, bucket = attempt_folder(run), str(outputs.get("bucket", ""))
        start = RunId.parse(str(nodes[0]["id"])) if nodes else None
        if not folder or not bucket or start is None:
            return
        client = local_aws_session(cloud, DEPLOYER, local_aws_regions()[0]).client("s3")
        prefix = f"{folder}/s{start.number:08}/output/"

        def listed() -> list[tuple[str, int]]:
            page = ask_aws(tell, "List its output", partial(client.list_objects_v2, Bucket=bucket, Prefix=prefix))
            return [(item["Key"], item["Size"]) for item in page.get("Contents", ())]

        def read(name: str) -> bytes:
            get = partial(client.get_object, Bucket=bucket, Key=name)
            return bytes(ask_aws(tell, "Read its result", get)["Body"].read())

        yield from named_results(listed, read)

    def machines(self, cloud: LocalCloud, rows: Sequence[Row], tell: Tell) -> list[str]:
        """Each machine with its state, and the time since its launch."""
        ids = [row["id"] for row in rows if row["type"] == INSTANCE]
        if not ids:
            return []
        client = local_aws_session(cloud, DEPLOYER, region_of(rows)).client("ec2")
        # A filter: a list by ids fails if one of them does not exist any more.
        filters = [{"Name": "instance-id", "Values": ids}]
        answer = ask_aws(tell, "List the machines", partial(client.describe_instances, Filters=filters))
        lines = []
        for machine in (one for reservation in answer["Reservations"] for one in reservation["Instances"]):
            tags = {tag["Key"]: tag["Value"] for tag in machine.get("Tags", ())}
            name = "/".join(filter(None, (tags.get("job"), tags.get("node")))) or machine["InstanceId"]
            state, since = machine["State"]["Name"], machine["LaunchTime"]
            if state in _UP:
                up = duration_text((datetime.now(UTC) - since).total_seconds())
                lines.append(f"{name}: {state} since {since:%Y-%m-%d %H:%M:%S} UTC ({up}), {machine['InstanceId']}")
            elif state != "terminated":
                lines.append(f"{name}: {state}, {machine['InstanceId']}")
        return sorted(lines)

    def describe_removal(self, cloud: LocalCloud, rows: Sequence[Row], kept: Sequence[Row], tell: Tell) -> Removal:
        session = local_aws_session(cloud, DEPLOYER, region_of(rows))
        live = []
        for ticket, nodes in _living_starts(session, rows, tell):
            title = f"{ticket.tags.get('job', ticket.cluster.job)}/{ticket.tags.get('run') or ticket.text('run')}"
            states = {node.state for node in nodes}
            state = "IN_PROGRESS" if "IN_PROGRESS" in states else sorted(states)[0]
            created = datetime.fromisoformat(ticket.text("createdAt").replace("Z", "+00:00"))
            live.append(LiveRun(title, state, created))
        lines = [f"ends     machine {line}" for line in self.machines(cloud, rows, tell)]
        lines += [*_describe_contents(session, rows, "goes", tell), *_describe_contents(session, kept, "stays", tell)]
        return Removal(tuple(live), tuple(lines))

    def end_other_runs(self, cloud: LocalCloud, rows: Sequence[Row], tell: Tell) -> None:
        """Ends runs that are in no Pulumi state (tries, and tickets of people) on the machines that are removed. With a
        bucket all runs end, because a run writes into it while it ends."""
        session = local_aws_session(cloud, DEPLOYER, region_of(rows))
        own = ids_of_own_runs(rows, BUCKET)
        others = [one for _, nodes in _living_starts(session, rows, tell) for one in nodes if one.id not in own]
        if others:
            tell("Ending runs, because their machines or buckets are removed.")
            platform, call = AwsRuns(session), call_of("down", tell)
            platform.cancel(call, others)
            wait_for_end(call, platform, others, _MINUTES_TO_END)

    def empty_buckets(self, cloud: LocalCloud, rows: Sequence[Row], tell: Tell) -> int:
        names = [name_in_aws(row) for row in rows if row["type"] == BUCKET]
        if not names:
            return 0
        client = local_aws_session(cloud, DEPLOYER, region_of(rows)).client("s3")
        return sum(empty_bucket(client, tell, name) for name in names)

    def list_data(self, cloud: LocalCloud, tell: Tell) -> list[str]:
        """Lists every bucket of the account, and every repository of its regions."""
        # If this cloud's AWS was never used, it has no data, and the first call would take seconds.
        if not is_aws_kept(aws_folder(cloud.home)):
            return []
        sessions = [local_aws_session(cloud, DEPLOYER, region) for region in local_aws_regions()]
        lines = []
        for bucket in ask_aws(tell, "List the buckets", sessions[0].client("s3").list_buckets)["Buckets"]:
            # One bucket that cannot be read must not keep the others, and the cloud, from being left.
            try:
                inside = _count_objects(sessions[0], bucket["Name"], tell)
            except ProviderError as error:
                inside = f"content, which cannot be read ({error})"
            lines.append(data_line("bucket", bucket["Name"], inside))
        for session in sessions:
            for page in list_pages(tell, "List the repositories", session.client("ecr"), "describe_repositories"):
                names = [row["repositoryName"] for row in page["repositories"]]
                lines += [data_line("images", name, _count_images(session, name, tell)) for name in names]
        return lines


def name_in_aws(row: Row) -> str:
    """The resource's name in AWS, or else its tag `Name`, or else its key."""
    values = row.get("outputs") or row.get("inputs") or {}
    tags = values.get("tags") or {}
    return str(values.get("bucket") or values.get("name") or tags.get("Name") or row["urn"].rpartition("::")[2])


def has_objects(cloud: LocalCloud, bucket: str, tell: Tell) -> bool:
    return bool(_count_objects(local_aws_session(cloud, DEPLOYER, local_aws_regions()[0]), bucket, tell))


def _living_starts(session: Session, rows: Sequence[Row], tell: Tell) -> Iterator[tuple[Ticket, list[NodeRun]]]:
    """The starts that have not ended on clusters whose machines are removed, with their nodes."""
    platform, call = AwsRuns(session), call_of("down", tell)
    jobs = {((row.get("outputs") or {}).get("tags") or {}).get("job") for row in rows if row["type"] == INSTANCE}
    declared = [(row.get("inputs") or {}).get("cluster") for row in rows]
    clusters = [one for one in declared if isinstance(one, dict) and one.get("job") in jobs]
    for bucket, job in dict.fromkeys((str(one["bucket"]), str(one["job"])) for one in clusters):
        queue = Queue(session, call, Cluster(bucket, job))
        for ticket in reversed(ask_aws_if_exists(tell, "List the runs", queue.tickets) or []):
            nodes = platform.observe(call, ticket.unseen_nodes)
            if alive := [node for node in nodes if not node.over]:
                yield ticket, alive


def _describe_contents(session: Session, rows: Sequence[Row], fate: str, tell: Tell) -> Iterator[str]:
    for row in rows:
        if row["type"] == BUCKET and (inside := _count_objects(session, name_in_aws(row), tell)):
            yield f"bucket   {name_in_aws(row)} {fate} with its {inside}"
        if row["type"] == REPOSITORY and (inside := _count_images(session, name_in_aws(row), tell)):
            yield f"images   {name_in_aws(row)} {fate} with its {inside}"


def _count_objects(session: Session, bucket: str, tell: Tell) -> str:
    look = partial(session.client("s3").list_object_versions, Bucket=bucket, MaxKeys=_MOST_COUNTED)
    page: Any = ask_aws_if_exists(tell, f"Look into the bucket {bucket}", look) or {}
    names = {row["Key"] for row in (*page.get("Versions", ()), *page.get("DeleteMarkers", ()))}
    more = "more than " if page.get("IsTruncated") else ""
    return f"{more}{count_noun(len(names), 'object')}" if names else ""


def _count_images(session: Session, repository: str, tell: Tell) -> str:
    look = partial(session.client("ecr").list_images, repositoryName=repository)
    page: Any = ask_aws_if_exists(tell, f"Look into the repository {repository}", look) or {}
    return count_noun(len(page["imageIds"]), "image") if page.get("imageIds") else ""
