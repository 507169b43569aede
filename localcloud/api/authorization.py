# SPDX-License-Identifier: Apache-2.0
"""Which permissions a call needs, on what; access.py says whether its caller has them."""

from __future__ import annotations

import logging
from typing import Any

from iam.errors import StatementError
from iam.judge import Target
from iam.permissions import operation as needs_of
from localcloud.api import clock, targets, tenancy
from localcloud.api.access import LATER
from localcloud.api.errors import not_found
from localcloud.api.http import Json
from localcloud.api.ocids import fixed_ocid
from localcloud.api.operations import Call

# Calls of our own that stand for one the catalog names.
_STANDS_FOR = {"PushContainerImage": "docker push"}
_ADMINISTRATORS = fixed_ocid("group", tenancy.ADMINISTRATORS)
# What all may do to themselves, whatever the policies say.
_ONES_OWN = frozenset({"GetUser", "ListApiKeys", "UploadApiKey", "DeleteApiKey"})
log = logging.getLogger("localcloud")


def authorize(call: Call) -> None:
    """Raises NotAuthorizedOrNotFound unless the policies in force allow the call; the log says what was missing."""
    subject = call.cloud.access.subject(call.principal)
    if any(group.ocid == _ADMINISTRATORS for group in subject.groups) or _is_ones_own(call):
        return
    try:
        needs = needs_of(_name(call))
    except StatementError:
        log.warning("refused %s: the catalog does not know which permission it needs", call.operation.name)
        raise not_found() from None
    for target in targets.of(call):
        _require(call, needs.permissions, target)
    for permissions, target in targets.further(call, needs):
        _require(call, permissions, target)


def _is_ones_own(call: Call) -> bool:
    return call.operation.name in _ONES_OWN and call.params["userId"] == call.principal.id


def _name(call: Call) -> str:
    """What the catalog calls it: to delete a version for good takes more than to delete an object."""
    if call.operation.name == "DeleteObject" and call.request.query.get("versionId"):
        return "DeleteObjectVersion"
    return _STANDS_FOR.get(call.operation.name, call.operation.name)


def _require(call: Call, permissions: frozenset[str], target: Target) -> None:
    if not call.cloud.access.allows(call.principal, call.operation.name, tuple(sorted(permissions)), target):
        raise not_found()


def in_force_later(call: Call, body: Json, before: Any) -> Json:
    """The body of a policy or dynamic group; where a fault asks for it, it counts only after a while."""
    seconds = call.cloud.faults.seconds("access", call.operation.name)
    return {**body, LATER: (clock.now() + seconds, before) if seconds else (0.0, None)}
