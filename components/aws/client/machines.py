# SPDX-License-Identifier: Apache-2.0
"""The instances of a cluster: finds them by their tags, starts them again, waits for them, and wakes them."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from components.aws.client.ticket_queue import NodeReport, Queue
from components.platform.calls import Call, ProviderError
from components.s3 import CAPACITY_CODES, call_aws, code_of, list_aws_pages
from launcher.escaping import terminal_line

WAKE = "/opt/trainyard/bin/trainyard-node wake"
_DOCUMENT = "AWS-RunShellScript"
# States of an instance that never starts again, and states in which it does not run.
_GONE = frozenset({"terminated", "shutting-down"})
DOWN = frozenset({"stopped", "stopping", *_GONE})
_READY = frozenset({"ready", "busy"})
# EC2 may not list a new instance yet.
_SECONDS_UNTIL_LISTED = 60.0
# The agent of a booting machine registers within this time.
_SECONDS_UNTIL_ONLINE = 90.0
# A machine reports within a few minutes. If not, it usually cannot write to the bucket. While access
# comes into force it tries for five minutes, and a run does not wait much longer than that.
_SECONDS_UNTIL_HEARD = 600.0
_SILENT_REMEDY = (
    "Its console says why: `aws ec2 get-console-output --latest --output text --region {region} --instance-id {id}`. "
    "The usual causes: its AMI has no Python 3.7 or newer; the role of the nodes may not use the bucket; their subnet "
    "has no way to S3; the machine was made for another bucket. Remove the cause, then replace the machine: "
    "`pulumi up --replace` with its URN (or `trainyard up STACK --local --replace` with it)."
)
_NO_ROOM = (
    "AWS gave the place of the stopped machines to others, and has none free in their zone now. Try again later. "
    "Another `network.zone` makes the machines anew there; a reservation keeps their places."
)
_FIRST_PAUSE, _LONGEST_PAUSE, _GROWTH = 0.3, 10.0, 1.4
_SECONDS_BETWEEN_LINES = 60.0
_SPOT = "spot"
_MADE_AGAIN = "`trainyard up --refresh`, or `pulumi up --refresh`, makes it again."


@dataclass(frozen=True, slots=True)
class Instance:
    id: str
    node: str
    state: str
    launched: datetime
    reason: str = ""
    spot: bool = False

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Instance:
        reason = (row.get("StateReason") or {}).get("Message") or row.get("StateTransitionReason") or ""
        return cls(
            row["InstanceId"], _tags_of_instance(row).get("node", ""), row["State"]["Name"], row["LaunchTime"],
            terminal_line(reason), row.get("InstanceLifecycle") == _SPOT,
        )  # fmt: skip

    @property
    def gone(self) -> bool:
        return self.state in _GONE

    @property
    def down(self) -> bool:
        return self.state in DOWN

    @property
    def words(self) -> str:
        """The instance's state in words, with AWS's reason."""
        if self.spot and self.gone and _SPOT in self.reason.lower():
            return f"AWS took the spot instance {self.id} back"
        ended = {"stopping": "is stopping", "shutting-down": "is being terminated"}.get(self.state, f"is {self.state}")
        return f"its instance {self.id} {ended}" + (f" ({self.reason})" if self.reason else "")


def find_instances(queue: Queue, names: Sequence[str] | None) -> dict[str, Instance]:
    """The newest instance of each node. A live instance counts as newer than a terminated one. Without names: every
    node."""
    cluster = queue.cluster
    tags = {"stack": cluster.stack, "job": cluster.job}
    filters = [{"Name": f"tag:{key}", "Values": [value]} for key, value in tags.items() if value]
    client = queue.session.client("ec2", cluster.region)
    listing = list_aws_pages(
        queue.call, "Find the job's instances", client, "describe_instances", queue.access_minutes, Filters=filters
    )
    rows = (row for page in listing for group in page["Reservations"] for row in group["Instances"])
    return newest_instance_of_each_node(
        Instance.of(row) for row in rows if names is None or _tags_of_instance(row).get("node", "") in names
    )


def newest_instance_of_each_node(instances: Iterable[Instance]) -> dict[str, Instance]:
    """The newest instance of each node, by the node's name."""
    chosen: dict[str, Instance] = {}
    for instance in instances:
        other = chosen.get(instance.node)
        if other is None or _instance_order(instance) > _instance_order(other):
            chosen[instance.node] = instance
    return chosen


