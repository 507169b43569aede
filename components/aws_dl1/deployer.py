# SPDX-License-Identifier: Apache-2.0
"""The least policy for the deployer, who runs `pulumi up` and `destroy` of this plan."""

from __future__ import annotations

from collections.abc import Iterator

from catalog.aws_actions import rows_of_kind
from catalog.tables import table
from components.aws_dl1.plan import AwsDl1Plan
from components.aws_dl1.statements import AwsPolicy, AwsStatement, merged, rows_of, split, statement


def deployer_policies(plan: AwsDl1Plan) -> tuple[AwsPolicy, ...]:
    """The least policies under which the plan's own deployer can bring it up and take it down."""
    return split(f"{plan.team}-{plan.environment}-deployer", "deployer", merged(_statements(plan)))


def _statements(plan: AwsDl1Plan) -> Iterator[AwsStatement]:
    rows = table("aws_dl1_access")
    for kind in _makes(plan):
        for row in rows_of_kind(kind) if kind in rows["deployer"] else ():
            yield statement(plan, row, kind)
        for words in rows["as_users"].get(kind, ()):
            yield from (statement(plan, row, kind) for row in rows_of("users", words))


def _makes(plan: AwsDl1Plan) -> list[str]:
    """What the deployer makes, as the kinds of the table."""
    access, jobs = plan.access, bool(plan.jobs)
    runs = any(job.runs for job in plan.jobs.values())
    makes: list[tuple[bool, str]] = [
        (True, "any stack"),
        *_network(plan),
        *_clusters(plan),
        (access.create and access.make_runs_role, "nodes' role"),
        (access.create, "nodes' profile"),
        (not access.create and "access" not in plan.taken, "existing profile"),
        *_policies(plan),
        (plan.bucket.create, "bucket"),
        (plan.bucket.create and not plan.bucket.keep, "bucket that goes"),
        (not plan.bucket.create and "bucket" not in plan.taken, "existing bucket"),
        (plan.bucket.key is not None, "key"),
        (plan.registry.create, "registry"),
        (plan.registry.create and not plan.registry.keep, "registry that goes"),
        (not plan.registry.create and "registry" not in plan.taken, "existing registry"),
        (plan.logs.create and plan.logs.enabled, "logs"),
        (jobs, "secrets"),
        (jobs, "job objects"),
        (runs, "run"),
        (runs and plan.logs.enabled, "run logs"),
    ]
    return [kind for wanted, kind in makes if wanted]


def _network(plan: AwsDl1Plan) -> list[tuple[bool, str]]:
    network = plan.network
    own = network.create and network.vpc is None
    group = network.create and network.make_security_group
    return [
        (own, "network"),
        (network.create, "subnet"),
        (own, "own routes"),
        (own and bool(network.endpoints), "endpoints in the subnet"),
        (group or (own and bool(network.endpoints)), "security group"),
        (network.create and not own, "subnet in an existing VPC"),
        (group and not own, "security group in an existing VPC"),
        (network.create and network.route_table is not None, "existing routes"),
        (network.public or network.gateway_cidr is not None, "way out"),
        (network.gateway_cidr is not None, "nat"),
    ]


def _clusters(plan: AwsDl1Plan) -> list[tuple[bool, str]]:
    clusters = [job.cluster for job in plan.jobs.values()]
    return [
        (bool(clusters), "cluster"),
        # A cluster that shrinks to one machine keeps its group, until that machine goes.
        (any(one.placement_group is None and one.reservation is None for one in clusters), "placement group"),
        (bool(clusters), "image"),
        (any(one.image_parameter for one in clusters), "image by parameter"),
        (bool(clusters) and not plan.network.create, "cluster in an existing subnet"),
        (bool(clusters) and not plan.network.make_security_group, "cluster in an existing security group"),
        (any(one.placement_group for one in clusters), "cluster in an existing placement group"),
        (any(one.reservation for one in clusters), "reserved cluster"),
        (any(one.spot for one in clusters), "spot cluster"),
        (any(one.public_address == "elastic" for one in clusters), "public address"),
    ]


def _policies(plan: AwsDl1Plan) -> list[tuple[bool, str]]:
    """Policies are made and attached; in some modes AWS's own ones are attached, too."""
    access = plan.access
    group, role = access.create and bool(access.users_group), access.create and bool(access.users_role)
    managed = access.mode != "least-privilege"
    return [
        (access.create, "policies"),
        (access.create and managed, "AWS's policies"),
        (group, "policies of a group"),
        (group and managed, "AWS's policies of a group"),
        (role, "policies of a role"),
        (role and managed, "AWS's policies of a role"),
    ]
