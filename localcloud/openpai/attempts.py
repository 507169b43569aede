# SPDX-License-Identifier: Apache-2.0
"""Makes task attempts for the hosts from a job: each with its command, environment variables, image and storages."""

from __future__ import annotations

import hashlib
import json
from collections import ChainMap
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from components.openpai.protocol import task_command
from localcloud.openpai import accounts
from localcloud.openpai.framework import Framework, Task
from localcloud.openpai.job_store import JobStore
from localcloud.openpai.policies import JobPolicy
from localcloud.openpai.storages import task_storages
from localcloud.openpai.tasks import TaskAttempt, TaskImage, TaskStorage

# The range of ports that the cluster reserves for tasks.
FIRST_PORT, LAST_PORT = 15_000, 39_999
# The labels of ports that every task has.
OWN_LABELS = ("ssh", "http")
MOST_PORTS = 1000


def logs_folder(home: Path) -> Path:
    return accounts.openpai_folder(home) / "logs"


def attempt_log_folder(home: Path, attempt: str) -> Path:
    return logs_folder(home) / attempt


class AttemptMaker:
    """Makes task attempts. Caches the protocols of jobs that have not ended, with their secrets."""

    def __init__(self, home: Path, store: JobStore) -> None:
        self._home, self._store = home, store
        self._protocols: dict[str, Mapping[str, Any]] = {}

    def protocol(self, name: str) -> Mapping[str, Any]:
        if name not in self._protocols:
            self._protocols[name] = json.loads(self._store.text(name, "protocol"))
        return self._protocols[name]

    def forget(self, name: str) -> None:
        self._protocols.pop(name, None)

    def attempts(self, framework: Framework, tasks: Sequence[Task]) -> list[Callable[[], TaskAttempt]]:
        """Returns a function for each task that makes its attempt. The caller calls them one by one: all together would
        take long for a large job."""
        protocol, user = self.protocol(framework.name), framework.name.partition("~")[0]
        common = {
            **job_variables(user, framework, protocol),
            **peer_variables(framework.tasks.values(), framework.policy),
        }
        roles = {role.name for role in framework.policy.roles}
        commands = {role: task_command(protocol, role) for role in roles}
        images = {role: _task_image(protocol, role) for role in roles}
        storages = task_storages(self._home, protocol, user)
        return [
            partial(self._attempt, framework, task, common, commands[role], images[role], storages)
            for task in tasks
            for role in (task.role.name,)
        ]

    def _attempt(
        self, framework: Framework, task: Task, common: dict[str, str], command: str, image: TaskImage,
        storages: tuple[TaskStorage, ...],
    ) -> TaskAttempt:  # fmt: skip
        protocol, last, role = self.protocol(framework.name), task.last, task.role
        user, _, job = framework.name.partition("~")
        logs = attempt_log_folder(self._home, last.id)
        logs.mkdir(parents=True, exist_ok=True)
        return TaskAttempt(
            id=last.id, user=user, job=job, job_attempt=last.job_attempt, role=role.name, index=task.index,
            attempt=last.number, address=last.address, ports=last.ports, image=image, command=command,
            environment=task_variables(framework, task, common), protocol=protocol, storages=storages,
            logs=logs, memory_mb=role.memory_mb,
        )  # fmt: skip


def _task_image(protocol: Mapping[str, Any], role: str) -> TaskImage:
    name = protocol["taskRoles"][role]["dockerImage"]
    row = next(each for each in protocol["prerequisites"] if (each["type"], each["name"]) == ("dockerimage", name))
    return TaskImage(row["uri"])


def encode_framework_name(framework: str) -> str:
    """The controller's name of a job, which is part of names of files and objects."""
    return hashlib.md5(framework.encode(), usedforsecurity=False).hexdigest()


def assigned_ports(protocol: Mapping[str, Any], role: str, attempt: str) -> dict[str, tuple[int, ...]]:
    """The ports of a task attempt by label, all different. An attempt always gets the same ones."""
    wanted = dict(protocol["taskRoles"][role]["resourcePerInstance"].get("ports") or {})
    for label in OWN_LABELS:
        wanted[label] = max(1, wanted.get(label, 1))
    span, taken = LAST_PORT - FIRST_PORT + 1, set[int]()
    ports: dict[str, tuple[int, ...]] = {}
    for label, count in wanted.items():
        numbers = []
        for index in range(int(count)):
            digest = hashlib.sha256(f"{attempt} {label} {index}".encode()).digest()
            port = int.from_bytes(digest[:8], "big") % span
            while port in taken:
                port = (port + 1) % span
            taken.add(port)
            numbers.append(FIRST_PORT + port)
        ports[label] = tuple(numbers)
    return ports


