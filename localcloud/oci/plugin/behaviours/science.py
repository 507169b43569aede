# SPDX-License-Identifier: Apache-2.0
"""Data Science: jobs with their code, and compute targets, whose changes are asynchronous."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from components.oci.client.calls import attempt
from components.platform.calls import Call, ProviderError
from components.platform.values import Properties
from localcloud.oci.plugin.table import OciResource
from localcloud.oci.plugin.work_requests import finished


class JobResource(OciResource):
    """A job. Its code is a local file, which is uploaded right after the job is created."""

    def _details(self, kind: str, inputs: Properties) -> Any:
        path = inputs.get("jobArtifact")
        if kind == "Create" and path and not Path(path).is_file():
            raise ProviderError(
                f"The job's artifact {path} is not a file.", "Build it first, or correct `jobArtifact`."
            )
        return super()._details(kind, inputs)

    def after_create(self, call: Call, id: str, model: Any, inputs: Properties) -> Any:  # noqa: A002
        if inputs.get("jobArtifact"):
            attempt(call, "Upload the job's artifact", lambda: self._upload(id, inputs))
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


class ComputeTargetResource(OciResource):
    """A compute target. All changes are work requests. As Oracle's provider, it does not wait for that of a move."""

    def from_api(self, outputs: Properties) -> Properties:
        # Pulumi shows it as a list.
        system = outputs.get("computeTargetSystemData")
        return {**outputs, "computeTargetSystemData": [system]} if system else outputs

    def _create(self, call: Call, inputs: Properties, details: Any, token: str) -> Any:
        answer = self._operation("create")(details, opc_retry_token=token)
        return self._get(call, finished(call, self.client, answer, self.row.entity, "CREATED"), inputs)

    def _write(self, call: Call, what: str, operation: Callable[..., Any], *arguments: Any) -> Any:
        answer = super()._write(call, what, operation, *arguments)
        if not operation.__name__.startswith("change_"):
            finished(call, self.client, answer, self.row.entity, "UPDATED")

    def delete(self, call: Call, id: str, outputs: Properties, inputs: Properties) -> None:  # noqa: A002
        answers: list[Any] = []
        self._while_in_use(call, lambda: answers.append(self._operation("delete")(id)))
        for answer in answers:
            finished(call, self.client, answer, self.row.entity, "DELETED")
        self._wait_gone(call, id, {**outputs, **inputs})
