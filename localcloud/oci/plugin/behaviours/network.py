# SPDX-License-Identifier: Apache-2.0
"""Core networking: security rules, in lists and in groups; and the address blocks of VCNs."""

from collections.abc import Mapping, Sequence
from functools import partial
from ipaddress import IPv4Network
from typing import Any

from components.oci.client.calls import call_oci
from components.platform.calls import Call, ProviderError
from components.platform.values import Diff, Properties, changed_keys, has_unknown
from localcloud.oci.plugin.convert import from_model, models_of, pulumi_fields, to_model
from localcloud.oci.plugin.table import OciResource, wait_for_work_request
from localcloud.plugins.engine import remedy_commands


class SecurityListResource(OciResource):
    """A security list. Pulumi flattens its ports: `destinationPortRange.min` of the API is `tcpOptions.min` there."""

    _RULES = ("ingressSecurityRules", "egressSecurityRules")
    _OPTIONS = ("tcpOptions", "udpOptions")

    def to_api(self, inputs: Properties) -> Properties:
        return self._each_rule(inputs, self._rule_to_api)

    def from_api(self, outputs: Properties) -> Properties:
        return self._each_rule(outputs, self._rule_from_api)

    def _each_rule(self, properties: Properties, change: Any) -> Properties:
        rules = {key: [change(rule) for rule in properties[key] or []] for key in self._RULES if key in properties}
        return {**properties, **rules}

    def _rule_to_api(self, rule: Mapping[str, Any]) -> Properties:
        nested: Properties = {}
        for key in (key for key in self._OPTIONS if rule.get(key)):
            nested[key] = {name: value for name, value in rule[key].items() if name not in ("min", "max")}
            low, high = rule[key].get("min"), rule[key].get("max")
            if low is not None or high is not None:
                ports = {"min": high if low is None else low, "max": low if high is None else high}
                nested[key]["destinationPortRange"] = ports
        return _without_any_code({"stateless": False, **rule, **nested})

    def _rule_from_api(self, rule: Mapping[str, Any]) -> Properties:
        flat: Properties = {}
        for key in (key for key in self._OPTIONS if rule.get(key)):
            others = {name: value for name, value in rule[key].items() if name != "destinationPortRange"}
            flat[key] = {**others, **(rule[key].get("destinationPortRange") or {})}
        return {**rule, **flat}

    def _details(self, kind: str, inputs: Properties) -> Any:
        # The API requires both lists, so an empty one is sent if the program has none.
        return super()._details(kind, {**{key: [] for key in self._RULES if kind == "Create"}, **inputs})


def _without_any_code(rule: Properties) -> Properties:
    """Terraform writes "any ICMP code" as -1, the API by leaving it out."""
    icmp = rule.get("icmpOptions")
    if icmp and icmp.get("code") == -1:
        return {**rule, "icmpOptions": {key: value for key, value in icmp.items() if key != "code"}}
    return rule


class GroupRuleResource(OciResource):
    """One rule of a network security group. In the API a rule exists only inside its group."""

    def inputs_of_api(self) -> frozenset[str]:
        return frozenset(pulumi_fields("core", "AddSecurityRuleDetails")) | {"networkSecurityGroupId"}

    def id_of(self, model: Any, inputs: Properties) -> str:
        return f"networkSecurityGroups/{inputs['networkSecurityGroupId']}/securityRules/{model.id}"

    def parse_id(self, id: str) -> Properties:  # noqa: A002
        parts = id.split("/")
        return {"networkSecurityGroupId": parts[1], "id": parts[3]} if len(parts) == 4 else {}

    def _details(self, kind: str, inputs: Properties) -> Any:
        return to_model("core", "AddSecurityRuleDetails", _without_any_code(inputs))

    def _create(self, call: Call, inputs: Properties, details: Any, token: str) -> Any:
        group = inputs["networkSecurityGroupId"]
        # This operation takes no retry token, so look for the rule of an earlier, interrupted attempt.
        twin = self._find(
            call, group, lambda rule: self.id_of(rule, inputs) != call.instead_of and self._same(rule, inputs)
        )
        if twin is not None and not call.anew:
            return twin
        batch = models_of("core").AddNetworkSecurityGroupSecurityRulesDetails(security_rules=[details])
        return self.client.add_network_security_group_security_rules(group, batch).data.security_rules[0]

    def after_create(self, call: Call, id: str, model: Any, inputs: Properties) -> Any:  # noqa: A002
        return model

    def _same(self, rule: Any, inputs: Properties) -> bool:
        shown = from_model(rule)
        desired = _without_any_code(inputs)
        return all(
            shown.get(key) == value for key, value in desired.items() if key in shown or key != "networkSecurityGroupId"
        )

    def _get(self, call: Call, id: str, inputs: Properties) -> Any:  # noqa: A002
        parts = self.parse_id(id)
        return self._find(call, parts["networkSecurityGroupId"], lambda rule: rule.id == parts["id"])

    def _find(self, call: Call, group: str, wanted: Any) -> Any:
        page: str | None = None
        while True:
            options = {"page": page} if page else {}
            answer = call_oci(
                call,
                f"Read {call.name}",
                partial(self.client.list_network_security_group_security_rules, group, **options),
            )
            for rule in answer.data:
                if wanted(rule):
                    return rule
            page = answer.headers.get("opc-next-page")
            if not page:
                return None

    def _update(self, call: Call, id: str, changed: Properties, new: Properties) -> Any:  # noqa: A002
        rule_id = self.parse_id(id)["id"]
        rule = to_model("core", "UpdateSecurityRuleDetails", {**_without_any_code(new), "id": rule_id})
        batch = models_of("core").UpdateNetworkSecurityGroupSecurityRulesDetails(security_rules=[rule])
        group = new["networkSecurityGroupId"]
        update = self.client.update_network_security_group_security_rules
        answer = call_oci(call, f"Update {call.name}", lambda: update(group, batch))
        return answer.data.security_rules[0]

    def delete(self, call: Call, id: str, outputs: Properties, inputs: Properties) -> None:  # noqa: A002
        try:
            self._while_in_use(call, lambda: self._delete(id, inputs))
        except ProviderError:
            if self._get(call, id, inputs) is not None:  # the API refuses to remove a missing rule
                raise

    def _delete(self, id: str, inputs: Properties) -> None:  # noqa: A002
        parts = self.parse_id(id)
        batch = models_of("core").RemoveNetworkSecurityGroupSecurityRulesDetails(security_rule_ids=[parts["id"]])
        self.client.remove_network_security_group_security_rules(parts["networkSecurityGroupId"], batch)


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
        if made and _BLOCKS in changed_keys(diff.changes) and not diff.replaces and not has_unknown(new[_BLOCKS]):
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
        wait_for_work_request(call, self._session().client("work_requests"), answer, "vcn", "IN_PROGRESS")

    def _edit(self, call: Call, id: str, new: Properties) -> dict[str, str] | None:  # noqa: A002
        """The edit that is still needed; None if an interrupted update made it. Raises if OCI would refuse it."""
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
        answer = call_oci(
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
                f"replace it and everything in it: {remedy_commands(call.urn, 'up', '--replace', call.urn)}.",
            )


def _lies_in(inner: str, blocks: Sequence[str]) -> bool:
    try:
        return any(IPv4Network(inner).subnet_of(IPv4Network(block)) for block in blocks)
    except ValueError:  # the cloud's own message for a malformed block is better
        return True
