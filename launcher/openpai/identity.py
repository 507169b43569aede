# SPDX-License-Identifier: Apache-2.0
"""A task of an OpenPAI job."""

from __future__ import annotations

from collections.abc import Mapping

from launcher import exits
from launcher.errors import LaunchError
from launcher.identities import Identity
from launcher.peers import PeerRequest, gather

VARIABLES: Mapping[str, str] = {}
_ROLE, _INDEX = "PAI_CURRENT_TASK_ROLE_NAME", "PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX"
# The job as `<user>~<name>`, and which attempt of it this is, as OpenPAI's controller tells each container.
_JOB, _ATTEMPT = "PAI_JOB_NAME", "FC_FRAMEWORK_ATTEMPT_ID"
# A job's name has up to 255 letters. The last ones tell jobs apart, and a folder's name has room for them.
_LETTERS = 60
# OpenPAI tries a job or a task again by the kind of its code. These are not unknown to it: the first ones are tried
# again for ever, the others never. All of its own that are below 220 are codes of signals.
_TRANSIENT, _PERMANENT = frozenset({130, 131, 137, 143}), frozenset({132, 135, 136, 141})
_UNKNOWN_CODE, _PERMANENT_CODE = 1, 132


class NodeIdentity(Identity):
    """What the environment of a task says."""

    def rank(self) -> int:
        """Tasks are counted role by role, in the document's order."""
        name, index = self.environment.get(_ROLE), self.environment.get(_INDEX, "")
        first = 0
        for role in self.document["roles"]:
            if role["name"] == name and index.isdigit():
                return first + int(index)
            first += int(role["replicas"])
        raise LaunchError(f"{_ROLE} and {_INDEX} do not name a task of this run: start it as an OpenPAI job")

    def start(self, rank: int, nodes: int) -> str:
        """The job's name and the controller's attempt. OpenPAI never gives a name to another job."""
        return start_of(self.environment.get(_JOB, ""), self.environment.get(_ATTEMPT, ""))

    def ports(self, label: str, role: str, index: int) -> tuple[int, ...]:
        """OpenPAI chooses each of them by itself, so there may be gaps between them."""
        name = ports_variable(label, role, index)
        words = [word.strip() for word in self.environment.get(name, "").split(",") if word.strip()]
        if not all(word.isdigit() and 0 < int(word) < 1 << 16 for word in words):
            raise LaunchError(f"{name} is {self.environment[name]!a}: OpenPAI sets it to port numbers")
        return tuple(map(int, words))

    def address(self) -> str:
        """Of the host, whose network the task shares."""
        role, index = (self.environment.get(name, "") for name in (_ROLE, _INDEX))
        return self.environment.get(host_variable(role, index), "")

    @property
    def starts_nodes_again(self) -> bool:
        """Tasks of a gang are tried again with the whole job only."""
        return not self.document["gang"]

    def exit_code(self, code: int) -> int:
        """A failure of a script is of the same kind here as anywhere else."""
        kind = exits.kind(code)
        if kind == exits.PERMANENT and code not in _PERMANENT:
            return _PERMANENT_CODE
        if kind == exits.UNKNOWN and code in _TRANSIENT | _PERMANENT:
            return _UNKNOWN_CODE
        return code


def start_of(job: str, attempt: str) -> str:
    """The name of one attempt of a job, by what OpenPAI's REST server tells of it, too."""
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


def find(request: PeerRequest) -> dict[int, str]:
    """Everything is known at once, as a rule."""
    launch, told = request.launch, request.environment
    names = [host_variable(role.name, index) for role in launch.roles for index in range(role.replicas)]
    missing = [name for name in names if not told.get(name)]
    own, alone = launch.identity.address(), launch.identity.starts_nodes_again
    if alone and request.desk is not None and own:
        # Also who knows all others is expected by those who came before.
        request.desk.arrive(request.generation, own)
    if not missing:
        return {rank: told[name] for rank, name in enumerate(names)}
    if not alone or request.desk is None or not own:
        raise LaunchError(f"{missing[0]} is not set: OpenPAI sets such a variable to the address of each task")
    return gather(launch, request.desk, request.generation, request.wait)
