# SPDX-License-Identifier: Apache-2.0
"""What `trainyard plan` says in AWS's words."""

from __future__ import annotations

from collections.abc import Iterator

from components.aws_dl1.plan import AwsDl1Plan
from components.plan.platform import Row, Words
from components.plan.show import made_or_not, name_or_owner


def words(plan: AwsDl1Plan) -> Words:
    return Words(
        place=[("account", plan.account or "")],
        principals=tuple(_principals(plan)),
        network=tuple(_network(plan)),
        storage=tuple(_storage(plan)),
    )


def _principals(plan: AwsDl1Plan) -> Iterator[Row]:
    access = plan.access
    if access.users_group:
        yield "users", f"group {access.users_group}"
    if access.users_role:
        yield "users", f"role {access.users_role}"
    new = " (made)" if access.make_runs_role and access.create else ""
    yield "runs", name_or_owner(plan, "access", f"role {access.runs_role}{new}")


def _network(plan: AwsDl1Plan) -> Iterator[Row]:
    network = plan.network
    # EFA's traffic has no ports: no narrower rule lets it through.
    group = ("security group", f"{network.security_group}: everything from and to itself, as EFA needs it")
    if not network.create:
        yield "subnet", network.subnet or "of the stack it uses"
        yield group
        return
    yield ("in VPC", network.vpc) if network.vpc else ("network", network.cidr)
    yield "subnet", network.subnet_cidr
    yield group
    yield "way out", "to S3 by its gateway endpoint" + (", and out through NAT" if network.nat else " only")


def _storage(plan: AwsDl1Plan) -> Iterator[Row]:
    logs = plan.logs
    if logs.enabled:
        made = f"{logs.group_name}, {made_or_not(logs.create)}, {logs.retention_days} days"
        yield "log group", name_or_owner(plan, "logs", made)
