# SPDX-License-Identifier: Apache-2.0
"""Vault: a secret is never deleted at once. Its deletion is scheduled."""

from typing import Any

from components.platform.calls import Call, ProviderError
from components.platform.values import Properties
from localcloud.oci.plugin.convert import models_of
from localcloud.oci.plugin.table import OciResource


class SecretResource(OciResource):
    """A secret. Its deletion is scheduled, and its name stays taken until then."""

    def _create(self, call: Call, inputs: Properties, details: Any, token: str) -> Any:
        try:
            made = super()._create(call, inputs, details, token)
        except Exception as error:
            going = self._going(inputs) if getattr(error, "status", None) == 409 else None
            if going is None:
                raise
            raise _still_there(call, going) from error
        # A repeated request gets the secret of the first one, which may have been deleted since.
        if self._get(call, made.id, inputs) is None:
            raise _still_there(call, made.id)
        return made

    def _going(self, inputs: Properties) -> str | None:
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


def _still_there(call: Call, secret: str) -> ProviderError:
    return ProviderError(
        f"{call.name}: the secret {secret} has this name and is scheduled for deletion; it keeps the name until then.",
        f"Cancel its deletion (`oci vault secret cancel-secret-deletion --secret-id {secret}`) and `pulumi import` "
        "it, or choose another name.",
    )
