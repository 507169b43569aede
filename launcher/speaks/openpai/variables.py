# SPDX-License-Identifier: Apache-2.0
"""The variables of a task. What its job asked for are variables of the job, by the names that OpenPAI gives them:
PAI_TASK_ROLE_LIST, PAI_TASK_ROLE_TASK_COUNT_worker, and the ports of the first task of each role. The others follow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from launcher.compatibility import md5_hash
from launcher.document import Launch
from launcher.errors import LaunchError
from launcher.placeholders import Place

PROGRAMS = ()
PROGRAMS_FILE = ""
_ROLES, _COUNT, _PORTS = "PAI_TASK_ROLE_LIST", "PAI_TASK_ROLE_TASK_COUNT_", "PAI_PORT_LIST_"
_USER = "trainyard"


@dataclass(frozen=True)
class _TaskRole:
    """`short`: as the controller calls it. `ports`: label -> numbers, with commas between them."""

    name: str
    short: str
    addresses: Sequence[str]
    ports: Mapping[str, str]


def system_variables(launch: Launch, place: Place, environment: Mapping[str, str], folder: str) -> dict[str, str]:
    """The variables of this node's task. Tasks are numbered role by role, as nodes are."""
    roles = _spoken_task_roles(launch, place, environment)
    names = ",".join(role.name for role in roles)
    job, tasks, count = f"{_USER}~{launch.job}-{launch.name}-{launch.attempt}", str(launch.nodes), str(len(roles))
    found = {
        "PAI_FRAMEWORK_NAME": job,
        "PAI_JOB_NAME": job,
        "PAI_USER_NAME": _USER,
        "PAI_USERNAME": _USER,
        "PAI_DEFAULT_FS_URI": "",
        "PAI_VIRTUAL_CLUSTER": "default",
        "PAI_TASK_ROLE_COUNT": count,
        "PAI_TASK_ROLES_NUM": count,
        "PAI_JOB_TASK_ROLE_COUNT": count,
        _ROLES: names,
        "PAI_JOB_TASK_ROLE_LIST": names,
        "PAI_TASKS_NUM": tasks,
        "PAI_JOB_TASK_COUNT": tasks,
        "PAI_TASK_ROLE_INSTANCES": ",".join(
            f"{role.short}:{index}" for role in roles for index in range(len(role.addresses))
        ),
    }
    for role in roles:
        found[f"PAI_TASK_ROLE_{role.short}_HOST_LIST"] = ",".join(
            f"{address}:{_first_port(role, 'http')}" for address in role.addresses
        )
        for index, address in enumerate(role.addresses):
            found[f"PAI_HOST_IP_{role.short}_{index}"] = address
            for label, numbers in role.ports.items():
                found[f"{_PORTS}{role.short}_{index}_{label}"] = numbers
                found[f"PAI_{role.short}_{index}_{label}_PORT"] = numbers
    tasks_before = 0
    for role in roles:
        index = launch.rank - tasks_before
        if 0 <= index < len(role.addresses):
            found.update(_own_variables(role, index, job, place.address, environment))
        tasks_before += len(role.addresses)
    # What the job itself says stays.
    return {key: environment.get(key, value) for key, value in found.items()}


def wrap_script(words: Sequence[str]) -> list[str]:
    return list(words)


def _spoken_task_roles(launch: Launch, place: Place, environment: Mapping[str, str]) -> list[_TaskRole]:
    named = environment.get(_ROLES, "taskrole").split(",")
    roles, first = [], 0
    for name in named:
        text = environment.get(f"{_COUNT}{name}", str(launch.nodes) if len(named) == 1 else "1")
        if not (text.isascii() and text.isdigit()):
            raise LaunchError(f"{_COUNT}{name} is {text!a}, which is not a whole number: correct it in the job's `env`")
        short = "".join(letter for letter in name.lower() if letter.isascii() and letter.isalnum())
        count, prefix = int(text), f"{_PORTS}{short}_0_"
        ports = {key[len(prefix) :]: value for key, value in environment.items() if key.startswith(prefix)}
        roles.append(_TaskRole(name, short, place.addresses[first : first + count], ports))
        first += count
    if first != launch.nodes:
        raise LaunchError(
            f"{_ROLES} has {first} tasks, and the run has {launch.nodes} nodes: correct the job's `roles`"
        )
    return roles


def _first_port(role: _TaskRole, label: str) -> str:
    return role.ports.get(label, "").partition(",")[0]


def _own_variables(
    role: _TaskRole, index: int, job: str, address: str, environment: Mapping[str, str]
) -> dict[str, str]:
    digest = md5_hash()
    digest.update(job.encode())
    name = digest.hexdigest()
    found = {
        "PAI_CURRENT_TASK_ROLE_NAME": role.name,
        "PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX": str(index),
        "PAI_TASK_INDEX": str(index),
        "PAI_CURRENT_CONTAINER_IP": address,
        "PAI_CURRENT_CONTAINER_PORT": _first_port(role, "http"),
        "PAI_CONTAINER_HOST_IP": address,
        "PAI_CONTAINER_HOST_PORT": _first_port(role, "http"),
        "PAI_CONTAINER_SSH_PORT": _first_port(role, "ssh"),
        "PAI_CONTAINER_HOST_PORT_LIST": "".join(f"{label}:{numbers};" for label, numbers in role.ports.items()),
        "FC_FRAMEWORK_NAME": name,
        "FC_TASKROLE_NAME": role.short,
        "FC_TASK_INDEX": str(index),
        "FC_POD_NAME": f"{name}-{role.short}-{index}",
    }
    for label, numbers in role.ports.items():
        found[f"PAI_CONTAINER_HOST_{label}_PORT_LIST"] = numbers
    if environment.get(f"PAI_RESOURCE_{role.name}", "1").startswith("0,"):
        found["NVIDIA_VISIBLE_DEVICES"] = "none"
    return found
