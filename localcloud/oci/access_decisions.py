# SPDX-License-Identifier: Apache-2.0
"""Decides by the policies in force whether a principal may do something, and records each decision.

This module knows nothing of API calls.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from components.oci.iam.evaluate import time_variables
from components.oci.iam.explain import explain_refusal
from components.oci.iam.judge import (
    AccessDecision,
    AttachedPolicy,
    Compartments,
    CompiledPolicies,
    Membership,
    Principal,
    Target,
    compile_policies,
    judge_request,
)
from components.oci.iam.matching import MatchableResource as Member
from components.oci.iam.matching import matches_rule, parse_rule
from components.oci.iam.parse import parse_statement
from components.oci.iam.permissions import find_operation as needs_of
from components.oci.iam.printing import to_text
from localcloud.oci import tenancy
from localcloud.oci.authentication import Caller
from localcloud.oci.tenancy import groups_of_user
from localcloud.oci.tenancy_store import StateStore, StoredResource
from localcloud.server import http
from localcloud.server.owned_rows import OwnedRows

_SERVICE = Caller("service datascience", "datascience", tenancy.TENANCY, resource_kind="service")
# When a change takes effect, and the value until then. OCI's models have no such field, so clients never see it.
LATER = "inForce"
log = logging.getLogger("localcloud")
# The rows of the decision log: enough for days of training. Older ones are dropped and counted.
MOST_ROWS = 20_000


@dataclass
class _Decision:
    number: int
    first: float
    last: float
    times: int
    operation: str
    principal: Principal
    permissions: tuple[str, ...]
    target: Target
    verdict: AccessDecision


class DecisionLog:
    """The access decisions, the newest last. It has no calls of administrators, because these need no policies.

    Each row has everything that is needed to evaluate the call again under other statements. Calls that differ only in
    their time share one row with a count. Otherwise nodes that poll would fill the log. If there are too many rows, the
    principal with the most of them loses its oldest one.
    """

    def __init__(self, most: int = MOST_ROWS) -> None:
        self._rows = OwnedRows[_Decision](most)
        self._number = 0

    @property
    def forgotten(self) -> int:
        """The number of rows that were dropped."""
        return self._rows.forgotten

    def record(
        self,
        operation: str,
        principal: Principal,
        permissions: tuple[str, ...],
        target: Target,
        verdict: AccessDecision,
    ) -> None:
        """Records one decision."""
        self._number += 1
        moment = http.current_moment()
        # The key contains groups and statements, so that after a change of these the call gets another row.
        by = tuple((one.permission, one.policy, one.statement) for one in verdict.by)
        groups = tuple(one.ocid for one in (*principal.groups, *principal.dynamic_groups))
        variables = tuple(sorted(target.variables.items()))
        key = (operation, groups, permissions, target.compartment, variables, by)
        owner = principal.ocid or principal.name
        row = self._rows.pop(owner, key) or _Decision(
            0, moment, moment, 0, operation, principal, permissions, target, verdict
        )
        row.number, row.last, row.times = self._number, moment, row.times + 1
        self._rows.put(owner, key, row)

    def since(self, number: int) -> list[dict[str, Any]]:
        """The rows after this number, which is the `id` of an earlier row."""
        later = (row for row in self._rows if row.number > number)
        return [_render_decision(row) for row in sorted(later, key=lambda row: row.number)]


def _render_decision(row: _Decision) -> dict[str, Any]:
    return {
        "id": row.number,
        "first": http.format_rfc3339(row.first),
        "time": http.format_rfc3339(row.last),
        "times": row.times,
        "operation": row.operation,
        "principal": {
            "type": row.principal.type,
            "id": row.principal.ocid,
            "name": row.principal.name,
            "compartment": row.principal.compartment,
            "groups": _group_references(row.principal.groups),
            "dynamicGroups": _group_references(row.principal.dynamic_groups),
        },
        "target": {"compartment": row.target.compartment, "variables": dict(row.target.variables)},
        "permissions": list(row.permissions),
        "allowed": row.verdict.allowed,
        "by": [
            {"permission": one.permission, "policy": one.policy, "statement": to_text(one.statement)}
            for one in row.verdict.by
        ],
        "missing": list(row.verdict.missing),
    }


def _group_references(rows: Iterable[Membership]) -> list[dict[str, str]]:
    return [{"id": row.ocid, "name": row.name, "domain": row.domain} for row in rows]


@dataclass
class AccessControl:
    """The policies and dynamic groups of a tenancy, compiled when first needed after a change."""

    store: StateStore
    decisions: DecisionLog = field(default_factory=DecisionLog)
    _policies: CompiledPolicies | None = None
    _members: dict[tuple[str, str], Principal] | None = None
    _good_until: float = math.inf

    def forget(self) -> None:
        """Discards the compiled policies and groups."""
        self._policies = self._members = None
        self._good_until = math.inf

    def _refresh(self) -> None:
        if http.current_moment() >= self._good_until:
            self.forget()

    def policies(self) -> CompiledPolicies:
        self._refresh()
        if self._policies is None:
            self._policies = compile_policies(
                (
                    AttachedPolicy(
                        row.name,
                        row.compartment,
                        tuple(parse_statement(text) for text in self._value_in_force(row, "statements")),
                    )
                    for row in self.store.live("policy")
                ),
                read_compartments(self.store),
            )
        return self._policies

    def _value_in_force(self, row: StoredResource, field: str) -> Any:
        """The value of a field that is in force. A recent change may not have taken effect yet."""
        since, before = row.body.get(LATER, (0.0, None))
        if since <= http.current_moment():
            return row.body[field]
        self._good_until = min(self._good_until, since)
        return before

    def subject(self, principal: Caller) -> Principal:
        """The principal with its groups, for the evaluation of policies."""
        self._refresh()
        if self._members is None:
            self._members = {}
        resource = self.store.get(principal.id) if principal.resource_kind not in ("", "service") else None
        key = (principal.id, resource.etag if resource else "")  # a move or new tags may change its groups
        if key not in self._members:
            self._members[key] = self._subject(principal, resource)
        return self._members[key]

    def allows(self, principal: Caller, operation: str, permissions: tuple[str, ...], target: Target) -> bool:
        """Whether the policies in force grant these permissions."""
        return not self.missing(principal, operation, permissions, target)

    def missing(
        self, principal: Caller, operation: str, permissions: tuple[str, ...], target: Target
    ) -> frozenset[str]:
        """The permissions that the policies in force do not grant. The log says which statement would grant them."""
        subject, policies = self.subject(principal), self.policies()
        request = _request_variables(operation)
        verdict = judge_request(policies, subject, permissions, target, request)
        self.decisions.record(operation, subject, permissions, target, verdict)
        if not verdict.allowed:
            refusal = explain_refusal(policies, subject, verdict.missing, target, request)
            log.warning("refused %s: %s", operation, refusal.text().replace("\n", "; "))
        return frozenset(verdict.missing)

    def would_allow(self, principal: Caller, operation: str, permissions: Iterable[str], target: Target) -> bool:
        """Like `allows`, but without a row in the decision log: for the items of a list."""
        return judge_request(
            self.policies(), self.subject(principal), permissions, target, _request_variables(operation)
        ).allowed

    def _subject(self, principal: Caller, resource: StoredResource | None) -> Principal:
        if principal.resource_kind == "service":
            return Principal("service", principal.id, principal.name)
        if not principal.resource_kind:
            groups = tuple(Membership(group.id, group.name) for group in groups_of_user(self.store, principal.id))
            return Principal("user", principal.id, principal.name, groups=groups)
        if resource is None or not resource.live:
            return Principal(principal.resource_kind, principal.id, principal.name, principal.compartment)
        tags: Mapping[str, Mapping[str, object]] = resource.body.get("definedTags", {})
        named = {f"{space}.{key}": str(value) for space, pairs in tags.items() for key, value in pairs.items()}
        member = Member(principal.id, resource.compartment, named)
        dynamic = tuple(
            Membership(row.id, row.name)
            for row in self.store.live("dynamic-group")
            if (rule := self._value_in_force(row, "matchingRule")) and matches_rule(parse_rule(rule), member)
        )
        return Principal(principal.resource_kind, principal.id, principal.name, resource.compartment, (), dynamic)


def _request_variables(operation: str) -> dict[str, str]:
    moment = datetime.fromtimestamp(http.current_moment(), UTC)
    return {"request.operation": operation, "request.region": tenancy.REGION_KEY, **time_variables(moment)}


def read_compartments(store: StateStore) -> Compartments:
    rows = store.live("compartment")
    return Compartments(tenancy.TENANCY, {row.id: row.compartment for row in rows}, {row.id: row.name for row in rows})


def may_attach(access: AccessControl, subnet: StoredResource) -> bool:
    """Whether the Data Science service may put the nodes of runs into a subnet."""
    needs = needs_of("service datascience: attach VNICs").permissions
    return access.allows(_SERVICE, "attach VNICs", tuple(sorted(needs)), Target(subnet.compartment))


def may_write_log(access: AccessControl, principal: Caller, target_log: StoredResource) -> bool:
    """Whether a run's output may go into a log: the host writes it in the run's name."""
    target = Target(target_log.compartment, {"target.loggroup.id": target_log.parent, "target.log.id": target_log.id})
    return access.allows(principal, "write log", tuple(sorted(needs_of("run: write log").permissions)), target)


def may_mount(access: AccessControl, principal: Caller, bucket: StoredResource) -> bool:
    """Whether a run may read a bucket that its job mounts. The host reads it in the run's name."""
    target = Target(bucket.compartment, {"target.bucket.name": bucket.name})
    needs = needs_of("run: read a mounted bucket").permissions
    return access.allows(principal, "mount a bucket", tuple(sorted(needs)), target)


def may_pull(access: AccessControl, principal: Caller, image: StoredResource) -> bool:
    """Whether a run may pull an image. The host pulls it in the run's name."""
    target = Target(image.compartment, {"target.repo.name": image.body["repositoryName"]})
    return access.allows(principal, "docker pull", tuple(sorted(needs_of("docker pull").permissions)), target)
