# SPDX-License-Identifier: Apache-2.0
"""SimulatePrincipalPolicy: evaluates what a user, group or role may do by its own policies."""

from __future__ import annotations

from typing import Any

from components.aws.iam.decide import AwsPrincipal, InForce, Need, decide_aws_call
from components.aws.iam.documents import PolicyDocument, statements_of
from localcloud.aws.access.policies import attached_policies, in_force
from localcloud.aws.account import ACCOUNT
from localcloud.aws.additions.outside import Operations

_LACKING = ("ResourcePolicy", "PermissionsBoundaryPolicyInputList", "PolicyExclusionList", "ResourceHandlingOption",
            "CallerArn")  # fmt: skip


class PolicySimulation(Operations):
    """Operations of IAM."""

    def simulate_principal_policy(self) -> Any:
        from moto.core.responses import ActionResult

        for name in _LACKING:
            if self._get_param(name) is not None:
                raise NotImplementedError(f"The parameter '{name}' for it")
        entries = self._get_param("ContextEntries", [])
        keys = {str(one["ContextKeyName"]): tuple(map(str, one.get("ContextKeyValues", []))) for one in entries}
        more = [
            PolicyDocument("PolicyInputList", statements_of(text)) for text in self._get_param("PolicyInputList", [])
        ]
        rows = [
            _simulate_need(self._get_param("PolicySourceArn"), Need(action, resource, keys), more)
            for action in self._get_param("ActionNames", [])
            for resource in self._get_param("ResourceArns", ["*"])
        ]
        return ActionResult({"EvaluationResults": rows, "IsTruncated": False})


def _simulate_need(source: str, need: Need, more: list[PolicyDocument]) -> dict[str, Any]:
    principal, policies = _policies_of_source(source, need)
    policies = InForce((*policies.identity, *more), policies.boundaries, (), policies.unreadable)
    decision = decide_aws_call(need, principal, policies)
    denied = "explicitDeny" if "explicit deny" in decision.why else "implicitDeny"
    return {
        "EvalActionName": need.action, "EvalResourceName": need.resource,
        "EvalDecision": "allowed" if decision.allowed else denied,
        "MatchedStatements": [{"SourcePolicyId": name} for name, _ in decision.by], "MissingContextValues": [],
    }  # fmt: skip


def _policies_of_source(source: str, need: Need) -> tuple[AwsPrincipal, InForce]:
    """The principal with this ARN, and its policies. As on AWS, policies of resources do not count."""
    from moto.iam.exceptions import NotFoundException
    from moto.iam.models import iam_backends

    backend = iam_backends[ACCOUNT]["aws"]
    for user in backend.users.values():
        if user.arn == source:
            principal = AwsPrincipal(source, user=user.name, id=user.id)
            return principal, in_force(principal, need)
    for role in backend.roles.values():
        if role.arn == source:
            principal = AwsPrincipal(source, role=role.name, role_arn=source)
            return principal, in_force(principal, need)
    for group in backend.groups.values():
        if group.arn == source:
            read = tuple(PolicyDocument(name, statements_of(text)) for name, text in attached_policies(group))
            return AwsPrincipal(source), InForce(read)
    raise NotFoundException(f"Specified entity {source} does not exist.")
