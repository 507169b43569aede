# SPDX-License-Identifier: Apache-2.0
"""Capacity reservations, which moto does not have: those of On-Demand machines, and capacity blocks.

A block is bought for a time, costs nothing here, and cannot be changed. Its machines end before it does. What time it
is decides; a fault that limits the id of a block has it end so many minutes after its start.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from catalog.aws import BLOCK_MACHINES_END_BEFORE, CAPACITY_BLOCK, aws_machine
from localcloud.aws.account import ACCOUNT
from localcloud.aws.additions import machine_view
from localcloud.aws.additions.instance_types import is_offered
from localcloud.aws.additions.outside import (
    Operations,
    action_result,
    apply_filters,
    attached_outside,
    own_table,
    shown_with_tags,
    utc_now,
)
from localcloud.aws.aws_errors import aws_refusal

_FILTERS = {
    "instance-type": "InstanceType", "owner-id": "OwnerId", "instance-platform": "InstancePlatform",
    "availability-zone": "AvailabilityZone", "tenancy": "Tenancy", "state": "State", "end-date-type": "EndDateType",
    "instance-match-criteria": "InstanceMatchCriteria", "placement-group-arn": "PlacementGroupArn",
    "reservation-type": "ReservationType",
}  # fmt: skip
_OFFERING = "cb-"
_RUNNING = ("pending", "running")
# How long a block may last: days up to two weeks, then weeks up to half a year.
_DAYS = (*range(1, 15), *range(21, 183, 7))
_MOST_MACHINES = 64


class CapacityReservations(Operations):
    """Operations of EC2."""

    def create_capacity_reservation(self) -> Any:
        kind, zone = self._get_param("InstanceType"), self._get_param("AvailabilityZone")
        count = self._get_int_param("InstanceCount", 0)
        if not (kind and zone and count > 0):
            raise aws_refusal("reservation incomplete")
        if not is_offered(self.ec2_backend, kind, zone):
            raise aws_refusal("reservation not offered", kind=kind, zone=zone)
        return self._keep(
            kind, zone, count, StartDate=utc_now(), EndDate=self._get_param("EndDate"),
            EndDateType=self._get_param("EndDateType", "unlimited"), Tenancy=self._get_param("Tenancy", "default"),
            InstanceMatchCriteria=self._get_param("InstanceMatchCriteria", "open"), ReservationType="default",
            EbsOptimized=bool(self._get_param("EbsOptimized")), PlacementGroupArn=self._get_param("PlacementGroupArn"),
        )  # fmt: skip

    def _keep(self, kind: str, zone: str, count: int, **more: Any) -> Any:
        self.error_on_dryrun()
        identifier = f"cr-{secrets.token_hex(8)}0"
        reservation = {
            "CapacityReservationId": identifier, "OwnerId": ACCOUNT, "InstanceType": kind, "AvailabilityZone": zone,
            "CapacityReservationArn": f"arn:aws:ec2:{self.region}:{ACCOUNT}:capacity-reservation/{identifier}",
            "InstancePlatform": self._get_param("InstancePlatform"), "TotalInstanceCount": count, "State": "active",
            "CreateDate": utc_now(), "EphemeralStorage": False, **more,
        }  # fmt: skip
        own_table(self.ec2_backend, "reservations")[identifier] = reservation
        self._tag_as_asked("capacity-reservation", identifier)
        return action_result({"CapacityReservation": _shown_reservation(self.ec2_backend, reservation)})

    def describe_capacity_reservations(self) -> Any:
        ids = self._get_param("CapacityReservationIds", [])
        wanted = self._filters_from_querystring()
        chosen = [find_reservation(self.ec2_backend, identifier) for identifier in ids] or list(
            own_table(self.ec2_backend, "reservations").values()
        )
        shown = [_shown_reservation(self.ec2_backend, reservation) for reservation in chosen]
        return action_result({"CapacityReservations": apply_filters(shown, wanted, _FILTERS)})

    def modify_capacity_reservation(self) -> Any:
        reservation = self._changeable_reservation()
        count = self._get_int_param("InstanceCount", reservation["TotalInstanceCount"])
        if count < _used_places(self.ec2_backend, reservation):
            raise aws_refusal("reservation too small")
        self.error_on_dryrun()
        reservation["TotalInstanceCount"] = count
        for name in ("EndDate", "EndDateType", "InstanceMatchCriteria"):
            reservation[name] = self._get_param(name, reservation[name])
        if reservation["EndDateType"] == "unlimited":
            reservation["EndDate"] = None
        return action_result({"Return": True})

    def cancel_capacity_reservation(self) -> Any:
        reservation = self._changeable_reservation()
        self.error_on_dryrun()
        reservation["State"] = "cancelled"
        return action_result({"Return": True})

    def _changeable_reservation(self) -> dict[str, Any]:
        reservation = find_reservation(self.ec2_backend, self._get_param("CapacityReservationId"))
        if reservation["ReservationType"] == CAPACITY_BLOCK:
            raise aws_refusal("block kept")
        return reservation

    def describe_capacity_block_offerings(self) -> Any:
        """An offering in each zone that has the machines. It begins when it should, and lasts exactly as long."""
        for name in ("UltraserverType", "UltraserverCount", "InstanceTypePreferences"):
            if self._get_param(name):
                raise NotImplementedError(f"The parameter '{name}'")
        kind, count = self._get_param("InstanceType", ""), self._get_int_param("InstanceCount", 1)
        start = max(utc_now(), self._get_param("StartDateRange", utc_now())).replace(microsecond=0)
        hours = self._get_int_param("CapacityDurationHours")
        offerings = [
            _block_offering(kind, zone.name, count, start, hours)
            for zone in self.ec2_backend.describe_availability_zones()
            if is_offered(self.ec2_backend, kind, zone.name)
        ]
        latest = self._get_param("EndDateRange", datetime.max)
        return action_result({"CapacityBlockOfferings": [one for one in offerings if one["EndDate"] <= latest]})

    def purchase_capacity_block(self) -> Any:
        identifier = self._get_param("CapacityBlockOfferingId")
        try:
            kind, zone, count, start, hours = json.loads(bytes.fromhex(identifier.removeprefix(_OFFERING)))
            offering = _block_offering(kind, zone, count, datetime.fromisoformat(start), hours)
        except (ValueError, TypeError):
            offering = {}
        if not offering or not is_offered(self.ec2_backend, kind, zone):
            raise aws_refusal("block offering", offering=identifier[:80])
        return self._keep(
            kind, zone, count, StartDate=offering["StartDate"], EndDate=offering["EndDate"], EndDateType="limited",
            InstanceMatchCriteria="targeted", Tenancy="default", ReservationType=CAPACITY_BLOCK, EbsOptimized=True,
        )  # fmt: skip


def _block_offering(kind: str, zone: str, count: int, start: datetime, hours: int) -> dict[str, Any]:
    """An offering. Its id says all of it, so that none needs to be kept."""
    machine = aws_machine(kind)
    if machine is None or not machine.blocks:
        raise aws_refusal("block machine", kind=kind)
    if not 0 < count <= _MOST_MACHINES:
        raise aws_refusal("block count", most=_MOST_MACHINES)
    if hours % 24 or hours // 24 not in _DAYS:
        raise aws_refusal("block duration")
    facts = json.dumps([kind, zone, count, start.isoformat(), hours])
    return {
        "CapacityBlockOfferingId": f"{_OFFERING}{facts.encode().hex()}", "InstanceType": kind, "AvailabilityZone": zone,
        "InstanceCount": count, "StartDate": start, "EndDate": start + timedelta(hours=hours), "Tenancy": "default",
        "CapacityBlockDurationHours": hours, "UpfrontFee": "0.00", "CurrencyCode": "USD",
    }  # fmt: skip


def find_reservation(backend: Any, identifier: str) -> dict[str, Any]:
    reservation: dict[str, Any] | None = own_table(backend, "reservations").get(identifier)
    if reservation is None:
        raise aws_refusal("reservation unknown", reservation=identifier)
    return reservation


def choose_reservation(backend: Any, wanted: dict[str, Any], kind: str, zone: str, count: int) -> str:
    """The id of the reservation for instances: the one that the launch names, an open one with free capacity, or ""."""
    specification = wanted.get("CapacityReservationSpecification", {})
    identifier = specification.get("CapacityReservationTarget", {}).get("CapacityReservationId")
    in_block = wanted.get("InstanceMarketOptions", {}).get("MarketType") == CAPACITY_BLOCK
    if identifier:
        reservation = find_reservation(backend, identifier)
        if in_block != (reservation["ReservationType"] == CAPACITY_BLOCK):
            raise aws_refusal("reservation market")
        if (reservation["InstanceType"], reservation["AvailabilityZone"]) != (kind, zone):
            raise aws_refusal("reservation of others", reservation=identifier)
        check_places(backend, identifier, count)
        return str(identifier)
    if in_block:
        raise aws_refusal("block unnamed")
    for reservation in own_table(backend, "reservations").values():
        fits = (reservation["InstanceType"], reservation["AvailabilityZone"]) == (kind, zone)
        is_open = reservation["InstanceMatchCriteria"] == "open" and _state_of(reservation) == "active"
        room = reservation["TotalInstanceCount"] - _used_places(backend, reservation) >= count
        if specification.get("CapacityReservationPreference", "open") == "open" and is_open and fits and room:
            return str(reservation["CapacityReservationId"])
    return ""


def check_places(backend: Any, identifier: str, count: int) -> None:
    """Refuses machines for which a reservation has no place, or no time."""
    reservation = find_reservation(backend, identifier)
    if _state_of(reservation) != "active" or _is_ending(reservation):
        raise aws_refusal("reservation inactive", reservation=identifier)
    if reservation["TotalInstanceCount"] - _used_places(backend, reservation) < count:
        raise aws_refusal("reservation full", reservation=identifier)


def instances_after_their_blocks() -> list[Any]:
    """The machines that AWS ends now, because their blocks end soon."""
    return [
        instance
        for backend in machine_view.ec2_backends_in_use()
        for reservation in vars(backend).get("trainyard_reservations", {}).values()
        if _is_ending(reservation)
        for instance in _instances_of(backend, reservation)
        if instance.state in _RUNNING
    ]


def _state_of(reservation: dict[str, Any]) -> str:
    if reservation["ReservationType"] != CAPACITY_BLOCK:
        return str(reservation["State"])
    if utc_now() < reservation["StartDate"]:
        return "scheduled"
    return "active" if utc_now() < _end_of(reservation) else "expired"


def _is_ending(reservation: dict[str, Any]) -> bool:
    return (
        reservation["ReservationType"] == CAPACITY_BLOCK
        and utc_now() >= _end_of(reservation) - BLOCK_MACHINES_END_BEFORE
    )


def _end_of(block: dict[str, Any]) -> datetime:
    minutes = attached_outside().limit(block["CapacityReservationId"])
    end: datetime = block["EndDate"] if minutes is None else block["StartDate"] + timedelta(minutes=minutes)
    return end


def _instances_of(backend: Any, reservation: dict[str, Any]) -> Iterator[Any]:
    for instance in backend.all_instances():
        if getattr(instance, "capacity_reservation_id", None) == reservation["CapacityReservationId"]:
            yield instance


def _used_places(backend: Any, reservation: dict[str, Any]) -> int:
    """A stopped machine of a block may have lost its place to another one."""
    holding = _RUNNING if reservation["ReservationType"] == CAPACITY_BLOCK else (*_RUNNING, "stopped")
    return sum(instance.state in holding for instance in _instances_of(backend, reservation))


def _shown_reservation(backend: Any, reservation: dict[str, Any]) -> dict[str, Any]:
    left = reservation["TotalInstanceCount"] - _used_places(backend, reservation)
    state = _state_of(reservation)
    block = {"EndDate": _end_of(reservation)} if reservation["ReservationType"] == CAPACITY_BLOCK else {}
    now = {"State": state, "AvailableInstanceCount": left if state == "active" else 0}
    return shown_with_tags(backend, {**reservation, **block, **now}, reservation["CapacityReservationId"])
