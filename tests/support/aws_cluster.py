# SPDX-License-Identifier: Apache-2.0
"""A simulated cluster of AWS DL1: a bucket, instances, and threads that do what the program on each machine would do.

They follow docs/decisions/0021: they write reports, take tickets in order, one after the other, and end what is
cancelled. They train nothing: a start ends when the test says so.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar
from unittest.mock import patch

import botocore.session
from botocore.exceptions import ClientError

from components.platform.values import Properties
from components.s3 import Session
from provider.plugin import Trainyard
from tests.support.aws_machines import REGION, moto
from tests.support.provider_client import EngineSide, engine_side

STACK = "vision-dev"
GROUP = "/trainyard/vision-dev"
_PAUSE = 0.03
_ENDED = ("SUCCEEDED", "FAILED", "CANCELED")


@dataclass
class Cluster:
    """A job with its nodes. Each test has its own job; all tests share one `AwsWorld`."""

    world: AwsWorld
    job: str
    names: tuple[str, ...]
    ends: dict[str, str] = field(default_factory=dict)  # by run: how its nodes end; a run that is not in it goes on
    begins: threading.Event = field(default_factory=threading.Event)  # until it is set, no node takes a ticket
    sick: dict[str, str] = field(default_factory=dict)  # by node: why it has failed
    deaf: set[str] = field(default_factory=set)  # nodes that do not react to anything
    instances: dict[str, str] = field(default_factory=dict)
    over: threading.Event = field(default_factory=threading.Event)

    @property
    def inputs(self) -> Properties:
        return {"bucket": self.world.bucket, "job": self.job, "region": REGION, "stack": STACK, "logGroup": GROUP}

    @property
    def tags(self) -> Mapping[str, str]:
        return {"stack": STACK, "job": self.job}

    def run(self, name: str = "base", **more: Any) -> Properties:
        launch = json.dumps({"job": self.job, "run": name, "folder": f"s3://{self.world.bucket}/{self.job}/{name}/1"})
        nodes = [
            {"name": node, "role": "main", "rank": rank, "environment": {"TRAINYARD_LAUNCH": launch}}
            for rank, node in enumerate(self.names)
        ]
        return {
            "platform": "aws-dl1",
            "cluster": self.inputs,
            "displayName": f"{self.job}-{name}",
            "tags": {"stack": STACK, "job": self.job, "run": name},
            "nodes": nodes,
            "until": "finished",
            "timeouts": {"access": 0.01, "started": 5, "finished": 5},
            **more,
        }

    def launch(self, *names: str) -> None:
        """Replaces the nodes' instances by new ones."""
        for name in names or self.names:
            tags = [{"Key": key, "Value": value} for key, value in (*self.tags.items(), ("node", name))]
            made = self.world["ec2"].run_instances(
                MinCount=1, MaxCount=1, ImageId="ami-12c6146b",
                TagSpecifications=[{"ResourceType": "instance", "Tags": tags}],
            )  # fmt: skip
            self.instances[name] = made["Instances"][0]["InstanceId"]

    def state(self, name: str) -> str:
        described = self.world["ec2"].describe_instances(InstanceIds=[self.instances[name]])
        return str(described["Reservations"][0]["Instances"][0]["State"]["Name"])

    def tickets(self) -> list[dict[str, Any]]:
        return [self.world.read(key) or {} for key in self.world.keys(f"{self._folder}/queue/")]

    @property
    def _folder(self) -> str:
        return f".trainyard/clusters/{self.job}"

    def live(self) -> None:
        while not self.over.wait(_PAUSE):
            for name in self.names:
                try:
                    if name not in self.deaf and self.state(name) == "running":
                        self._step(name)
                except ClientError:
                    continue

    def _step(self, name: str) -> None:
        me = f"{self._folder}/nodes/{name}.json"
        reason = self.sick.get(name, "")
        self.world.write(
            me, {"instance": self.instances[name], "state": "failed" if reason else "ready", "reason": reason}
        )
        busy = False
        for key in self.world.keys(f"{self._folder}/queue/"):
            ticket = self.world.read(key) or {}
            starts = f"{self._folder}/starts/{key[-13:-5]}"
            mine = self.world.read(f"{starts}/{name}.json") or {}
            if mine.get("state") in _ENDED:
                continue
            cancelled = bool(self.world.keys(f"{starts}/cancel"))
            if cancelled or not busy:
                self._take(ticket, starts, name, mine, cancelled)
            busy = busy or not cancelled

    def _take(
        self, ticket: Mapping[str, Any], starts: str, name: str, mine: Mapping[str, Any], cancelled: bool
    ) -> None:
        now = datetime.now(UTC).isoformat()
        state = "CANCELED" if cancelled else self.ends.get(ticket["run"], "IN_PROGRESS")
        if not mine and state != "CANCELED" and not self.begins.is_set():
            return
        made: dict[str, Any] = {"state": state, "instance": self.instances[name]}
        if mine or not cancelled:
            made["startedAt"] = mine.get("startedAt") or now
        if state in _ENDED:
            made["finishedAt"] = now
        if state == "FAILED":
            made |= {"code": 1, "details": "exit code 1"}
        self.world.write(f"{starts}/{name}.json", made)


