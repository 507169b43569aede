# SPDX-License-Identifier: Apache-2.0
"""Losses that delete no resource, networks and roles of somebody else's, and edits without meaning."""

from __future__ import annotations

from typing import Any

from tests.support.silence import AWS, OCI, SilentChange

REPLACE, EXPOSURE, ACCESS = (frozenset({gate}) for gate in ("replace", "exposure", "access-gain"))
IN_A_VCN, IN_A_VPC = "oci-existing-vcn", "aws-dl1-existing-vpc"


def _network(**values: Any) -> Any:
    return lambda document: document["config"]["trainyard:network"].update(values)


def _with_network(**values: Any) -> Any:
    """In place of the network that is there."""
    return lambda document: document["config"].update({"trainyard:network": values})


def _with_logs(days: int) -> Any:
    return lambda document: document["config"].update({"trainyard:logs": {"retentionDays": days}})


def _rename_job(document: dict[str, Any]) -> None:
    jobs = document["config"]["trainyard:jobs"]
    jobs["renamed"] = {**jobs.pop("resnet"), "was": ["resnet"]}


def _ingress(*ranges: str) -> Any:
    rules = [{"cidr": cidr, "ports": 443, "why": "the office"} for cidr in ranges]
    return lambda document: document["config"]["trainyard:network"].update(ingress=rules)


# What deletes the objects of a bucket that is there already, by stack: its type, and its rules.
_EXPIRY = {
    OCI: (
        "oci:ObjectStorage/objectLifecyclePolicy:ObjectLifecyclePolicy",
        {"name": "tidy", "action": "DELETE", "isEnabled": True, "timeAmount": "1", "timeUnit": "DAYS"},
    ),
    AWS: (
        "aws:s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration",
        {"id": "tidy", "status": "Enabled", "expiration": {"days": 1}},
    ),
}

CHANGES = (
    *(
        SilentChange(
            number=1,
            title=f"objects that expire, on {stack}",
            stack=stack,
            program=f"pulumi.CustomResource({token!r}, 'more', {{'bucket': 'data', 'rules': [{rule!r}]}})",
            shows=(
                "1 lost in place",
                f"{token.rpartition(':')[2]} more: made with rules; not judged",
                f"{token.rpartition(':')[2]} `more`: made, and deletes what is there",
                "lost: objects of the bucket data older than 1 day are deleted, which were kept for ever",
            ),
            trips=REPLACE,
        )
        for stack, (token, rule) in _EXPIRY.items()
    ),
    SilentChange(
        number=11,
        title="logs are kept for a shorter time",
        before=_with_logs(180),
        change=_with_logs(30),
        shows=("1 lost in place", "log entries older than 30 days are deleted, which were kept for 180 days"),
        trips=REPLACE,
    ),
    SilentChange(
        number=11,
        title="logs of AWS are kept for a day",
        stack=AWS,
        before=_with_logs(365),
        change=_with_logs(1),
        shows=("log entries older than 1 day are deleted, which were kept for 365 days",),
        trips=REPLACE,
    ),
    SilentChange(
        number=9,
        title="a network of OCI is given up for somebody's subnet",
        change=_with_network(subnet="ocid1.subnet.oc1.iad.aaaaaaaaexamplesubnetrisk"),
        shows=("opens: not known: the subnet ocid1.subnet.oc1.iad.aaaaaaaaexamplesubnetrisk is not the stack's",),
        trips=EXPOSURE,
    ),
    SilentChange(
        number=9,
        title="a network of AWS is given up for somebody's subnet",
        stack=AWS,
        change=_with_network(subnet="subnet-0c0a1b2c3d4e5f601", securityGroup="sg-0c0a1b2c3d4e5f602"),
        shows=("opens: not known: the security group sg-0c0a1b2c3d4e5f602 in the subnet subnet-0c0a1b2c3d4e5f601",),
        trips=EXPOSURE,
    ),
    SilentChange(
        number=9,
        title="another subnet with the same security group",
        stack=IN_A_VPC,
        change=_network(subnet="subnet-0c0a1b2c3d4e5f777"),
        shows=("opens: not known: ", "subnet-0c0a1b2c3d4e5f777"),
        trips=EXPOSURE,
    ),
    SilentChange(
        number=9,
        title="another route table in a network of somebody",
        stack=IN_A_VCN,
        change=_network(routeTable="ocid1.routetable.oc1.iad.aaaaaaaaexampleroutetableother"),
        shows=("through the route table ocid1.routetable.oc1.iad.aaaaaaaaexampleroutetableother, whose routes are",),
        trips=EXPOSURE,
    ),
    SilentChange(
        number=8,
        title="nodes that lose their permissions boundary",
        stack=AWS,
        before=lambda document: document["config"]["trainyard:access"].update(
            permissionsBoundary="arn:aws:iam::123456789012:policy/company-boundary"
        ),
        change=lambda document: document["config"]["trainyard:access"].pop("permissionsBoundary"),
        shows=("role vision-prod-nodes may act beyond the permissions boundary company-boundary",),
        trips=ACCESS,
    ),
    SilentChange(
        number=8,
        title="nodes that get a role of somebody else",
        stack=AWS,
        change=lambda document: document["config"]["trainyard:access"].update(
            existing=True, runs="OrganizationAccountAccessRole"
        ),
        shows=("OrganizationAccountAccessRole",),
        trips=ACCESS,
    ),
    SilentChange(
        number=20,
        title="a job that is renamed with its earlier name",
        change=_rename_job,
        # A real preview of the same edit updates the job and its runs.
        shows=("nothing to decide; 3 resources made or changed in place",),
        stays_silent=True,
    ),
    SilentChange(
        number=23,
        title="a range of addresses in two parts",
        stack=AWS,
        before=_ingress("10.1.0.0/16"),
        change=_ingress("10.1.0.0/17", "10.1.128.0/17"),
        shows=(),
        stays_silent=True,
    ),
    SilentChange(
        number=23,
        title="two parts of a range of addresses together",
        stack=AWS,
        before=_ingress("10.1.0.0/17", "10.1.128.0/17"),
        change=_ingress("10.1.0.0/16"),
        shows=(),
        stays_silent=True,
    ),
)
