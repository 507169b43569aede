# SPDX-License-Identifier: Apache-2.0
"""Data Science, Logging and Vault: jobs with their code, and what their runs use: compute targets, logs and secrets."""

from pathlib import Path
from typing import Any

from components.oci.client.calls import call_oci
from components.platform.calls import Call, ProviderError
from components.platform.values import Properties
from localcloud.oci.plugin.convert import models_of, pulumi_fields
from localcloud.oci.plugin.table import OciResource, wait_for_work_request


class JobResource(OciResource):
    """A job. Its code is a local file, which is uploaded right after the job is created."""

    def _details(self, kind: str, inputs: Properties) -> Any:
        path = inputs.get("jobArtifact")
        if kind == "Create" and path and not Path(path).is_file():
            raise ProviderError(
                f"The job's artifact {path} is not a file.", "Build it first, or correct `jobArtifact`."
            )
        return super()._details(kind, inputs)

    def outputs_of(self, model: Any, inputs: Properties) -> Properties:
        return {**super().outputs_of(model, inputs), "emptyArtifact": not inputs.get("jobArtifact")}

    def after_create(self, call: Call, id: str, model: Any, inputs: Properties) -> Any:  # noqa: A002
        if inputs.get("jobArtifact"):
            call_oci(call, "Upload the job's artifact", lambda: self._upload(id, inputs))
        return super().after_create(call, id, model, inputs)

    def _upload(self, id: str, inputs: Properties) -> None:  # noqa: A002
        path = Path(inputs["jobArtifact"])
        disposition = inputs.get("artifactContentDisposition") or f"attachment; filename={path.name}"
        try:
            with path.open("rb") as file:
                self.client.create_job_artifact(id, file, content_disposition=disposition)
        except Exception as error:
            # An artifact is uploaded once. An interrupted attempt may have done it already.
            if getattr(error, "status", None) != 409:
                raise


class DeletedByWorkRequest(OciResource):
    """A resource whose deletion is waited for by its work request, as its creation is; that of a log group is not."""

    def _delete_and_wait(self, call: Call, id: str, known: Properties) -> None:  # noqa: A002
        answers: list[Any] = []
        path = self.call_path(id, known)
        self._while_in_use(call, lambda: answers.append(self._operation("delete")(*path)))
        for answer in answers:
            wait_for_work_request(call, self.client, answer, self.row.entity, "DELETED")
        self._wait_gone(call, id, known)


class LogResource(DeletedByWorkRequest):
    """A log. It can move to another group. Like Oracle's provider, the plugin then sends all fields again."""

    def update(self, call: Call, id: str, outputs: Properties, old: Properties, new: Properties) -> Properties:  # noqa: A002
        if old["logGroupId"] != new["logGroupId"]:
            # An attempt that was killed may have moved it already.
            if self._get(call, id, new) is None:
                target = models_of("logging").ChangeLogLogGroupDetails(target_log_group_id=new["logGroupId"])
                move = self.client.change_log_log_group
                self._write(call, f"Move {call.name}", move, *self.call_path(id, old), target)
            sent = pulumi_fields("logging", "UpdateLogDetails")
            old = {key: value for key, value in old.items() if key not in sent} | {"logGroupId": new["logGroupId"]}
        return super().update(call, id, outputs, old, new)


class ComputeTargetResource(DeletedByWorkRequest):
    def from_api(self, outputs: Properties) -> Properties:
        # Pulumi shows it as a list.
        system = outputs.get("computeTargetSystemData")
        return {**outputs, "computeTargetSystemData": [system]} if system else outputs


class SecretResource(OciResource):
    """A secret. Its deletion is scheduled, and its name stays taken until then."""

    def _create(self, call: Call, inputs: Properties, details: Any, token: str) -> Any:
        try:
            made = super()._create(call, inputs, details, token)
        except Exception as error:
            going = self._scheduled_for_deletion(inputs) if getattr(error, "status", None) == 409 else None
            if going is None:
                raise
            raise _name_held_error(call, going) from error
        # A repeated request gets the secret of the first one, which may have been deleted since.
        if self._get(call, made.id, inputs) is None:
            raise _name_held_error(call, made.id)
        return made

    def _scheduled_for_deletion(self, inputs: Properties) -> str | None:
        named = {"vault_id": inputs["vaultId"], "name": inputs["secretName"]}
        secrets = self.client.list_secrets(inputs["compartmentId"], **named).data
        going = self.row.gone | {"SCHEDULING_DELETION"}
        return next((one.id for one in secrets if one.lifecycle_state in going), None)

    def _delete(self, id: str, inputs: Properties) -> None:  # noqa: A002
        try:
            self.client.schedule_secret_deletion(id, models_of("vault").ScheduleSecretDeletionDetails())
        except Exception as error:
            # A deletion cannot be scheduled twice. Unlike other conflicts, waiting does not help.
            refused = getattr(error, "status", None) == 409
            if not refused or self.client.get_secret(id).data.lifecycle_state not in self.row.gone:
                raise


def _name_held_error(call: Call, secret: str) -> ProviderError:
    return ProviderError(
        f"{call.name}: the secret {secret} has this name and is scheduled for deletion; it keeps the name until then.",
        f"Cancel its deletion (`oci vault secret cancel-secret-deletion --secret-id {secret}`) and `pulumi import` "
        "it, or choose another name.",
    )
