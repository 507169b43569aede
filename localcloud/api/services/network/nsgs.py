# SPDX-License-Identifier: Apache-2.0
"""Network security groups, and the rules that live inside them."""

from __future__ import annotations

import secrets

from localcloud.api import clock, kinds, lifecycles
from localcloud.api.errors import invalid
from localcloud.api.http import Json, Reply
from localcloud.api.kinds import ResourceKind
from localcloud.api.operations import ApiCall
from localcloud.api.paging import plain_page
from localcloud.api.services.network.common import SERVICE, VERSION
from localcloud.api.services.network.security import check_rule
from localcloud.api.store import StoredResource

MAXIMUM_RULES = 120
# The group's rules. OCI's model lacks this field, so clients never see it.
_RULES = "rules"

NSG = ResourceKind(
    "network-security-group", "NetworkSecurityGroup", SERVICE, f"{VERSION}/networkSecurityGroups",
    "networkSecurityGroupId", lifecycles.NETWORK, parent_field="vcnId", references={"vcnId": "vcn"},
)  # fmt: skip


def list_rules(call: ApiCall) -> Reply:
    direction = call.query.get("direction")
    rules = _rules(kinds.find_living(NSG, call))
    wanted = [rule for rule in rules if direction in (None, rule["direction"])]
    page, headers = plain_page(wanted, call.query, MAXIMUM_RULES)
    return Reply(200, page, headers)


def add_rules(call: ApiCall) -> Reply:
    group = kinds.find_living(NSG, call)
    added = [
        _completed(call, {**rule, "id": secrets.token_hex(3).upper()})
        for rule in call.details().get("securityRules", [])
    ]
    rules = _rules(group) + added
    if len(rules) > MAXIMUM_RULES:
        raise invalid(f"a network security group has at most {MAXIMUM_RULES} rules")
    _keep(call, group, rules)
    return Reply(200, {"securityRules": added})


def update_rules(call: ApiCall) -> Reply:
    group = kinds.find_living(NSG, call)
    changed = {rule["id"]: _completed(call, rule) for rule in call.details().get("securityRules", [])}
    _require(group, list(changed))
    _keep(call, group, [changed.get(rule["id"], rule) for rule in _rules(group)])
    return Reply(200, {"securityRules": list(changed.values())})


def remove_rules(call: ApiCall) -> Reply:
    group = kinds.find_living(NSG, call)
    gone = call.details().get("securityRuleIds", [])
    _require(group, gone)
    _keep(call, group, [rule for rule in _rules(group) if rule["id"] not in gone])
    return Reply(204)


def list_vnics(call: ApiCall) -> Reply:
    kinds.find_living(NSG, call)
    return Reply(200, [])  # job runs are not members of groups, and nothing else here has VNICs


def _rules(group: StoredResource) -> list[Json]:
    return list(group.body.get(_RULES, []))


def _require(group: StoredResource, identifiers: list[str]) -> None:
    present = {rule["id"] for rule in _rules(group)}
    if unknown := [identifier for identifier in identifiers if identifier not in present]:
        raise invalid(f"the group has no rule {unknown[0]}")


def _keep(call: ApiCall, group: StoredResource, rules: list[Json]) -> None:
    call.store.put(group, body={**group.body, _RULES: rules})


def _completed(call: ApiCall, rule: Json) -> Json:
    end = "source" if rule["direction"] == "INGRESS" else "destination"
    if not rule.get(end):
        raise invalid(f"a rule for {rule['direction']} needs a {end}")
    check_rule(rule, end)
    if rule.get(f"{end}Type") == "NETWORK_SECURITY_GROUP":
        kinds.require_references(call, {end: NSG.name}, rule)
    defaults = {f"{end}Type": "CIDR_BLOCK", "isStateless": False, "isValid": True}
    return {**defaults, **rule, "timeCreated": clock.rfc3339(clock.now())}
