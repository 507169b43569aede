# SPDX-License-Identifier: Apache-2.0
"""Core networking: changes the address blocks of an existing VCN as Oracle's provider does."""

from collections.abc import Sequence
from ipaddress import IPv4Network
from typing import Any

from components.oci.client.calls import attempt
from components.platform.calls import Call, ProviderError
from components.platform.values import Diff, Properties, changed_keys, has_unknown
from localcloud.oci.plugin.convert import models_of
from localcloud.oci.plugin.table import OciResource
from localcloud.oci.plugin.work_requests import finished
from localcloud.plugins.remedies import commands

_BLOCKS = "cidrBlocks"


def edit_of(old: Sequence[str], new: Sequence[str]) -> dict[str, str] | None:
    """The details of the one call that turns `old` into `new`; None if no single call can.

    Oracle's provider has three edits: add a block at the end, remove a block, and exchange a block in its place.
    """
    if len(new) == len(old) + 1 and list(new[:-1]) == list(old):
        return {"cidr_block": new[-1]}
    differing = [index for index, block in enumerate(old) if index >= len(new) or block != new[index]]
    if not differing:
        return None
    first = differing[0]
    if len(new) == len(old) and len(differing) == 1:
        return {"original_cidr_block": old[first], "new_cidr_block": new[first]}
    if [*old[:first], *old[first + 1 :]] == list(new):
        return {"cidr_block": old[first]}
    return None


class VcnResource(OciResource):
    """A VCN. Its IPv4 blocks change by calls of their own, one block at a time."""

    def diff(self, call: Call, old: Properties, old_outputs: Properties, new: Properties) -> Diff:
        diff, made = super().diff(call, old, old_outputs, new), old_outputs.get("id")
        if made and _BLOCKS in changed_keys(diff) and not diff.replaces and not has_unknown(new[_BLOCKS]):
            self._edit(call, made, new)  # the preview already reports what prevents the change
        return diff

    def _update(self, call: Call, id: str, changed: Properties, new: Properties) -> Any:  # noqa: A002
        if _BLOCKS in changed:
            self._change_blocks(call, id, new)
        return super()._update(call, id, {key: value for key, value in changed.items() if key != _BLOCKS}, new)

    def _change_blocks(self, call: Call, id: str, new: Properties) -> None:  # noqa: A002
        edit = self._edit(call, id, new)
        if edit is None:
            return
        verb = "Modify" if "new_cidr_block" in edit else "Add" if edit["cidr_block"] in new[_BLOCKS] else "Remove"
        details = getattr(models_of("core"), f"{verb}VcnCidrDetails")(**edit)
        what = f"{verb} a block of {call.name}"
        answer = self._write(call, what, getattr(self.client, f"{verb.lower()}_vcn_cidr"), id, details)
        finished(call, self._session().client("work_requests"), answer, "vcn", "IN_PROGRESS")

    def _edit(self, call: Call, id: str, new: Properties) -> dict[str, str] | None:  # noqa: A002
        """The remaining edit; None if an interrupted update has done it. Raises for an edit that OCI would refuse."""
        live = self._get(call, id, new)
        if live is None or list(live.cidr_blocks) == new[_BLOCKS]:
            return None
        edit = edit_of(live.cidr_blocks, new[_BLOCKS])
        if edit is None:
            raise ProviderError(
                f"{call.name}: one update cannot change `{_BLOCKS}` from {', '.join(live.cidr_blocks)} to "
                f"{', '.join(new[_BLOCKS])}.",
                "An update adds one block at the end, removes one, or exchanges one. "
                "Change one block, run `pulumi up`, then change the next.",
            )
        self._require_subnets_inside(call, live, new[_BLOCKS])
        return edit

    def _require_subnets_inside(self, call: Call, vcn: Any, blocks: Sequence[str]) -> None:
        answer = attempt(
            call,
            f"List the subnets of {call.name}",
            lambda: self.client.list_subnets(vcn.compartment_id, vcn_id=vcn.id, limit=1000),
        )
        left_out = [
            f"{subnet.display_name} {subnet.cidr_block} ({subnet.id})"
            for subnet in answer.data
            if subnet.lifecycle_state not in self.row.gone and not _lies_in(subnet.cidr_block, blocks)
        ]
        if left_out:
            raise ProviderError(
                f"{call.name}: subnets lie outside of {', '.join(blocks)}, and OCI never removes a range that a subnet "
                f"uses: {', '.join(left_out)}.",
                "Choose a range that contains them too. To move the network, wait until its runs have ended, then "
                f"replace it and everything in it: {commands(call.urn, 'up', '--replace', call.urn)}.",
            )


def _lies_in(inner: str, blocks: Sequence[str]) -> bool:
    try:
        return any(IPv4Network(inner).subnet_of(IPv4Network(block)) for block in blocks)
    except ValueError:  # the cloud's own message for a malformed block is better
        return True
