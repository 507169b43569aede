# SPDX-License-Identifier: Apache-2.0
"""API operations as rows, and the calls that their handlers get."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from localcloud.oci import models
from localcloud.oci.access_decisions import AccessControl
from localcloud.oci.authentication import Caller, Credentials
from localcloud.oci.oci_errors import missing_parameter
from localcloud.oci.tenancy_store import StateStore
from localcloud.server.api_errors import cannot_parse_request
from localcloud.server.cloud import ServedCloud
from localcloud.server.http import CallInput, Reply


class RunHosts(Protocol):
    """The hosts of job runs, as the API uses them. `localcloud/hosts/run_hosts.py` implements it."""

    def submit(self, run: str) -> None: ...
    def cancel(self, run: str) -> None: ...
    def recover(self) -> None: ...
    def network_changed(self) -> None: ...
    async def stop(self) -> None: ...
    async def why_not_enforced(self) -> str: ...
    async def why_not_isolated(self) -> str: ...
    async def evidence(self, run_id: str) -> Mapping[str, Any]: ...


@dataclass(kw_only=True)
class OciCloud(ServedCloud):
    """The local cloud, with what OCI's operations need: the tenancy's state, its users and its job runs."""

    store: StateStore
    credentials: Credentials
    hosts: RunHosts = field(init=False)
    access: AccessControl = field(init=False)
    # The flows of running job runs that have been recorded in flow logs already.
    recorded_flows: dict[str, dict[tuple[Any, ...], int]] = field(default_factory=dict)

    @property
    def objects(self) -> Path:
        return self.home / "objects"

    async def evidence(self, machine: str) -> Mapping[str, Any]:
        """The firewalls' counts of a job run, or of another API's machine: up to now, or to its end."""
        hosts = next((one for one in self.other_hosts if one.has(machine)), self.hosts)
        return await hosts.evidence(machine)


@dataclass(frozen=True)
class ApiCall:
    """An authenticated call, for its handler."""

    cloud: OciCloud
    operation: ApiOperation
    input: CallInput
    principal: Caller
    after_commit: list[Callable[[], None]] = field(default_factory=list)

    @property
    def store(self) -> StateStore:
        return self.cloud.store

    @property
    def params(self) -> Mapping[str, str]:
        """The parameters of the path."""
        return self.input.params

    @property
    def query(self) -> Mapping[str, str]:
        return self.input.query

    @property
    def headers(self) -> Mapping[str, str]:
        return self.input.headers

    @property
    def if_match(self) -> str | None:
        return self.headers.get("if-match")

    def json(self) -> Any:
        try:
            return self.input.json
        except (ValueError, RecursionError):
            raise cannot_parse_request("the body is not JSON") from None

    def details(self) -> dict[str, Any]:
        """The body, validated by the operation's model."""
        return models.validate_body(self.operation.service, self.operation.details, self.json())

    def needed(self, name: str) -> str:
        """A required query parameter."""
        value = self.query.get(name)
        if not value:
            raise missing_parameter(name)
        return value


Handler = Callable[[ApiCall], Reply]


@dataclass(frozen=True)
class ApiOperation:
    """One row: OCI's name, method and path of an operation, and its handler."""

    name: str
    method: str
    path: str
    handler: Handler
    service: str = ""
    details: str = ""
    streams: bool = False

    @property
    def writes(self) -> bool:
        return self.method not in ("GET", "HEAD")
