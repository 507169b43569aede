# SPDX-License-Identifier: Apache-2.0
"""Placement groups and capacity reservations, which moto does not have."""

from __future__ import annotations

import secrets
from typing import Any

from localcloud.aws.account import ACCOUNT
from localcloud.aws.additions.instance_types import is_offered
from localcloud.aws.additions.outside import Operations, apply_filters, ec2_error, own_table

_GROUP_FILTERS = {"group-name": "GroupName", "group-arn": "GroupArn", "state": "State", "strategy": "Strategy"}
_STRATEGIES = ("cluster", "partition", "spread")
_RESERVATION_FILTERS = {
    "instance-type": "InstanceType", "owner-id": "OwnerId", "instance-platform": "InstancePlatform",
    "availability-zone": "AvailabilityZone", "tenancy": "Tenancy", "state": "State", "end-date-type": "EndDateType",
    "instance-match-criteria": "InstanceMatchCriteria", "placement-group-arn": "PlacementGroupArn",
}  # fmt: skip


class PlacementGroups(Operations):
    """Operations of EC2."""

    def create_placement_group(self) -> Any:
        from moto.core.responses import ActionResult

        name, strategy = self._get_param("GroupName"), self._get_param("Strategy", "cluster")
        groups = own_table(self.ec2_backend, "placement_groups")
        if not name:
            raise ec2_error("MissingParameter", "The request must contain the parameter groupName")
        if strategy not in _STRATEGIES:
            raise ec2_error("InvalidParameterValue", f"Invalid value '{strategy}' for strategy.")
        if name in groups:
            raise ec2_error("InvalidPlacementGroup.Duplicate", f"The Placement Group '{name}' already exists.")
        self.error_on_dryrun()
        identifier = f"pg-{secrets.token_hex(8)}0"
        groups[name] = {
            "GroupName": name, "State": "available", "Strategy": strategy, "GroupId": identifier,
            "GroupArn": f"arn:aws:ec2:{self.region}:{ACCOUNT}:placement-group/{name}",
            **({"PartitionCount": self._get_int_param("PartitionCount", 7)} if strategy == "partition" else {}),
        }  # fmt: skip
        if tags := self._parse_tag_specification().get("placement-group"):
            self.ec2_backend.create_tags([identifier], tags)
        return ActionResult({"PlacementGroup": _shown_group(self.ec2_backend, groups[name])})

    def describe_placement_groups(self) -> Any:
        from moto.core.responses import ActionResult

        groups = own_table(self.ec2_backend, "placement_groups")
        names, ids = self._get_param("GroupNames", []), self._get_param("GroupIds", [])
        for name in names:
            find_group(self.ec2_backend, name)
        wanted = self._filters_from_querystring()
        rows = [
            _shown_group(self.ec2_backend, row)
            for row in groups.values()
            if (not names or row["GroupName"] in names) and (not ids or row["GroupId"] in ids)
        ]
        return ActionResult({"PlacementGroups": apply_filters(rows, wanted, _GROUP_FILTERS)})

    def delete_placement_group(self) -> Any:
        from moto.core.responses import EmptyResult

        name = self._get_param("GroupName")
        row = find_group(self.ec2_backend, name)
        living = [one for one in self.ec2_backend.all_instances() if one.state != "terminated"]
        if any(one.placement.group_name == name for one in living):
            raise ec2_error("InvalidPlacementGroup.InUse", f"The placement group '{name}' is in use.")
        self.error_on_dryrun()
        self.ec2_backend.tags.pop(row["GroupId"], None)
        del own_table(self.ec2_backend, "placement_groups")[name]
        return EmptyResult()


def find_group(backend: Any, name: str) -> dict[str, Any]:
    row: dict[str, Any] | None = own_table(backend, "placement_groups").get(name)
    if row is None:
        raise ec2_error("InvalidPlacementGroup.Unknown", f"The Placement Group '{name}' is unknown.")
    return row


def group_by_id(backend: Any, identifier: str) -> dict[str, Any]:
    rows: dict[str, dict[str, Any]] = own_table(backend, "placement_groups")
    for row in rows.values():
        if row["GroupId"] == identifier:
            return row
    raise ec2_error("InvalidPlacementGroupId.NotFound", f"The Placement Group '{identifier}' does not exist.")


def _shown_group(backend: Any, row: dict[str, Any]) -> dict[str, Any]:
    tags = backend.describe_tags(filters={"resource-id": [row["GroupId"]]})
    return {**row, "Tags": [{"Key": tag["key"], "Value": tag["value"]} for tag in tags]}


