# SPDX-License-Identifier: Apache-2.0
"""Capacity reservations, which moto does not have."""

from __future__ import annotations

import secrets
from typing import Any

from localcloud.aws.account import ACCOUNT
from localcloud.aws.additions.instance_types import is_offered
from localcloud.aws.additions.outside import Operations, ec2_error, filtered, held

_FILTERS = {
    "instance-type": "InstanceType", "owner-id": "OwnerId", "instance-platform": "InstancePlatform",
    "availability-zone": "AvailabilityZone", "tenancy": "Tenancy", "state": "State", "end-date-type": "EndDateType",
    "instance-match-criteria": "InstanceMatchCriteria", "placement-group-arn": "PlacementGroupArn",
}  # fmt: skip


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
        held(self.ec2_backend, "reservations")[identifier] = row
        if tags := self._parse_tag_specification().get("capacity-reservation"):
            self.ec2_backend.create_tags([identifier], tags)
        return ActionResult({"CapacityReservation": shown(self.ec2_backend, row)})

    def describe_capacity_reservations(self) -> Any:
        from moto.core.responses import ActionResult

        ids = self._get_param("CapacityReservationIds", [])
        wanted = self._filters_from_querystring()
        rows = [find(self.ec2_backend, one) for one in ids] or list(held(self.ec2_backend, "reservations").values())
        every = [shown(self.ec2_backend, row) for row in rows]
        return ActionResult({"CapacityReservations": filtered(every, wanted, _FILTERS)})

    def modify_capacity_reservation(self) -> Any:
        from moto.core.responses import ActionResult

        row = find(self.ec2_backend, self._get_param("CapacityReservationId"))
        count = self._get_int_param("InstanceCount", row["TotalInstanceCount"])
        if count < used(self.ec2_backend, row):
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

        row = find(self.ec2_backend, self._get_param("CapacityReservationId"))
        self.error_on_dryrun()
        row["State"] = "cancelled"
        return ActionResult({"Return": True})


def find(backend: Any, identifier: str) -> dict[str, Any]:
    row = held(backend, "reservations").get(identifier)
    if row is None:
        raise ec2_error(
            "InvalidCapacityReservationId.NotFound", f"The capacity reservation ID '{identifier}' does not exist"
        )
    found: dict[str, Any] = row
    return found


def used(backend: Any, row: dict[str, Any]) -> int:
    """How many instances use a reservation."""
    return sum(
        getattr(one, "capacity_reservation_id", "") == row["CapacityReservationId"] and one.state != "terminated"
        for one in backend.all_instances()
    )


def choose(backend: Any, wanted: dict[str, Any], kind: str, zone: str, count: int) -> str:
    """Chooses the reservation of instances: the one that the launch names, an open one with free capacity, or none."""
    target = wanted.get("CapacityReservationTarget", {})
    preference = wanted.get("CapacityReservationPreference", "open")
    if identifier := target.get("CapacityReservationId"):
        row = find(backend, identifier)
        fits = (row["InstanceType"], row["AvailabilityZone"]) == (kind, zone) and row["State"] == "active"
        if not fits:
            raise ec2_error(
                "InvalidParameterValue", f"The capacity reservation '{identifier}' does not match the instances"
            )
        if row["TotalInstanceCount"] - used(backend, row) < count:
            raise ec2_error(
                "ReservationCapacityExceeded", f"The capacity reservation '{identifier}' has not enough capacity"
            )
        return str(identifier)
    for row in held(backend, "reservations").values():
        fits = (row["InstanceType"], row["AvailabilityZone"], row["State"]) == (kind, zone, "active")
        room = row["TotalInstanceCount"] - used(backend, row) >= count
        if preference == "open" and row["InstanceMatchCriteria"] == "open" and fits and room:
            return str(row["CapacityReservationId"])
    return ""


def shown(backend: Any, row: dict[str, Any]) -> dict[str, Any]:
    tags = backend.describe_tags(filters={"resource-id": [row["CapacityReservationId"]]})
    left = row["TotalInstanceCount"] - used(backend, row)
    return {
        **row, "AvailableInstanceCount": left if row["State"] == "active" else 0,
        "Tags": [{"Key": tag["key"], "Value": tag["value"]} for tag in tags],
    }  # fmt: skip
