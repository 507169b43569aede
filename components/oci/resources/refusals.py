# SPDX-License-Identifier: Apache-2.0
"""Finds changes that OCI would refuse in the middle of an `up`, from the plan and the stack's state, so that a preview
reports them.

Oracle's provider does not check them: its preview shows an update, and OCI refuses it minutes later. If `--replace`
avoids the refusal, this is a warning, because a program cannot see that option. If nothing avoids it, this is an error.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from ipaddress import IPv4Network

import pulumi
import pulumi_oci as oci

from catalog.tables import table
from components.messages import RefusedError
from components.oci.plan import OciPlan
from components.oci.resources.storage import VERSIONING
from components.outputs import Outputs, Recorded, unless_refused
from schemas.each import lies_outside
from schemas.findings import Wrong, at
from schemas.name_suggestions import quoted_list

GONE = frozenset({"TERMINATING", "TERMINATED"})


def find_refusals(plan: OciPlan, recorded: Recorded) -> Iterator[Wrong]:
    """A warning for each update that OCI refuses. Raises RefusedError for those that cannot be avoided."""
    if refused := [*_refused_versioning(plan, recorded), *_refused_secret_keys(plan, recorded)]:
        raise RefusedError(refused)
    network, vcn, subnet = plan.network, recorded.one("Vcn", "vcn"), recorded.one("Subnet", "subnet")
    if not subnet:
        return
    if not network.create or network.vcn not in (None, subnet.get("vcnId")) or (network.vcn is None) != bool(vcn):
        message = f"the subnet `{subnet.get('displayName')}` is deleted. {_refusal_text('network-in-use')}"
        remedy = "first let the runs in it end, also those of stacks that use it (`trainyard runs`)"
        yield Wrong(at("network"), message, remedy)
    elif vcn and (outside := _left_outside(plan, vcn, subnet)):
        named = ", ".join(f"`{name}` ({cidr})" for name, cidr in outside.items())
        message = (
            f"{', '.join(vcn['cidrBlocks'])} -> {plan.network.cidr} leaves subnets outside: {named}. "
            f"{_refusal_text('vcn-range')}"
        )
        remedy = f"choose a range that contains them. {_move_remedy(plan, recorded.urn('Vcn', 'vcn'), 'network')}"
        yield Wrong(at("network", "cidr"), message, remedy)
    elif subnet.get("cidrBlock") != network.subnet_cidr:
        old, new = IPv4Network(subnet["cidrBlock"]), IPv4Network(plan.network.subnet_cidr)
        change = f"{old} -> {new}"
        if old.network_address == new.network_address:
            if new.prefixlen > old.prefixlen:
                message = f"{change} removes addresses. {_refusal_text('subnet-range')}"
                remedy = (
                    "first let the runs in the subnet end, also those of stacks that use it (`trainyard runs`); "
                    f"or keep its range: `subnetCidr: {old}`"
                )
                yield Wrong(at("network", "subnetCidr"), message, remedy)
            return
        keep = f"choose a range that begins at {old.network_address}"
        move = _move_remedy(plan, recorded.urn("Subnet", "subnet"), "subnet")
        if old.overlaps(new):
            move = f"Or choose one that does not overlap {old}; then: {move[0].lower()}{move[1:]}"
        yield Wrong(at("network", "subnetCidr"), f"{change}: {_refusal_text('subnet-range')}", f"{keep}. {move}")


def _left_outside(plan: OciPlan, vcn: Outputs, subnet: Outputs) -> dict[str, str]:
    """The names of subnets outside of the VCN's new range: the stack's own, and those of others."""
    blocks = [plan.network.cidr]
    if list(vcn.get("cidrBlocks") or ()) == blocks:
        return {}
    there = {str(subnet.get("displayName")): str(subnet.get("cidrBlock"))}
    place = plan.network.compartment or plan.compartment or ""
    for other in unless_refused(lambda: oci.core.get_subnets(compartment_id=place, vcn_id=subnet["vcnId"]).subnets):
        if other.state not in GONE:
            there.setdefault(other.display_name, other.cidr_block)
    return {name: cidr for name, cidr in there.items() if lies_outside(cidr, blocks)}


def _move_remedy(plan: OciPlan, urn: str | None, what: str) -> str:
    """How to replace a part of the network, and what is replaced with it."""
    command = shlex.join(["pulumi", "up", "--stack", pulumi.get_stack(), "--replace", str(urn)])
    grouped = [name for name, job in plan.jobs.items() if job.layout == "node-groups"]
    again = f" The jobs of node groups start their runs again: {quoted_list(grouped)}." if grouped else ""
    return f"To move the {what}, let the runs in it end, then replace it and all in it: `{command}`.{again}"


def _refused_versioning(plan: OciPlan, recorded: Recorded) -> Iterator[Wrong]:
    bucket, versioning = recorded.one("Bucket", "bucket"), plan.bucket.versioning
    if not plan.bucket.create or "bucket" in plan.taken:
        return
    before = bucket.get("versioning") if bucket.get("name") == plan.bucket.name else None
    if versioning is False and before not in (None, VERSIONING[False]):
        remedy = "write `versioning: suspended`; existing versions stay until they are deleted"
        yield Wrong(at("bucket", "versioning"), _refusal_text("bucket-versioning"), remedy)
    elif versioning == "suspended" and before is None:
        remedy = "write `versioning: false` for the first `up`, or `true`, and suspend it afterwards"
        yield Wrong(at("bucket", "versioning"), _refusal_text("bucket-suspended"), remedy)


def _refused_secret_keys(plan: OciPlan, recorded: Recorded) -> Iterator[Wrong]:
    for name in plan.vault.secrets if plan.vault else ():
        before = recorded.one("Secret", f"secret-{name}")
        if not before or plan.vault is None or before.get("vaultId") != plan.vault.vault:
            continue
        if before.get("keyId") != plan.vault.key:
            message = f"the secret `{before.get('secretName')}` has the key {before.get('keyId')}. "
            remedy = (
                f"keep that key, or name the secret otherwise under `vault.secrets`, and in `${{secret.{name}}}`; "
                "the old one is then deleted"
            )
            yield Wrong(at("vault", "key"), message + _refusal_text("secret-key"), remedy)


def _refusal_text(row: str) -> str:
    facts = table("oci_refusals")[row]
    return f"{facts['rule']}; `up` would end {facts['ends']}"