AnyCluster = TypeVar("AnyCluster", bound=Cluster)


@dataclass
class AwsWorld:
    """One simulated AWS, with a bucket and an engine that has our provider."""

    environment: Mapping[str, str]
    engine: EngineSide
    bucket: str = "vision-dev-training"
    more: list[str] = field(default_factory=list)  # other buckets of tests
    _made: dict[str, Any] = field(default_factory=dict)

    def __getitem__(self, service: str) -> Any:
        if service not in self._made:
            self._made[service] = botocore.session.Session().create_client(service, region_name=REGION)
        return self._made[service]

    @property
    def session(self) -> Session:
        return Session.of({}, self.environment)

    def keys(self, prefix: str) -> list[str]:
        listed = self["s3"].list_objects_v2(Bucket=self.bucket, Prefix=prefix)
        return [row["Key"] for row in listed.get("Contents", ())]

    def read(self, key: str) -> dict[str, Any] | None:
        try:
            content: dict[str, Any] = json.loads(self["s3"].get_object(Bucket=self.bucket, Key=key)["Body"].read())
        except ClientError:
            return None
        return content

    def write(self, key: str, content: Mapping[str, Any]) -> None:
        if self.read(key) != content:
            self["s3"].put_object(Bucket=self.bucket, Key=key, Body=json.dumps(content))

    def clear(self) -> None:
        """Removes everything from it, including what tests left there."""
        self["logs"].delete_log_group(logGroupName=GROUP)
        for bucket in (row["Name"] for row in self["s3"].list_buckets()["Buckets"]):
            if bucket in (self.bucket, *self.more):
                for row in self["s3"].list_objects_v2(Bucket=bucket).get("Contents", ()):
                    self["s3"].delete_object(Bucket=bucket, Key=row["Key"])
                self["s3"].delete_bucket(Bucket=bucket)

    @contextmanager
    def cluster(self, job: str, *names: str) -> Iterator[Cluster]:
        """A cluster whose nodes work until the context ends."""
        with self.living(Cluster(self, job, names or ("main-0", "worker-0"))) as made:
            yield made

    @contextmanager
    def living(self, made: AnyCluster) -> Iterator[AnyCluster]:
        """Makes the cluster's instances, and lets its nodes work until the context ends."""
        made.begins.set()
        made.launch()
        living = threading.Thread(target=made.live, name=f"nodes of {made.job}")
        living.start()
        try:
            yield made
        finally:
            made.over.set()
            living.join()


@contextmanager
def aws_engine() -> Iterator[EngineSide]:
    with engine_side(Trainyard()) as engine:
        engine.configure(region=REGION)
        yield engine


@contextmanager
def aws_world(folder: Path) -> Iterator[AwsWorld]:
    """moto with a bucket and a log group. The provider finds it by AWS's own variables."""
    with ExitStack() as stack:
        endpoint = stack.enter_context(moto())
        (folder / "config").write_text(f"[default]\nregion = {REGION}\n")
        (folder / "credentials").write_text("[default]\naws_access_key_id = test\naws_secret_access_key = test\n")
        variables = {
            "AWS_ENDPOINT_URL": endpoint,
            "AWS_CONFIG_FILE": str(folder / "config"),
            "AWS_SHARED_CREDENTIALS_FILE": str(folder / "credentials"),
            "AWS_PROFILE": "default",
        }
        stack.enter_context(patch.dict(os.environ, variables))
        world = AwsWorld(variables, stack.enter_context(aws_engine()))
        world["s3"].create_bucket(Bucket=world.bucket)
        world["logs"].create_log_group(logGroupName=GROUP)
        # All moto servers of a process share one state, and the next world uses the same names.
        stack.callback(world.clear)
        yield world
