# SPDX-License-Identifier: Apache-2.0
"""Asks the tenancy one question at a time, once: who waits for an answer at a terminal tries again himself."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from components.oci.client.calls import is_missing_in_oci, list_oci_pages, oci_refusal
from components.oci.client.live import GONE
from components.oci.client.session import Session
from components.platform.calls import ProviderError

_OF_LIBRARIES = ("oci", "cryptography", "requests", "urllib3")


class TenancyReader:
    def __init__(self, session: Session) -> None:
        self.session = session

    def respond(self, what: str, client: str, operation: str, *place: str, **more: Any) -> Any:
        """The SDK's response, with its headers. Raises ProviderError."""
        try:
            return getattr(self.session.client(client), operation)(*place, **more)
        except ProviderError:
            raise
        except Exception as error:
            if not any(base.__module__.partition(".")[0] in _OF_LIBRARIES for base in type(error).__mro__):
                raise
            try:
                refusal = oci_refusal(what, error)
            except Exception:
                # Such as a key that the SDK cannot use. Its text may have more than one line.
                refusal = ProviderError(f"{what}: {str(error).partition(chr(10))[0]}")
            # Without the id of the request: several checks may be refused for one reason, which is said once.
            raise ProviderError(refusal.cause.partition(" [opc-request-id")[0], refusal.remedy) from error

    def read(self, what: str, client: str, operation: str, *place: str, **more: Any) -> Any:
        return self.respond(what, client, operation, *place, **more).data

    def read_if_there(self, what: str, client: str, operation: str, *place: str) -> Any:
        """None if it does not exist, or the caller may not see it: the cloud's answer is the same."""
        try:
            found = self.read(what, client, operation, *place)
        except ProviderError as error:
            if error.__cause__ is None or not is_missing_in_oci(error.__cause__):
                raise
            return None
        return None if getattr(found, "lifecycle_state", None) in GONE else found

    def rows(self, what: str, client: str, operation: str, *place: str, **more: Any) -> list[Any]:
        def page(**options: Any) -> Any:
            return self.respond(what, client, operation, *place, **more, **options)

        return [row for row in list_oci_pages(page) if getattr(row, "lifecycle_state", None) not in GONE]

    @cached_property
    def namespace(self) -> str:
        return str(self.read("Read the namespace of Object Storage", "object_storage", "get_namespace"))

    @property
    def user(self) -> str:
        """The OCID of the caller. Empty for a session token or another principal."""
        return str(self.session.credentials.get("user") or "") if self.session.signer is None else ""
