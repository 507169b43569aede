# SPDX-License-Identifier: Apache-2.0
"""A task of an OpenPAI job."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from launcher.errors import LaunchError
from launcher.identities import Identity

VARIABLES: Mapping[str, str] = {}
_ROLE, _INDEX = "PAI_CURRENT_TASK_ROLE_NAME", "PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX"
# The job's name, and which attempt of it this is, as OpenPAI's controller tells each container.
_JOB, _ATTEMPTS = "PAI_JOB_NAME", ("FC_FRAMEWORK_ATTEMPT_INSTANCE_UID", "FC_FRAMEWORK_ATTEMPT_ID")
_LETTERS = 12


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
        """A hash of the job's name and the controller's attempt."""
        attempt = next((self.environment[name] for name in _ATTEMPTS if self.environment.get(name)), "")
        job = self.environment.get(_JOB, "")
        return hashlib.sha256(f"{job}\n{attempt}".encode()).hexdigest()[:_LETTERS] if job else ""
