# SPDX-License-Identifier: Apache-2.0
"""Roles and managed policies."""

from components.platform.calls import Call
from components.platform.values import Properties
from localcloud.aws.plugin.behaviours.names import NamedResource
from localcloud.aws.plugin.table import AwsResource

# AWS keeps at most this many versions of a policy.
_VERSIONS = 5


class RoleResource(NamedResource):
    """A role. With `forceDetachPolicies` its policies are detached before it is deleted."""

    def delete(self, call: Call, id: str, outputs: Properties, inputs: Properties) -> None:  # noqa: A002
        if inputs.get("forceDetachPolicies") and self._get(call, id, inputs) is not None:
            role = {"RoleName": id}
            for policy in self.write(call, inputs, "ListAttachedRolePolicies", role)["AttachedPolicies"]:
                self.write(call, inputs, "DetachRolePolicy", {**role, "PolicyArn": policy["PolicyArn"]})
            for name in self.write(call, inputs, "ListRolePolicies", role)["PolicyNames"]:
                self.write(call, inputs, "DeleteRolePolicy", {**role, "PolicyName": name})
        super().delete(call, id, outputs, inputs)


class PolicyResource(AwsResource):
    """A managed policy. A change makes a new version, for which the oldest one is deleted. All are deleted with it."""

    def _of_same_name(self, call: Call, inputs: Properties, mark: str) -> object:
        path = inputs.get("path") or "/"
        arn = f"arn:aws:iam::{self._session().account}:policy{path}{inputs['name']}"
        model = self._get(call, arn, inputs)
        return super()._of_same_name(call, {**inputs, "Arn": arn}, mark) if model else None

    def _update(self, call: Call, id: str, changed: Properties, new: Properties) -> None:  # noqa: A002
        if "policy" in changed:
            self._remove_versions(call, id, _VERSIONS - 2, new)
        super()._update(call, id, changed, new)

    def delete(self, call: Call, id: str, outputs: Properties, inputs: Properties) -> None:  # noqa: A002
        if self._get(call, id, inputs) is not None:
            self._remove_versions(call, id, 0, inputs)
        super().delete(call, id, outputs, inputs)

    def _remove_versions(self, call: Call, id: str, kept: int, inputs: Properties) -> None:  # noqa: A002
        """Removes the oldest versions that are not in force, except for `kept` ones."""
        listed = self.write(call, inputs, "ListPolicyVersions", {"PolicyArn": id})["Versions"]
        others = sorted((one for one in listed if not one["IsDefaultVersion"]), key=lambda one: one["CreateDate"])
        for one in others[: max(0, len(others) - kept)]:
            self.write(call, inputs, "DeletePolicyVersion", {"PolicyArn": id, "VersionId": one["VersionId"]})