class CapacityReservations(Operations):
    """Operations of EC2."""

    def create_capacity_reservation(self) -> Any:
        from moto.core.responses import ActionResult
        from moto.core.utils import utcnow

        kind, zone = self._get_param("InstanceType"), self._get_param("AvailabilityZone")
        count = self._get_int_param("InstanceCount", 0)
        if not (kind and zone and count > 0):
            raise ec2_error("MissingParameter", "InstanceType, AvailabilityZone and InstanceCount are required")
        if not is_offered(self.ec2_backend, kind, zone):
            raise ec2_error("Unsupported", f"The instance type {kind} is not supported in {zone}")
        self.error_on_dryrun()
        identifier = f"cr-{secrets.token_hex(8)}0"
        row = {
            "CapacityReservationId": identifier, "OwnerId": ACCOUNT, "InstanceType": kind, "AvailabilityZone": zone,
            "CapacityReservationArn": f"arn:aws:ec2:{self.region}:{ACCOUNT}:capacity-reservation/{identifier}",
            "InstancePlatform": self._get_param("InstancePlatform"), "Tenancy": self._get_param("Tenancy", "default"),
            "TotalInstanceCount": count, "State": "active", "CreateDate": utcnow(), "StartDate": utcnow(),
            "EndDate": self._get_param("EndDate"), "EndDateType": self._get_param("EndDateType", "unlimited"),
            "InstanceMatchCriteria": self._get_param("InstanceMatchCriteria", "open"),
            "EbsOptimized": bool(self._get_param("EbsOptimized")), "EphemeralStorage": False,
            "PlacementGroupArn": self._get_param("PlacementGroupArn"), "ReservationType": "default",
        }  # fmt: skip
        own_table(self.ec2_backend, "reservations")[identifier] = row
        if tags := self._parse_tag_specification().get("capacity-reservation"):
            self.ec2_backend.create_tags([identifier], tags)
        return ActionResult({"CapacityReservation": _shown_reservation(self.ec2_backend, row)})

    def describe_capacity_reservations(self) -> Any:
        from moto.core.responses import ActionResult

        ids = self._get_param("CapacityReservationIds", [])
        wanted = self._filters_from_querystring()
        rows = [find_reservation(self.ec2_backend, one) for one in ids] or list(
            own_table(self.ec2_backend, "reservations").values()
        )
        every = [_shown_reservation(self.ec2_backend, row) for row in rows]
        return ActionResult({"CapacityReservations": apply_filters(every, wanted, _RESERVATION_FILTERS)})

    def modify_capacity_reservation(self) -> Any:
        from moto.core.responses import ActionResult

        row = find_reservation(self.ec2_backend, self._get_param("CapacityReservationId"))
        count = self._get_int_param("InstanceCount", row["TotalInstanceCount"])
        if count < _used_instances(self.ec2_backend, row):
            raise ec2_error(
                "InvalidParameterValue", "More instances run in the reservation than it would have room for"
            )
        self.error_on_dryrun()
        row["TotalInstanceCount"] = count
        for name in ("EndDate", "EndDateType", "InstanceMatchCriteria"):
            row[name] = self._get_param(name, row[name])
        if row["EndDateType"] == "unlimited":
            row["EndDate"] = None
        return ActionResult({"Return": True})

    def cancel_capacity_reservation(self) -> Any:
        from moto.core.responses import ActionResult

        row = find_reservation(self.ec2_backend, self._get_param("CapacityReservationId"))
        self.error_on_dryrun()
        row["State"] = "cancelled"
        return ActionResult({"Return": True})


def find_reservation(backend: Any, identifier: str) -> dict[str, Any]:
    row: dict[str, Any] | None = own_table(backend, "reservations").get(identifier)
    if row is None:
        raise ec2_error(
            "InvalidCapacityReservationId.NotFound", f"The capacity reservation ID '{identifier}' does not exist"
        )
    return row


def _used_instances(backend: Any, row: dict[str, Any]) -> int:
    """The number of instances that use a reservation."""
    return sum(
        getattr(one, "capacity_reservation_id", "") == row["CapacityReservationId"] and one.state != "terminated"
        for one in backend.all_instances()
    )


def choose_reservation(backend: Any, wanted: dict[str, Any], kind: str, zone: str, count: int) -> str:
    """The id of the reservation for instances: the one that the launch names, an open one with free capacity, or ""."""
    target = wanted.get("CapacityReservationTarget", {})
    preference = wanted.get("CapacityReservationPreference", "open")
    if identifier := target.get("CapacityReservationId"):
        row = find_reservation(backend, identifier)
        fits = (row["InstanceType"], row["AvailabilityZone"]) == (kind, zone) and row["State"] == "active"
        if not fits:
            raise ec2_error(
                "InvalidParameterValue", f"The capacity reservation '{identifier}' does not match the instances"
            )
        if row["TotalInstanceCount"] - _used_instances(backend, row) < count:
            raise ec2_error(
                "ReservationCapacityExceeded", f"The capacity reservation '{identifier}' has not enough capacity"
            )
        return str(identifier)
    for row in own_table(backend, "reservations").values():
        fits = (row["InstanceType"], row["AvailabilityZone"], row["State"]) == (kind, zone, "active")
        room = row["TotalInstanceCount"] - _used_instances(backend, row) >= count
        if preference == "open" and row["InstanceMatchCriteria"] == "open" and fits and room:
            return str(row["CapacityReservationId"])
    return ""


def _shown_reservation(backend: Any, row: dict[str, Any]) -> dict[str, Any]:
    tags = backend.describe_tags(filters={"resource-id": [row["CapacityReservationId"]]})
    left = row["TotalInstanceCount"] - _used_instances(backend, row)
    return {
        **row, "AvailableInstanceCount": left if row["State"] == "active" else 0,
        "Tags": [{"Key": tag["key"], "Value": tag["value"]} for tag in tags],
    }  # fmt: skip
