# SPDX-License-Identifier: Apache-2.0
"""SimulatePrincipalPolicy: evaluates what a user, group or role may do by its own policies."""

from __future__ import annotations

from typing import Any

from components.aws.iam.decide import AwsPrincipal, InForce, Need, decide_aws_call
from components.aws.iam.documents import PolicyDocument, statements_of
from localcloud.aws.access.policies import attached_policies, in_force
from localcloud.aws.additions.outside import Operations, action_result
from localcloud.aws.aws_errors import aws_refusal
from localcloud.aws.moto_state import moto_backend

_LACKING = ("ResourcePolicy", "PermissionsBoundaryPolicyInputList", "PolicyExclusionList", "ResourceHandlingOption",
            "CallerArn")  # fmt: skip


class PolicySimulation(Operations):
    """Operations of IAM."""

    def simulate_principal_policy(self) -> Any:
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
        return action_result({"EvaluationResults": rows, "IsTruncated": False})


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
    backend = moto_backend("iam")
    principals = {user.arn: AwsPrincipal(source, user=user.name, id=user.id) for user in backend.users.values()}
    principals |= {role.arn: AwsPrincipal(source, role=role.name, role_arn=source) for role in backend.roles.values()}
    if principal := principals.get(source):
        return principal, in_force(principal, need)
    for group in backend.groups.values():
        if group.arn == source:
            read = tuple(PolicyDocument(name, statements_of(text)) for name, text in attached_policies(group))
            return AwsPrincipal(source), InForce(read)
    raise aws_refusal("entity", arn=source)
