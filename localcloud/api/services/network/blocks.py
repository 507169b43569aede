# SPDX-License-Identifier: Apache-2.0
"""Adds, exchanges and removes address blocks of an existing VCN."""

from __future__ import annotations

from localcloud.api import clock, kinds
from localcloud.api.errors import conflict, invalid, not_found
from localcloud.api.http import Reply
from localcloud.api.operations import ApiCall
from localcloud.api.services.network.common import parse_block, parse_separate_blocks
from localcloud.api.services.network.vcns import VCN
from localcloud.api.store import StoredResource
from localcloud.api.work_requests import issue_receipt

MAXIMUM_BLOCKS = 5


def add(call: ApiCall) -> Reply:
    vcn = kinds.find_settled(VCN, call)
    return _keep(call, vcn, [*vcn.body["cidrBlocks"], call.details()["cidrBlock"]])


def modify(call: ApiCall) -> Reply:
    vcn, details = kinds.find_settled(VCN, call), call.details()
    old, new = details["originalCidrBlock"], details["newCidrBlock"]
    _require(vcn, old)
    return _keep(call, vcn, [new if block == old else block for block in vcn.body["cidrBlocks"]])


def remove(call: ApiCall) -> Reply:
    vcn, gone = kinds.find_settled(VCN, call), call.details()["cidrBlock"]
    _require(vcn, gone)
    return _keep(call, vcn, [block for block in vcn.body["cidrBlocks"] if block != gone])


def _require(vcn: StoredResource, block: str) -> None:
    if block not in vcn.body["cidrBlocks"]:
        raise not_found(f"the block {block} of the VCN")


def _keep(call: ApiCall, vcn: StoredResource, blocks: list[str]) -> Reply:
    if not 1 <= len(blocks) <= MAXIMUM_BLOCKS:
        raise invalid(f"a VCN has one to {MAXIMUM_BLOCKS} blocks")
    networks = parse_separate_blocks(blocks)
    if left_out := [
        f"{subnet.name} {subnet.body['cidrBlock']} ({subnet.id})"
        for subnet in call.store.live("subnet", parent=vcn.id)
        if not any(parse_block(subnet.body["cidrBlock"]).subnet_of(block) for block in networks)
    ]:
        raise conflict(f"The VCN {vcn.name} has subnets outside of {', '.join(blocks)}: {', '.join(left_out)}")
    until = clock.now() + call.cloud.faults.seconds("transition", call.operation.name)
    body = {**vcn.body, "cidrBlock": blocks[0], "cidrBlocks": blocks}
    changed = call.store.put(vcn, body=body, settling="UPDATING", settles_at=until)
    # The action stays so when the work request has succeeded, and Oracle's provider asks for exactly this one.
    return Reply(202, headers={"etag": changed.etag} | issue_receipt(call, "UPDATE_VCN", "vcn", "IN_PROGRESS", changed))
