# SPDX-License-Identifier: Apache-2.0
"""Commands of Systems Manager. The hosts run them and report the results."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from localcloud.aws.additions import machine_view
from localcloud.aws.additions.outside import Operations, action_result, apply_filters, attached_outside, utc_now
from localcloud.aws.aws_errors import aws_refusal
from localcloud.aws.machines import MachineCommand
from localcloud.aws.moto_state import moto_backends

_DOCUMENT = "AWS-RunShellScript"
_PLUGIN = "aws:runShellScript"
_INSTANCE_FILTERS = {"InstanceIds": "InstanceId", "PingStatus": "PingStatus", "PlatformTypes": "PlatformType"}
_ENDED = ("Success", "Failed", "Cancelled", "TimedOut")
# Systems Manager keeps this many characters of each output.
_MOST_SHOWN = 24_000
_DEFAULT_SECONDS = 3600.0


class Commands(Operations):
    """Operations of Systems Manager."""

    def send_command(self) -> Any:
        name = self._get_param("DocumentName")
        if name not in (_DOCUMENT, f"arn:aws:ssm:{self.region}::document/{_DOCUMENT}"):
            raise aws_refusal("command document", document=_DOCUMENT, name=ascii(str(name)[:80]))
        parameters = self._get_param("Parameters", {})
        if not parameters.get("commands"):
            raise aws_refusal("command empty")
        instances = command_targets(self.region, self._get_param("InstanceIds", []), self._get_param("Targets", []))
        command = self.ssm_backend.send_command(
            comment=self._get_param("Comment", ""), document_name=_DOCUMENT,
            timeout_seconds=self._get_int_param("TimeoutSeconds"), instance_ids=[one.id for one in instances],
            max_concurrency=self._get_param("MaxConcurrency", "50"), max_errors=self._get_param("MaxErrors", "0"),
            notification_config=None, output_s3_bucket_name=self._get_param("OutputS3BucketName", ""),
            output_s3_key_prefix=self._get_param("OutputS3KeyPrefix", ""), output_s3_region="", parameters=parameters,
            service_role_arn="", targets=[],
        )  # fmt: skip
        command.targets = self._get_param("Targets", [])
        begin_command(command, [one.id for one in instances])
        return action_result({"Command": _command_row(command)})

    def list_commands(self) -> Any:
        rows = self.ssm_backend.list_commands(self._get_param("CommandId"), self._get_param("InstanceId"))
        return action_result({"Commands": [_command_row(row) for row in reversed(rows)]})

    def list_command_invocations(self) -> Any:
        instance, details = self._get_param("InstanceId"), bool(self._get_param("Details"))
        commands = self.ssm_backend.list_commands(self._get_param("CommandId"), None)
        listed = []
        for command in reversed(commands):
            for row in (row for row in command.invocations if instance in (None, row["InstanceId"])):
                plugin = {
                    "Name": _PLUGIN, "Status": row["Status"], "StatusDetails": row["StatusDetails"],
                    "ResponseCode": row["ResponseCode"], "Output": row["StandardOutputContent"][:2500],
                }  # fmt: skip
                listed.append({
                    "CommandId": command.command_id, "InstanceId": row["InstanceId"], "Comment": command.comment,
                    "DocumentName": command.document_name, "RequestedDateTime": command.requested_date_time,
                    "Status": row["Status"], "StatusDetails": row["StatusDetails"],
                    "CommandPlugins": [plugin] if details else [],
                })  # fmt: skip
        return action_result({"CommandInvocations": listed})

    def cancel_command(self) -> Any:
        command = self.ssm_backend.get_command_by_id(self._get_param("CommandId"))
        wanted = self._get_param("InstanceIds") or command.instance_ids
        if unknown := [one for one in wanted if one not in command.instance_ids]:
            raise aws_refusal("command of others", instance=unknown[0])
        for row in command.invocations:
            if row["InstanceId"] in wanted and row["Status"] not in _ENDED:
                begun = row["Status"] != "Pending"
                row["Status"] = row["StatusDetails"] = "Cancelling" if begun else "Cancelled"
                cancel = partial(attached_outside().machines.cancel, command.command_id, row["InstanceId"])
                attached_outside().defer(cancel)
        _update_counts(command)
        return action_result(None)

    def describe_instance_information(self) -> Any:
        rows = []
        for instance in machine_view.living_instances(self.region):
            if getattr(instance, "trainyard_agent_since", None) is None:
                continue
            online = instance.state == "running" and instance.trainyard_agent
            rows.append({
                "InstanceId": instance.id, "PingStatus": "Online" if online else "ConnectionLost",
                "LastPingDateTime": utc_now() if online else instance.trainyard_agent_since, "AgentVersion": "3.3.0.0",
                "IsLatestVersion": True, "PlatformType": "Linux", "PlatformName": "Ubuntu", "PlatformVersion": "22.04",
                "ResourceType": "EC2Instance", "IPAddress": instance.private_ip, "ComputerName":
                instance.private_dns_name, "RegistrationDate": instance.trainyard_agent_since,
            })  # fmt: skip
        given = self._get_param("Filters", []) + self._get_param("InstanceInformationFilterList", [])
        wanted = {one.get("Key") or one.get("key"): one.get("Values") or one.get("valueSet") or [] for one in given}
        return action_result({"InstanceInformationList": apply_filters(rows, wanted, _INSTANCE_FILTERS)})


def command_targets(region: str, ids: list[str], wanted: list[dict[str, Any]]) -> list[Any]:
    """The instances that a command is sent to. Those that it names by id must be running, with their agent online."""
    ready = [one for one in machine_view.living_instances(region) if one.state == "running" and is_online(one)]
    for row in wanted:
        key, values = str(row.get("Key")), row.get("Values", [])
        if key == "InstanceIds":
            ids = [*ids, *values]
        elif not key.startswith("tag:"):
            raise aws_refusal("command target", key=ascii(key[:60]))
    ready_by_id = {one.id: one for one in ready}
    if missing := [one for one in ids if one not in ready_by_id]:
        raise aws_refusal("command instances", instances=missing)
    tagged = [row for row in wanted if str(row.get("Key")).startswith("tag:")]
    if tagged:
        ids = [one.id for one in ready if all(has_tag(one, row) for row in tagged)]
    return [ready_by_id[one] for one in dict.fromkeys(ids)]


def is_online(instance: Any) -> bool:
    return bool(getattr(instance, "trainyard_agent", False))


def has_tag(instance: Any, row: dict[str, Any]) -> bool:
    name = str(row["Key"]).removeprefix("tag:")
    return any(tag["key"] == name and tag["value"] in row.get("Values", []) for tag in instance.get_tags())


def begin_command(command: Any, instances: list[str]) -> None:
    """Creates the invocations of a command, which are pending until the hosts begin them."""
    command.instance_ids = list(dict.fromkeys(instances))
    pending = {
        "Status": "Pending", "StatusDetails": "Pending", "ResponseCode": -1, "ExecutionElapsedTime": "",
        "ExecutionStartDateTime": "", "ExecutionEndDateTime": "", "StandardErrorUrl": "",
    }  # fmt: skip
    command.invocations = [{**command.invocation_response(one, _PLUGIN), **pending} for one in command.instance_ids]
    lines = tuple(str(line) for line in command.parameters["commands"])
    seconds = float((command.parameters.get("executionTimeout") or [_DEFAULT_SECONDS])[0])
    folder = str((command.parameters.get("workingDirectory") or [""])[0])
    for instance in command.instance_ids:
        order = MachineCommand(command.command_id, instance, lines, seconds, folder)
        attached_outside().defer(partial(attached_outside().machines.send, order))
    _update_counts(command)


def mark_began(identifier: str, instance: str) -> None:
    """Applies a report of the hosts that a command began."""
    for command, row in _find_invocations(identifier, instance):
        if row["Status"] == "Pending":
            began = utc_now().isoformat()
            row |= {"Status": "InProgress", "StatusDetails": "InProgress", "ExecutionStartDateTime": began}
        _update_counts(command)


def mark_ended(identifier: str, instance: str, code: int | None, output: str, errors: str) -> None:
    """Applies a report of the hosts that a command ended."""
    for command, row in _find_invocations(identifier, instance):
        _end_invocation(command, row, code, output, errors)


def fail_all() -> None:
    """Marks all commands as failed that ran when the cloud ended."""
    for command, row in _find_invocations():
        _end_invocation(command, row, 1, "", "The local cloud ended while the command ran")


def _find_invocations(identifier: str = "", instance: str = "") -> Iterator[tuple[Any, dict[str, Any]]]:
    """All invocations, or that of one command on one instance, each with its command."""
    for backend in list(moto_backends("ssm").values()):
        for command in backend._commands:
            for row in command.invocations if identifier in ("", command.command_id) else ():
                if instance in ("", row["InstanceId"]):
                    yield command, row


def _end_invocation(command: Any, row: dict[str, Any], code: int | None, output: str, errors: str) -> None:
    if row["Status"] in _ENDED:
        return
    if row["Status"] == "Cancelling":
        status, details = "Cancelled", "Cancelled"
    elif code is None:
        status, details = "TimedOut", "Execution Timed Out"
    else:
        status = details = "Failed" if code else "Success"
    row |= {
        "Status": status, "StatusDetails": details, "ResponseCode": -1 if code is None else code,
        "ExecutionStartDateTime": row["ExecutionStartDateTime"] or utc_now().isoformat(),
        "ExecutionEndDateTime": utc_now().isoformat(), "StandardOutputContent": output[:_MOST_SHOWN],
        "StandardErrorContent": errors[:_MOST_SHOWN],
    }  # fmt: skip
    _update_counts(command)


def _update_counts(command: Any) -> None:
    states = [row["Status"] for row in command.invocations]
    command.completed_count = sum(state in _ENDED for state in states)
    command.error_count = sum(state in ("Failed", "TimedOut") for state in states)
    command.target_count = len(states)
    order = ("Cancelling", "InProgress", "Pending", "Failed", "TimedOut", "Cancelled")
    status = next((one for one in order if one in states), "Success")
    if status == "Pending" and command.completed_count:
        status = "InProgress"
    command.status = command.status_details = status


def _command_row(command: Any) -> dict[str, Any]:
    row: dict[str, Any] = command.response_object()
    row.pop("NotificationConfig", None)
    return row
