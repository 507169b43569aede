# SPDX-License-Identifier: Apache-2.0
"""Core networking: security rules, in lists and in groups."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from components.oci.client.calls import attempt
from components.platform.calls import Call, ProviderError
from components.platform.values import Properties
from localcloud.oci.plugin.convert import fields, from_model, models_of, to_model
from localcloud.oci.plugin.table import OciResource


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
        options = {key: _nested_ports(rule[key]) for key in self._OPTIONS if rule.get(key)}
        return _without_any_code({"stateless": False, **rule, **options})

    def _rule_from_api(self, rule: Mapping[str, Any]) -> Properties:
        return {**rule, **{key: _flat_ports(rule[key]) for key in self._OPTIONS if rule.get(key)}}

    def _details(self, kind: str, inputs: Properties) -> Any:
        # The API requires both lists, so an empty one is sent if the program has none.
        return super()._details(kind, {**{key: [] for key in self._RULES if kind == "Create"}, **inputs})


def _nested_ports(options: Mapping[str, Any]) -> Properties:
    nested = {key: value for key, value in options.items() if key not in ("min", "max")}
    low, high = options.get("min"), options.get("max")
    if low is not None or high is not None:
        nested["destinationPortRange"] = {"min": high if low is None else low, "max": low if high is None else high}
    return nested


def _flat_ports(options: Mapping[str, Any]) -> Properties:
    flat = {key: value for key, value in options.items() if key != "destinationPortRange"}
    return {**flat, **(options.get("destinationPortRange") or {})}


def _without_any_code(rule: Properties) -> Properties:
    """Terraform writes "any ICMP code" as -1, the API by leaving it out."""
    icmp = rule.get("icmpOptions")
    if icmp and icmp.get("code") == -1:
        return {**rule, "icmpOptions": {key: value for key, value in icmp.items() if key != "code"}}
    return rule


class GroupRuleResource(OciResource):
    """One rule of a network security group. In the API a rule exists only inside its group."""

    def inputs_of_api(self) -> frozenset[str]:
        return frozenset(fields("core", "AddSecurityRuleDetails")) | {"networkSecurityGroupId"}

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
            answer = attempt(
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
        answer = attempt(call, f"Update {call.name}", lambda: update(group, batch))
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