def _instance_order(instance: Instance) -> tuple[bool, datetime]:
    return not instance.gone, instance.launched


def _tags_of_instance(row: Mapping[str, Any]) -> dict[str, str]:
    return {tag["Key"]: tag["Value"] for tag in row.get("Tags") or ()}


def bring_machines_up(queue: Queue, names: Sequence[str], minutes: float) -> dict[str, Instance]:
    """Starts stopped instances and waits until every machine is ready, for at most `minutes`."""
    return _BringUp(queue, list(names), minutes).wait()


class _BringUp:
    def __init__(self, queue: Queue, names: list[str], minutes: float) -> None:
        self._queue, self._names, self._minutes = queue, names, minutes
        self._call: Call = queue.call
        self._began = time.monotonic()
        self._said, self._said_at = "", 0.0
        self._tell = False
        self._silent_since: dict[str, float] = {}

    def wait(self) -> dict[str, Instance]:
        pause = _FIRST_PAUSE
        while True:
            instances = find_instances(self._queue, self._names)
            waiting = self._look(instances)
            if not waiting:
                if self._tell:
                    self._call.report.info(f"{self._queue.cluster.job}: every node is ready, {self._elapsed:.0f} s")
                return instances
            if self._elapsed > self._minutes * 60:
                raise ProviderError(
                    f"After {self._minutes:g} minutes the nodes of {self._queue.cluster.job} are not ready: "
                    f"{_list_waiting(waiting)}.",
                    "Run the same command again to wait longer. `aws ec2 get-console-output --instance-id …` shows "
                    "what a machine prints while it boots.",
                )
            self._report(_list_waiting(waiting))
            self._call.stop.wait(pause)
            pause = min(pause * _GROWTH, _LONGEST_PAUSE)

    @property
    def _elapsed(self) -> float:
        return time.monotonic() - self._began

    def _look(self, instances: Mapping[str, Instance]) -> dict[str, str]:
        """The reason why each node is not ready. Starts stopped instances."""
        self._refuse_gone(instances)
        stopped = [one for one in instances.values() if one.state == "stopped"]
        if stopped:
            self._start(stopped)
        reports = self._queue.reports([name for name, one in instances.items() if one.state == "running"])
        waiting = {}
        for name in self._names:
            one = instances.get(name)
            report = report_of_this_boot(one, reports.get(name))
            if one is not None and report is not None and report.state == "failed":
                raise ProviderError(
                    f"The node {name} cannot work: {terminal_line(report.text('reason')) or 'it gives no reason'} "
                    f"(instance {one.id}).",
                    "Correct the cause and replace the instance: `pulumi up --replace` with its URN (or `trainyard up "
                    "STACK --local --replace` with it). "
                    "/var/log/cloud-init-output.log on the instance says more.",
                )
            if report is None or report.state not in _READY:
                waiting[name] = _node_phase(one, report)
            self._refuse_silent(one, report)
        return waiting

    def _refuse_silent(self, one: Instance | None, report: NodeReport | None) -> None:
        """A machine that is up this long without a report cannot write one."""
        if one is None:
            return
        if one.state != "running" or report is not None:
            self._silent_since.pop(one.id, None)
            return
        silent = time.monotonic() - self._silent_since.setdefault(one.id, time.monotonic())
        if silent > _SECONDS_UNTIL_HEARD:
            raise ProviderError(
                f"The node {one.node} (instance {one.id}) is running, "
                f"but has not reported for {silent / 60:.0f} minutes.",
                _SILENT_REMEDY.format(region=self._queue.cluster.region or "…", id=one.id),
            )

    def _refuse_gone(self, instances: Mapping[str, Instance]) -> None:
        for name in self._names:
            one = instances.get(name)
            if one is not None and one.gone:
                raise ProviderError(f"The node {name} cannot work: {one.words}.", _MADE_AGAIN)
            if one is None and self._elapsed > _SECONDS_UNTIL_LISTED:
                raise ProviderError(
                    f"The node {name} of {self._queue.cluster.job} has no instance: none bears the tags "
                    f"stack={self._queue.cluster.stack}, job={self._queue.cluster.job}, node={name}.",
                    _MADE_AGAIN,
                )

    def _start(self, stopped: Sequence[Instance]) -> None:
        listed = ", ".join(f"{one.node} ({one.id})" for one in stopped)
        self._call.report.info(f"{self._queue.cluster.job}: starting stopped instances again: {listed}")
        client = self._queue.session.client("ec2", self._queue.cluster.region)
        start = partial(client.start_instances, InstanceIds=[one.id for one in stopped])
        try:
            call_aws(self._call, f"Start the instances of {listed}", start, self._queue.access_minutes)
        except ProviderError as error:
            code = code_of(error.__cause__)
            if code in CAPACITY_CODES:
                raise ProviderError(error.cause, _NO_ROOM) from error.__cause__
            # It is still stopping, or another process started it. The next look shows its state.
            if code != "IncorrectInstanceState":
                raise

    def _report(self, text: str) -> None:
        job = self._queue.cluster.job
        self._call.report.status(f"{job}: waiting for machines, {self._elapsed:.0f} s so far: {text}")
        late = self._elapsed > 2.0 and time.monotonic() - self._said_at > _SECONDS_BETWEEN_LINES
        if late or (self._said and text != self._said):
            self._call.report.info(f"{job}: waiting for machines: {text}")
            self._said_at, self._tell = time.monotonic(), True
        self._said = text


