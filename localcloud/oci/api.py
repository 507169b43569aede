# SPDX-License-Identifier: Apache-2.0
"""OCI's API on the endpoint of a local cloud: authenticates requests, finds their operations, and dispatches calls.

Requests of container tools go to the registry.
"""

from __future__ import annotations

import hashlib
import logging
import uuid
from dataclasses import replace
from types import MappingProxyType

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

from localcloud.oci import registry, sdk
from localcloud.oci.authentication import METHODS_WITH_BODY, check_body_digest, verify_signature
from localcloud.oci.call_dispatch import admit_call, dispatch_call
from localcloud.oci.oci_errors import not_authenticated, not_implemented
from localcloud.oci.operations import ApiCall, ApiOperation, OciCloud
from localcloud.server import faults
from localcloud.server.api_errors import ApiError
from localcloud.server.cloud import MARKER_PATH
from localcloud.server.http import Body, CallInput, Reply, Request, plain_refusal, require_single_headers
from localcloud.server.routing import Router

# Some clients do not escape the slashes of this parameter.
TAIL = "objectName"
log = logging.getLogger("localcloud")


class OciApi:
    """Takes every request that no other API takes, because nothing marks a request as one for OCI."""

    def __init__(self, cloud: OciCloud, router: Router[ApiOperation]) -> None:
        self._cloud = cloud
        self._router = router

    def takes(self, request: Request) -> bool:
        return True

    async def answer(self, request: Request, body: Body) -> tuple[Reply, str]:
        route = self._router.find(request.method, request.path)
        require_single_headers(request)
        if registry.is_registry(request):
            return await registry.answer_registry_request(self._cloud, request, body.to_file)
        call, admitted = await self._build_call(request, body, route)
        return await self._answer(call, admitted), f"{call.operation.name} by {call.principal.name}"

    def refused(self, request: Request, error: ApiError) -> Reply:
        return plain_refusal(error)

    def operation(self, request: Request) -> str:
        try:
            route = self._router.find(request.method, request.path)
        except ApiError:  # its path cannot be decoded
            return ""
        return route[0].name if route else ""

    async def _answer(self, call: ApiCall, admitted: int | None) -> Reply:
        # Faults never strike our own operations. Otherwise nobody could clear a fault.
        faulty = not call.operation.path.startswith(MARKER_PATH)
        try:
            if faulty:
                await faults.strike_before(self._cloud.faults, call.operation.name)
            reply = dispatch_call(call, admitted)
            if reply.later:
                reply = await reply.later()
            if faulty:
                faults.strike_after(self._cloud.faults, call.operation.name)
            return reply
        finally:
            if call.input.upload:  # a handler that keeps the upload has moved it
                call.input.upload.path.unlink(missing_ok=True)

    async def _build_call(
        self, request: Request, body: Body, route: tuple[ApiOperation, dict[str, str]] | None
    ) -> tuple[ApiCall, int | None]:
        """The call with its body. A call with a streamed body is authorized before the body is received."""
        streams = route is not None and route[0].streams
        key_id = verify_signature(request.method, request.target, request.headers, self._find_key, streams)
        credential = self._cloud.credentials.find(key_id)
        if credential is None:
            raise not_authenticated("this cloud does not know the key")
        if route is None:
            operation = sdk.operation_name(request.method, request.path)
            log.warning("not implemented: %s", operation)
            raise not_implemented(operation)
        given = CallInput(MappingProxyType(route[1]), request.query, request.headers, request.target)
        call = ApiCall(self._cloud, route[0], given, credential.principal)
        admitted = admit_call(call) if streams else None
        return replace(call, input=await self._receive_body(request.method, given, body, streams)), admitted

    def _find_key(self, key_id: str) -> RSAPublicKey | None:
        credential = self._cloud.credentials.find(key_id)
        return credential.key if credential else None

    async def _receive_body(self, method: str, given: CallInput, body: Body, streams: bool) -> CallInput:
        if streams:
            upload = await body.to_file(self._cloud.objects / "incoming" / uuid.uuid4().hex)
            try:
                check_body_digest(given.headers, bytes.fromhex(upload.sha256))
            except ApiError:
                upload.path.unlink()
                raise
            return replace(given, upload=upload)
        content = await body.to_memory()
        if method not in METHODS_WITH_BODY:
            return given  # no signature covers the body of such a request, so it is ignored
        check_body_digest(given.headers, hashlib.sha256(content).digest())
        return replace(given, body=content)
