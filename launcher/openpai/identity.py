# SPDX-License-Identifier: Apache-2.0
"""A task of an OpenPAI job."""

from __future__ import annotations

from collections.abc import Mapping

from launcher import exits
from launcher.errors import LaunchError
from launcher.peers import PeerRequest, gather_addresses
from launcher.platforms import Identity

VARIABLES: Mapping[str, str] = {}
_ROLE, _INDEX = "PAI_CURRENT_TASK_ROLE_NAME", "PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX"
# OpenPAI's controller tells each container its job as `<user>~<name>`, and the number of the job's attempt.
_JOB, _ATTEMPT = "PAI_JOB_NAME", "FC_FRAMEWORK_ATTEMPT_ID"
# A job's name has up to 255 letters. The last ones distinguish jobs, and a folder's name has room for this many.
_LETTERS = 60
# OpenPAI retries a job or a task by the kind of its code. It calls these codes transient (retried without limit) and
# permanent (never retried). They are all its known codes below 220, and stand for signals.
_TRANSIENT, _PERMANENT = frozenset({130, 131, 137, 143}), frozenset({132, 135, 136, 141})
# How many starts a machine of the cluster that cannot train costs at most.
_STARTS_ELSEWHERE = 2
_UNKNOWN_CODE, _PERMANENT_CODE = 1, 132


class NodeIdentity(Identity):
    """The identity of a task, from its environment."""

    def rank(self) -> int:
        """The task's number, counted role by role in the document's order."""
        name, index = self.environment.get(_ROLE), self.environment.get(_INDEX, "")
        first = 0
        for role in self.document["roles"]:
            if role["name"] == name and index.isdigit():
                return first + int(index)
            first += int(role["replicas"])
        raise LaunchError(f"{_ROLE} and {_INDEX} do not name a task of this run: start it as an OpenPAI job")

    def start(self, rank: int, nodes: int) -> str:
        """A name from the job's name and the number of its attempt. OpenPAI never reuses a job's name."""
        return start_of_attempt(self.environment.get(_JOB, ""), self.environment.get(_ATTEMPT, ""))

    def ports(self, label: str, role: str, index: int) -> tuple[int, ...]:
        """The ports that OpenPAI reserved. It chooses each one by itself, so there may be gaps between them."""
        name = ports_variable(label, role, index)
        words = [word.strip() for word in self.environment.get(name, "").split(",") if word.strip()]
        if not all(word.isdigit() and 0 < int(word) < 1 << 16 for word in words):
            raise LaunchError(f"{name} is {self.environment[name]!a}: OpenPAI sets it to port numbers")
        return tuple(map(int, words))

    def address(self) -> str:
        """The address of the host, whose network the task shares."""
        role, index = (self.environment.get(name, "") for name in (_ROLE, _INDEX))
        return self.environment.get(host_variable(role, index), "")

    @property
    def starts_nodes_again(self) -> bool:
        """OpenPAI retries the tasks of a gang only together, with the whole job."""
        return not self.document["gang"]

    @property
    def may_start_elsewhere(self) -> bool:
        """OpenPAI starts a failed job again, but not for ever because of a bad machine."""
        attempt = self.environment.get(_ATTEMPT, "")
        return attempt.isdigit() and int(attempt) < _STARTS_ELSEWHERE

    def exit_code(self, code: int) -> int:
        """Makes OpenPAI see the same kind of failure in a script's exit code as other platforms do."""
        kind = exits.failure_kind(code)
        if kind == exits.PERMANENT and code not in _PERMANENT:
            return _PERMANENT_CODE
        if kind == exits.UNKNOWN and code in _TRANSIENT | _PERMANENT:
            return _UNKNOWN_CODE
        return code


def start_of_attempt(job: str, attempt: str) -> str:
    """The name of an attempt of a job. Its two parts are known to OpenPAI's REST server, too."""
    name = job.rpartition("~")[2][-_LETTERS:].lstrip("-_")
    return "-".join(filter(None, (name, attempt))) if name else ""


def host_variable(role: str, index: object) -> str:
    """The variable with the address of a task's host."""
    return f"PAI_HOST_IP_{_in_controller(role)}_{index}"


def ports_variable(label: str, role: str, index: object) -> str:
    """The variable with a task's ports of one label. Labels of OpenPAI have no hyphens."""
    return f"PAI_PORT_LIST_{_in_controller(role)}_{index}_{label.replace('-', '_')}"


def _in_controller(role: str) -> str:
    """OpenPAI's controller keeps lowercase letters and digits of a role's name only."""
    return "".join(letter for letter in role.lower() if letter.isascii() and letter.isalnum())


def find_peer_addresses(request: PeerRequest) -> dict[int, str]:
    """Reads the addresses from the environment. Usually no node has to wait for another."""
    launch, variables = request.launch, request.environment
    names = [host_variable(role.name, index) for role in launch.roles for index in range(role.replicas)]
    missing = [name for name in names if not variables.get(name)]
    own, alone = launch.identity.address(), launch.identity.starts_nodes_again
    if alone and request.board_client is not None and own:
        # This node knows all addresses, but nodes that began earlier may wait for its arrival.
        request.board_client.arrive(request.generation, own)
    if not missing:
        return {rank: variables[name] for rank, name in enumerate(names)}
    if not alone or request.board_client is None or not own:
        raise LaunchError(f"{missing[0]} is not set: OpenPAI sets such a variable to the address of each task")
    return gather_addresses(launch, request.board_client, request.generation, request.wait)
