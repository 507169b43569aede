# SPDX-License-Identifier: Apache-2.0
"""Functions of our own provider for what Pulumi's AWS provider cannot look up."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from components.aws.types.aws_resource_type import pulumi_name_of_member
from components.platform.client import PlatformFunctions
from components.platform.values import Properties
from components.s3 import Session, aws_refusal

GET_CAPACITY_RESERVATION = "trainyard:index:getCapacityReservation"


def get_capacity_reservation(config: Properties, arguments: Properties) -> dict[str, Any]:
    """A capacity reservation, or a capacity block, by its id. Times are texts."""
    session, named = Session.of(config), [arguments["id"]]
    try:
        answer = session.client("ec2").describe_capacity_reservations(CapacityReservationIds=named)
    except Exception as error:
        raise aws_refusal(f"the capacity reservation {arguments['id']}", error) from None
    row: Mapping[str, Any] = answer["CapacityReservations"][0]
    values = {pulumi_name_of_member(name): row[name] for name in row if name != "Tags"}
    return {name: value.isoformat() if isinstance(value, datetime) else value for name, value in values.items()}


FUNCTIONS = PlatformFunctions({GET_CAPACITY_RESERVATION: get_capacity_reservation})
