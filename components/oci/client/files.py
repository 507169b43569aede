# SPDX-License-Identifier: Apache-2.0
"""OCI's object storage, as `components.platform.files` asks for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from components.oci.client.bucket import BucketStore
from components.oci.client.caller import compartment_of_caller, session_of_caller
from components.oci.client.calls import attempt
from components.oci.client.session import Session
from components.oci.client.status_place import parse_folder
from components.oci.stack import OciStack
from components.platform.calls import Call, call_of
from components.platform.errors import ProviderError
from components.platform.file_errors import TransferError
from components.platform.files import StoreRequest


@dataclass(frozen=True)
class OciOpener:
    """`components.platform.files.StoreOpener`, by the same credentials as every client of OCI's."""

    request: StoreRequest
    session: Session
    call: Call

    def bucket(self, name: str) -> BucketStore:
        client = self.session.client("object_storage")
        namespace = str(attempt(self.call, "Ask for the namespace", lambda: client.get_namespace().data))
        return self._store(namespace, name)

    def folder(self, address: str) -> tuple[BucketStore, str]:
        place = parse_folder(address)
        if place is None:
            raise TransferError(f"`{address}` is not a folder in a bucket of OCI's")
        return self._store(place.namespace, place.bucket), place.prefix

    def _store(self, namespace: str, bucket: str) -> BucketStore:
        return BucketStore(self.session, self.call, namespace, bucket, partial(self._explain, bucket))

    def _explain(self, bucket: str, error: ProviderError) -> ProviderError:
        from components.oci.client.refusals import Caller  # knows all about statements; most calls are not refused

        request = self.request
        here = compartment_of_caller(request.config, request.cloud)
        stack = request.stack if isinstance(request.stack, OciStack) else None
        caller = Caller(_name(self.session), request.purpose, bucket, here, stack, request.cloud is not None)
        return caller.explain(error)


def make(request: StoreRequest) -> OciOpener:
    session = session_of_caller(request.config, request.cloud, request.profile)
    return OciOpener(request, session, call_of(request.purpose, request.tell))


def _name(session: Session) -> str:
    credentials: Mapping[str, Any] = session.credentials
    who = f"the user {credentials['user']}" if credentials.get("user") else "the holder of a session token"
    return f"{who} (profile `{session.profile or 'DEFAULT'}`)"
