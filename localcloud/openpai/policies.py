# SPDX-License-Identifier: Apache-2.0
"""How jobs and tasks are retried and completed, by the rules of OpenPAI's controller. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from components.openpai.protocol import controller_name, javascript_text, protocol_obstacles
from components.openpai.protocol.text import exit_of

SUCCEEDED = 0
STOP_ASKED = -210  # of a job that its user stopped
ATTEMPT_OVER = -220  # of a task that was stopped because its job's attempt is over


@dataclass(frozen=True)
class RetryPolicy:
    """A retry policy. `fancy`: transient failures are retried and not counted, permanent ones are not retried. `most`:
    the limit for others; -1: no limit, -2: no limit, and retries after success too."""

    fancy: bool
    most: int


@dataclass(frozen=True)
class Retry:
    """Whether another attempt follows, and whether that retry is counted."""

    again: bool
    counted: bool = False


def decide_retry(policy: RetryPolicy, counted: int, code: int) -> Retry:
    """Decides whether an attempt that ended with this code is retried. `counted`: the retries counted so far."""
    kind = exit_of(code).kind if code else ""
    if policy.fancy and kind == "transient":
        return Retry(True)
    if policy.fancy and kind == "permanent":
        return Retry(False)
    failed = code != SUCCEEDED
    again = policy.most == -2 or (failed and (policy.most == -1 or counted < policy.most))
    return Retry(again, again)


@dataclass(frozen=True)
class RolePolicy:
    """A task role. `name`: its name in the job; `key`: the controller's name of it. A minimum of -1 never completes the
    job."""

    name: str
    key: str
    instances: int
    minimum_failed: int
    minimum_succeeded: int
    retry: RetryPolicy
    gpus: int
    cpus: int
    memory_mb: int


@dataclass(frozen=True)
class Refusal:
    """The end of a job that the REST server has accepted, but that Kubernetes does not start."""

    code: int
    details: str


@dataclass(frozen=True)
class JobPolicy:
    """The controller's view of a job."""

    roles: tuple[RolePolicy, ...]
    retry: RetryPolicy
    gang: bool
    virtual_cluster: str
    refusal: Refusal | None = None

    @property
    def tasks(self) -> int:
        return sum(role.instances for role in self.roles)

    @property
    def gpus(self) -> int:
        return sum(role.gpus * role.instances for role in self.roles)


def build_job_policy(protocol: Mapping[str, Any]) -> JobPolicy:
    """The policies of a valid job, with OpenPAI's defaults."""
    gang = (protocol.get("extras") or {}).get("gangAllocation") is not False
    most = protocol.get("jobRetryCount") or 0
    roles = tuple(_role_policy(name, row, gang) for name, row in protocol["taskRoles"].items())
    cluster = (protocol.get("defaults") or {}).get("virtualCluster")
    name = "default" if cluster is None else javascript_text(cluster)
    first = min(protocol_obstacles(protocol), key=lambda each: each.code, default=None)
    return JobPolicy(
        roles, RetryPolicy(most != -2, most), gang, name, None if first is None else Refusal(first.code, str(first))
    )


def _role_policy(name: str, row: Mapping[str, Any], gang: bool) -> RolePolicy:
    instances = row.get("instances") or 1
    completion, resources = row.get("completion") or {}, row["resourcePerInstance"]
    # The tasks of a gang are not retried one by one, only together with the whole job.
    own = RetryPolicy(False, 0) if gang else RetryPolicy(True, row.get("taskRetryCount") or 0)
    return RolePolicy(
        name, controller_name(name), instances, completion.get("minFailedInstances") or 1,
        completion.get("minSucceededInstances") or instances, own,
        int(resources.get("gpu") or 0), int(resources["cpu"]), int(resources["memoryMB"]),
    )  # fmt: skip
