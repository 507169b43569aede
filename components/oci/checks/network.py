# SPDX-License-Identifier: Apache-2.0
"""Checks of an existing network on OCI, and of its flow log."""

from __future__ import annotations

from collections.abc import Iterator

from components.oci.checks.registry import rule
from components.oci.stack import OciStack
from schemas.checks.registry import Wrong, at
from schemas.facts import Facts


@rule("TY110", "an existing VCN without the new subnet's addresses or routes")
def vcn_without_subnet(stack: OciStack, _: Facts) -> Iterator[Wrong]:
    network = stack.network
    if network.vcn is None or network.subnet is not None:
        return
    if network.subnet_cidr is None:
        message = "a subnet is made in the existing VCN, but its addresses are missing"
        yield Wrong(at("network", "vcn"), message, "add `subnetCidr`, a free part of the VCN's addresses")
    if network.route_table is None:
        message = "the new subnet would get the VCN's default route table, which often has no routes"
        yield Wrong(at("network", "vcn"), message, "add `routeTable`, one with a service gateway")


@rule("TY111", "a setting has no effect without an existing network", severity="warning")
def without_effect(stack: OciStack, _: Facts) -> Iterator[Wrong]:
    network = stack.network
    if network.route_table and not network.vcn and not network.subnet:
        yield Wrong(at("network", "routeTable"), "has no effect without `vcn`", "remove it, or name the VCN")
    if network.compartment and not (network.vcn or network.subnet):
        message = "has no effect: it is the compartment of an existing network, and none is named"
        yield Wrong(at("network", "compartment"), message, "remove it, or name `vcn` or `subnet`")


@rule("TY115", "a flow log without a place for it")
def flow_log_without_logs(stack: OciStack, _: Facts) -> Iterator[Wrong]:
    if stack.network.flow_log is True and not stack.logs.enabled:
        message = "the flow log is made in the stack's log group, but the stack has no logs"
        remedy = "remove `enabled: false` under `trainyard:logs`, or name a flow log: `{ group: OCID, log: OCID }`"
        yield Wrong(at("network", "flowLog"), message, remedy)


@rule("TY116", "a flow log of a subnet that somebody else made", severity="warning")
def flow_log_of_others(stack: OciStack, _: Facts) -> Iterator[Wrong]:
    network = stack.network
    if network.flow_log is True and not stack.makes("network"):
        message = (
            "makes a flow log of a subnet of others: the deployer must be allowed to update that subnet, and the log "
            "records what others send there"
        )
        remedy = "ask its owner for one, and name it: `flowLog: { group: OCID, log: OCID }`"
        yield Wrong(at("network", "flowLog"), message, remedy)