def report_of_this_boot(instance: Instance | None, report: NodeReport | None) -> NodeReport | None:
    """The report, if it is from the current boot of this instance. Only AWS's clocks are compared, never a node's."""
    if instance is None or report is None or report.text("instance") != instance.id:
        return None
    return report if report.written >= instance.launched.replace(microsecond=0) else None


def _node_phase(instance: Instance | None, report: NodeReport | None) -> str:
    if instance is None:
        return "no instance yet"
    if instance.state != "running":
        return instance.state
    return "booting" if report is None else terminal_line(report.state)


def _list_waiting(waiting: Mapping[str, str]) -> str:
    shown = [f"{name} {phase}" for name, phase in list(waiting.items())[:4]]
    return ", ".join(shown) + (" …" if len(waiting) > 4 else "")


def wake_machines(queue: Queue, instances: Sequence[Instance], why: str, patient: bool = True) -> None:
    """Tells machines to read the queue now. They read it once a minute anyway, so a failure is no error."""
    running = [one for one in instances if one.state == "running"]
    if not running:
        return
    client = queue.session.client("ssm", queue.cluster.region)
    command = {"DocumentName": _DOCUMENT, "Comment": terminal_line(why)[:100], "Parameters": {"commands": [WAKE]}}
    send = partial(client.send_command, InstanceIds=[one.id for one in running], **command)
    began, pause = time.monotonic(), _FIRST_PAUSE
    while True:
        try:
            call_aws(queue.call, "Wake the nodes", send)
            return
        except ProviderError as error:
            # The error of Systems Manager for instances whose agent has not registered.
            offline = code_of(error.__cause__) == "InvalidInstanceId"
            if not (patient and offline and time.monotonic() - began < _SECONDS_UNTIL_ONLINE):
                queue.call.report.warning(_wake_warning(queue, running, error, offline))
                return
        queue.call.report.status("waiting until Systems Manager reaches every node")
        queue.call.stop.wait(pause)
        pause = min(pause * _GROWTH, _LONGEST_PAUSE)


def _wake_warning(queue: Queue, running: Sequence[Instance], error: ProviderError, offline: bool) -> str:
    later = "The nodes read their queue once a minute, so they see the change then."
    if not offline:
        return f"{error} {later}"
    client = queue.session.client("ssm", queue.cluster.region)
    nodes = {one.id: f"{one.node} ({one.id})" for one in running}
    filters = [{"Key": "InstanceIds", "Values": list(nodes)}]
    online: set[str] = set()
    with suppress(ProviderError):
        listing = list_aws_pages(
            queue.call, "Ask which nodes are online", client, "describe_instance_information", Filters=filters
        )
        rows = [row for page in listing for row in page.get("InstanceInformationList") or ()]
        online = {row["InstanceId"] for row in rows if row.get("PingStatus") == "Online"}
    who = ", ".join([words for identity, words in nodes.items() if identity not in online] or nodes.values())
    return (
        f"Systems Manager does not reach {who}. {later} Its agent must run on the machine, the role of the nodes must "
        "allow it, and the subnet needs a way to AWS's services: a NAT gateway or endpoints."
    )
