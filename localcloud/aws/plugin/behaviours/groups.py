# SPDX-License-Identifier: Apache-2.0
"""Security groups, and their rules as separate resources."""

from collections.abc import Iterable, Mapping
from typing import Any

from components.aws.types.aws_resource_type import ATTEMPT_TAG
from components.platform.calls import Call, InputFailure, ProviderError
from components.platform.values import Properties
from components.s3 import code_of
from localcloud.aws.plugin.session import all_tags, tags_for
from localcloud.aws.plugin.shapes import ParameterBuilder
from localcloud.aws.plugin.table import AwsResource

_ANYWHERE = {"IpProtocol": "-1", "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}
_SIDES = {"ingress": "Ingress", "egress": "Egress"}
# The ports in a change of a rule for all protocols.
_ALL_PORTS = {"fromPort": -1, "toPort": -1}
# Pulumi's list of peers in a rule -> the API's list, and the member of an element.
_PEERS = {
    "cidrBlocks": ("IpRanges", "CidrIp"),
    "ipv6CidrBlocks": ("Ipv6Ranges", "CidrIpv6"),
    "prefixListIds": ("PrefixListIds", "PrefixListId"),
    "securityGroups": ("UserIdGroupPairs", "GroupId"),
}

# The peers of a rule that is a separate resource, in the same order.
_RULE_PEERS = ("cidrIpv4", "cidrIpv6", "prefixListId", "referencedSecurityGroupId")


class SecurityGroupResource(AwsResource):
    """A security group with a list of rules for each direction. If the program leaves out a list, its rules stay
    unchanged. Only the rule for all egress, which AWS adds to a new group, is removed."""

    def validate_inputs(self, inputs: Properties) -> list[InputFailure]:
        builder = ParameterBuilder()
        shape = self.shape("AuthorizeSecurityGroupIngress").members["IpPermissions"].member
        for side in _SIDES:
            for number, rule in enumerate(_as_list(inputs.get(side))):
                if isinstance(rule, Mapping):
                    self._validate_rule(builder, shape, rule, f"{side}[{number}]")
        return [*super().validate_inputs(inputs), *builder.failures]

    def _validate_rule(self, builder: ParameterBuilder, shape: Any, rule: Mapping[str, Any], path: str) -> None:
        plain = {"protocol": "IpProtocol", "fromPort": "FromPort", "toPort": "ToPort"}
        for key, value in rule.items():
            if key in plain:
                builder.parameters(shape.members[plain[key]], value, f"{path}.{key}")
            elif key not in (*_PEERS, "self", "description"):
                builder.failures.append(InputFailure(f"{path}.{key}", "there is no such property"))

    def live(self, model: Properties) -> Properties:
        both = {"ingress": model.get("IpPermissions"), "egress": model.get("IpPermissionsEgress")}
        own = str(model.get("GroupId"))
        rules = {
            side: [_rule_of_permission(one, own) for one in listed]
            for side, listed in both.items()
            if listed is not None
        }
        return {**super().live(model), **rules}

    def after_create(self, call: Call, id: str, model: Any, inputs: Properties) -> Any:  # noqa: A002
        live = self._get(call, id, inputs) or {}
        for one in live.get("IpPermissionsEgress") or ():
            if one.get("IpProtocol") == "-1" and _rule_of_permission(one, id).get("cidrBlocks") == ["0.0.0.0/0"]:
                self.write(call, inputs, "RevokeSecurityGroupEgress", {"GroupId": id, "IpPermissions": [_ANYWHERE]})
        for side in _SIDES:
            self._authorize(call, id, side, _as_list(inputs.get(side)), inputs)
        return self._get(call, id, inputs)

    def _update(self, call: Call, id: str, changed: Properties, new: Properties) -> None:  # noqa: A002
        live = self._get(call, id, new) or {}
        permissions = {"ingress": live.get("IpPermissions"), "egress": live.get("IpPermissionsEgress")}
        for side in _SIDES.keys() & changed.keys():
            if present := permissions[side]:
                # Without the fields that only responses have.
                plain = [{key: value for key, value in one.items() if value not in (None, [])} for one in present]
                for one in plain:
                    pairs = one.get("UserIdGroupPairs", ())
                    one |= {"UserIdGroupPairs": [{"GroupId": pair["GroupId"]} for pair in pairs]} if pairs else {}
                gone = {"GroupId": id, "IpPermissions": plain}
                self.write(call, new, f"RevokeSecurityGroup{_SIDES[side]}", gone)
            self._authorize(call, id, side, _as_list(new.get(side)), new)
        super()._update(call, id, changed, new)

    def delete(self, call: Call, id: str, outputs: Properties, inputs: Properties) -> None:  # noqa: A002
        if inputs.get("revokeRulesOnDelete"):
            self._revoke_all(call, id, inputs)
        super().delete(call, id, outputs, inputs)

    def _revoke_all(self, call: Call, id: str, inputs: Properties) -> None:  # noqa: A002
        of_group = {"Filters": [{"Name": "group-id", "Values": [id]}]}
        rules = self.write(call, inputs, "DescribeSecurityGroupRules", of_group)["SecurityGroupRules"]
        for side in _SIDES.values():
            gone = [one["SecurityGroupRuleId"] for one in rules if one.get("IsEgress", False) == (side == "Egress")]
            if gone:
                self.write(call, inputs, f"RevokeSecurityGroup{side}", {"GroupId": id, "SecurityGroupRuleIds": gone})

    def _authorize(self, call: Call, id: str, side: str, rules: Iterable[Any], inputs: Properties) -> None:  # noqa: A002
        permissions = [_permission_of_rule(rule, id) for rule in rules]
        if permissions:
            wanted = {"GroupId": id, "IpPermissions": permissions}
            try:
                self.write(call, inputs, f"AuthorizeSecurityGroup{_SIDES[side]}", wanted)
            except ProviderError as error:  # a killed attempt may have added the rules
                if code_of(error.__cause__) != "InvalidPermission.Duplicate":
                    raise


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _permission_of_rule(rule: Mapping[str, Any], own: str) -> Properties:
    """A rule of the program as a permission of the API."""
    made: Properties = {"IpProtocol": str(rule.get("protocol", "-1"))}
    if made["IpProtocol"] != "-1":
        made |= {"FromPort": rule.get("fromPort"), "ToPort": rule.get("toPort")}
    description = {"Description": rule["description"]} if rule.get("description") else {}
    for key, (member, name) in _PEERS.items():
        peers = [*(rule.get(key) or ()), *([own] if key == "securityGroups" and rule.get("self") else ())]
        if peers:
            made[member] = [{name: peer, **description} for peer in peers]
    return made


def _rule_of_permission(permission: Mapping[str, Any], own: str) -> Properties:
    """A permission of the API as a rule of the program."""
    made: Properties = {
        "protocol": permission.get("IpProtocol"),
        "fromPort": _permission_port(permission, "FromPort"),
        "toPort": _permission_port(permission, "ToPort"),
    }
    for key, (member, name) in _PEERS.items():
        items = permission.get(member) or ()
        peers = [item[name] for item in items if item.get(name) and item[name] != own]
        made |= {key: peers} if peers else {}
        made |= {"self": True} if any(item.get(name) == own for item in items) else {}
        described = [item["Description"] for item in items if item.get("Description")]
        made |= {"description": described[0]} if described else {}
    return made


def _permission_port(permission: Mapping[str, Any], name: str) -> int:
    everything = permission.get("IpProtocol") == "-1"
    return 0 if everything or permission.get(name) is None else int(permission[name])


class GroupRuleResource(AwsResource):
    """A rule of a security group. The API creates it as a permission, and changes it as a rule."""

    _PARTS = (
        "ipProtocol", "fromPort", "toPort", "cidrIpv4", "cidrIpv6", "prefixListId", "referencedSecurityGroupId",
        "description",
    )  # fmt: skip

    def replaced_too(self, old: Properties, new: Properties) -> frozenset[str]:
        """Replaces a rule if its peer becomes one of another kind, because AWS does not change that in place."""
        before, after = ([name for name in _RULE_PEERS if each.get(name) is not None] for each in (old, new))
        return frozenset() if before == after else frozenset(_RULE_PEERS)

    def validate_inputs(self, inputs: Properties) -> list[InputFailure]:
        builder = ParameterBuilder(self.row.renamed)
        builder.parameters(self._request, {key: inputs[key] for key in self._PARTS if key in inputs})
        needed = [key for key in ("securityGroupId", "ipProtocol") if inputs.get(key) is None]
        return [*builder.failures, *(InputFailure(key, f"{self.token} needs this property.") for key in needed)]

    @property
    def _request(self) -> Any:
        update = self.shape("ModifySecurityGroupRules").members["SecurityGroupRules"].member
        return update.members["SecurityGroupRule"]

    def creation(self, builder: ParameterBuilder, inputs: Properties) -> Properties:
        peers = zip(_PEERS, (inputs.get(name) for name in _RULE_PEERS), strict=True)
        given = {key: [peer] for key, peer in peers if peer is not None}
        plain = {key: inputs.get(key) for key in ("fromPort", "toPort", "description")}
        rule = {"protocol": inputs.get("ipProtocol"), **plain, **given}
        permission = {key: value for key, value in _permission_of_rule(rule, "").items() if value is not None}
        return {"GroupId": inputs.get("securityGroupId"), "IpPermissions": [permission]}

    def _create(self, call: Call, inputs: Properties, mark: str) -> Any:
        tags = {**all_tags(self._session().default_tags, inputs), ATTEMPT_TAG: mark}
        shape = self.shape(self.row.create.operation)
        wanted = {**self.creation(ParameterBuilder(), inputs), **tags_for(shape, self.row.kind, tags)}
        answer = self.write(call, inputs, self.row.create.operation, wanted)
        return answer["SecurityGroupRules"][0]

    def _find_same_name(self, call: Call, inputs: Properties, mark: str) -> Any:
        return None

    def after_create(self, call: Call, id: str, model: Any, inputs: Properties) -> Any:  # noqa: A002
        return self._get(call, id, inputs) or model

    def _update(self, call: Call, id: str, changed: Properties, new: Properties) -> None:  # noqa: A002
        if changed.keys() & set(self._PARTS):
            parts = {key: new[key] for key in self._PARTS if new.get(key) is not None}
            parts = {**_ALL_PORTS, **parts} if parts["ipProtocol"] == "-1" else parts
            rule = ParameterBuilder(self.row.renamed).parameters(self._request, parts)
            rules = [{"SecurityGroupRuleId": id, "SecurityGroupRule": rule}]
            wanted = {"GroupId": new["securityGroupId"], "SecurityGroupRules": rules}
            self.write(call, new, "ModifySecurityGroupRules", wanted)
        super()._update(call, id, {key: value for key, value in changed.items() if key not in self._PARTS}, new)