def job_variables(user: str, framework: Framework, protocol: Mapping[str, Any]) -> dict[str, str]:
    """The variables that are the same for all tasks of a job."""
    policy, roles = framework.policy, protocol["taskRoles"]
    names = ",".join(role.name for role in policy.roles)
    variables = {
        "PAI_FRAMEWORK_NAME": framework.name, "PAI_JOB_NAME": framework.name, "PAI_USER_NAME": user,
        "PAI_USERNAME": user, "PAI_DEFAULT_FS_URI": "", "PAI_VIRTUAL_CLUSTER": policy.virtual_cluster,
        "PAI_TASK_ROLE_COUNT": str(len(roles)), "PAI_TASK_ROLE_LIST": names,
        "PAI_TASK_ROLES_NUM": str(len(roles)), "PAI_JOB_TASK_ROLE_COUNT": str(len(roles)),
        "PAI_JOB_TASK_ROLE_LIST": names, "PAI_TASKS_NUM": str(policy.tasks),
        "PAI_JOB_TASK_COUNT": str(policy.tasks),
    }  # fmt: skip
    for role in policy.roles:
        shared = (roles[role.name].get("extraContainerOptions") or {}).get("shmMB") or 0
        variables |= {
            f"PAI_TASK_ROLE_TASK_COUNT_{role.name}": str(role.instances),
            f"PAI_RESOURCE_{role.name}": f"{role.gpus},{role.cpus},{role.memory_mb},{shared}",
            f"PAI_MIN_FAILED_TASK_COUNT_{role.name}": str(role.minimum_failed),
            f"PAI_MIN_SUCCEEDED_TASK_COUNT_{role.name}": str(role.minimum_succeeded),
        }
    return variables


def peer_variables(tasks: Iterable[Task], policy: JobPolicy) -> dict[str, str]:
    """The addresses of those tasks of the job that have been placed."""
    variables: dict[str, str] = {}
    hosts: dict[str, list[str]] = {role.key: [] for role in policy.roles}
    for task in tasks:
        last, name = task.last, f"{task.role.key}_{task.index}"
        if not last.address:
            continue
        variables[f"PAI_HOST_IP_{name}"] = last.address
        hosts[task.role.key].append(f"{last.address}:{last.ports['http'][0]}")
        for label, numbers in last.ports.items():
            variables[f"PAI_PORT_LIST_{name}_{label}"] = variables[f"PAI_{name}_{label}_PORT"] = _join_numbers(numbers)
    for key, addresses in hosts.items():
        variables[f"PAI_TASK_ROLE_{key}_HOST_LIST"] = ",".join(addresses)
    variables["PAI_TASK_ROLE_INSTANCES"] = ",".join(
        f"{role.key}:{index}" for role in policy.roles for index in range(role.instances)
    )
    return variables


def task_variables(framework: Framework, task: Task, common: dict[str, str]) -> Mapping[str, str]:
    """All variables of a task. Tasks share the common ones in memory, because a large job has many."""
    last, attempt, name = task.last, framework.attempt, encode_framework_name(framework.name)
    http, ssh = str(last.ports["http"][0]), str(last.ports["ssh"][0])
    own = {
        "PAI_CURRENT_TASK_ROLE_NAME": task.role.name, "PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX": str(task.index),
        "PAI_TASK_INDEX": str(task.index), "PAI_CURRENT_CONTAINER_IP": last.address,
        "PAI_CURRENT_CONTAINER_PORT": http, "PAI_CONTAINER_HOST_IP": last.address, "PAI_CONTAINER_HOST_PORT": http,
        "PAI_CONTAINER_SSH_PORT": ssh,
        "PAI_CONTAINER_HOST_PORT_LIST": "".join(
            f"{label}:{_join_numbers(numbers)};" for label, numbers in last.ports.items()
        ),
        "GANG_ALLOCATION": "true" if framework.policy.gang else "false",
        "FC_FRAMEWORK_NAMESPACE": "default", "FC_FRAMEWORK_NAME": name, "FC_TASKROLE_NAME": task.role.key,
        "FC_TASK_INDEX": str(task.index), "FC_CONFIGMAP_NAME": f"{name}-attempt",
        "FC_POD_NAME": f"{name}-{task.role.key}-{task.index}", "FC_FRAMEWORK_UID": framework.uid,
        "FC_FRAMEWORK_ATTEMPT_ID": str(attempt.number),
        "FC_FRAMEWORK_ATTEMPT_INSTANCE_UID": f"{attempt.number}_{attempt.uid}", "FC_CONFIGMAP_UID": attempt.uid,
        "FC_TASK_UID": task.uid, "FC_TASK_ATTEMPT_ID": str(last.number), "FC_POD_UID": last.id,
        "FC_TASK_ATTEMPT_INSTANCE_UID": f"{last.number}_{last.id}",
    }  # fmt: skip
    for label, numbers in last.ports.items():
        own[f"PAI_CONTAINER_HOST_{label}_PORT_LIST"] = _join_numbers(numbers)
    if task.role.gpus == 0:
        own["NVIDIA_VISIBLE_DEVICES"] = "none"
    return ChainMap(own, common)


def _join_numbers(numbers: Iterable[int]) -> str:
    return ",".join(str(number) for number in numbers)
