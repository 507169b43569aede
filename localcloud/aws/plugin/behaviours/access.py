# SPDX-License-Identifier: Apache-2.0
"""Roles, managed policies and secrets, and the base of types that are identified by their names."""

from typing import Any

from components.platform.calls import Call, ProviderError
from components.platform.values import Properties
from components.s3 import code_of
from localcloud.aws.plugin.table import AwsResource

# AWS keeps at most this many versions of a policy.
_VERSIONS = 5


class NamedResource(AwsResource):
    """A type whose id is its name, also at an import."""

    def id_of(self, model: Any, inputs: Properties) -> str:
        return str(self.live(model).get("name") or inputs["name"])


class RoleResource(NamedResource):
    """A role. With `forceDetachPolicies`, its policies are detached before its deletion."""

    def delete(self, call: Call, id: str, outputs: Properties, inputs: Properties) -> None:  # noqa: A002
        if inputs.get("forceDetachPolicies") and self._get(call, id, inputs) is not None:
            role = {"RoleName": id}
            for policy in self.write(call, inputs, "ListAttachedRolePolicies", role)["AttachedPolicies"]:
                self.write(call, inputs, "DetachRolePolicy", {**role, "PolicyArn": policy["PolicyArn"]})
            for name in self.write(call, inputs, "ListRolePolicies", role)["PolicyNames"]:
                self.write(call, inputs, "DeleteRolePolicy", {**role, "PolicyName": name})
        super().delete(call, id, outputs, inputs)


class PolicyResource(AwsResource):
    """A managed policy. A change creates a version. The oldest version is deleted first, because AWS limits their
    number."""

    def _find_same_name(self, call: Call, inputs: Properties, mark: str) -> object:
        path = inputs.get("path") or "/"
        arn = f"arn:aws:iam::{self._session().account}:policy{path}{inputs['name']}"
        model = self._get(call, arn, inputs)
        return super()._find_same_name(call, {**inputs, "Arn": arn}, mark) if model else None

    def _update(self, call: Call, id: str, changed: Properties, new: Properties) -> None:  # noqa: A002
        if "policy" in changed:
            self._remove_versions(call, id, _VERSIONS - 2, new)
        super()._update(call, id, changed, new)

    def delete(self, call: Call, id: str, outputs: Properties, inputs: Properties) -> None:  # noqa: A002
        if self._get(call, id, inputs) is not None:
            self._remove_versions(call, id, 0, inputs)
        super().delete(call, id, outputs, inputs)

    def _remove_versions(self, call: Call, id: str, left: int, inputs: Properties) -> None:  # noqa: A002
        """Deletes the oldest versions that are not the default one, until `left` of them remain."""
        listed = self.write(call, inputs, "ListPolicyVersions", {"PolicyArn": id})["Versions"]
        others = sorted((one for one in listed if not one["IsDefaultVersion"]), key=lambda one: one["CreateDate"])
        for one in others[: max(0, len(others) - left)]:
            self.write(call, inputs, "DeletePolicyVersion", {"PolicyArn": id, "VersionId": one["VersionId"]})


_CURRENT = "AWSCURRENT"


class SecretResource(AwsResource):
    """A secret. Its deletion is scheduled for later, and its name stays taken until then."""

    def _create_once(self, call: Call, inputs: Properties) -> tuple[Any, bool]:
        try:
            return super()._create_once(call, inputs)
        except ProviderError as error:
            if code_of(error.__cause__) != "InvalidRequestException" or "deletion" not in str(error):
                raise
            name = inputs["name"]
            raise ProviderError(
                f"{call.name}: the secret {name} is scheduled for deletion; it keeps its name until then.",
                f"Restore it (`aws secretsmanager restore-secret --secret-id {name}`) and `pulumi import` it, or "
                "choose another name.",
            ) from error

    def id_of(self, model: Any, inputs: Properties) -> str:
        return str(model.get("ARN") or inputs["name"])

    def _delete(self, id: str, inputs: Properties) -> None:  # noqa: A002
        days = inputs.get("recoveryWindowInDays")
        how = {"ForceDeleteWithoutRecovery": True} if days == 0 else {"RecoveryWindowInDays": days or 30}
        self.ask(inputs, "DeleteSecret", {"SecretId": id, **how})


class VersionResource(AwsResource):
    """A version of a secret. The current version can be deleted only together with its secret."""

    def id_of(self, model: Any, inputs: Properties) -> str:
        return f"{inputs['secretId']}|{model['VersionId']}"

    def parse_id(self, id: str) -> Properties:  # noqa: A002
        secret, _, version = id.rpartition("|")
        return {"secretId": secret, "versionId": version} if secret else {}

    def _update(self, call: Call, id: str, changed: Properties, new: Properties) -> None:  # noqa: A002
        left = {key: value for key, value in changed.items() if key != "versionStages"}
        if "versionStages" in changed:
            self._stage(call, id, set(new.get("versionStages") or ()), new)
        super()._update(call, id, left, new)

    def _stage(self, call: Call, id: str, wanted: set[str], inputs: Properties) -> None:  # noqa: A002
        parts = self.parse_id(id)
        now = set((self._get(call, id, inputs) or {}).get("VersionStages") or ())
        for stage in sorted(now - wanted - {_CURRENT}):
            self._move(call, inputs, parts, stage, {"RemoveFromVersionId": parts["versionId"]})
        for stage in sorted(wanted - now):
            how = {"MoveToVersionId": parts["versionId"], **self._holder_of(call, inputs, stage)}
            self._move(call, inputs, parts, stage, how)

    def _holder_of(self, call: Call, inputs: Properties, stage: str) -> Properties:
        """The parameter with the version that has the stage now, which the API requires to move a stage."""
        listed = self.write(call, inputs, "ListSecretVersionIds", {"SecretId": inputs["secretId"]})["Versions"]
        holder = next((one["VersionId"] for one in listed if stage in one.get("VersionStages", ())), None)
        return {"RemoveFromVersionId": holder} if holder else {}

    def _move(self, call: Call, inputs: Properties, parts: Properties, stage: str, how: Properties) -> None:
        wanted = {"SecretId": parts["secretId"], "VersionStage": stage, **how}
        self.write(call, inputs, "UpdateSecretVersionStage", wanted)

    def _delete_and_wait(self, call: Call, id: str, known: Properties) -> None:  # noqa: A002
        if self._get(call, id, known) is not None:
            self._stage(call, id, set(), known)
