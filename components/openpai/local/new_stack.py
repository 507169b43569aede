# SPDX-License-Identifier: Apache-2.0
"""A new stack file for OpenPAI: the cluster, its user, a storage and a registry, which nobody can conclude."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from components.platform.new_stacks import Answer, Answers, Caller, MachineNeeds, NewMachine, NewStacks, processes_on

_REPLACE = "an example, for which the local cluster stands in: replace it by yours"
_GPUS = (1, 2, 4, 8)


class OpenPaiNewStacks(NewStacks):
    def find_answers(self, caller: Caller) -> Answers:
        address = caller.environment.get("OPENPAI_URI") if not caller.local else None
        return Answers(
            (
                Answer(
                    "uri",
                    address or "https://openpai.example.com",
                    "trainyard:cluster",
                    _REPLACE,
                    "Address of the cluster's portal",
                ),
                Answer("user", "vision-bot", "trainyard:cluster", _REPLACE, "Your user there"),
                Answer("storage", "vision-nfs", "trainyard:storage", _REPLACE, "A storage of the cluster, for results"),
                Answer(
                    "repository",
                    "registry.example.com/vision/train",
                    "trainyard:registry",
                    _REPLACE,
                    "Registry and repository of your images",
                ),
            ),
            local=address is None,
        )

    def stack_keys(self, answers: Mapping[str, str]) -> Mapping[str, Any]:
        return {
            "trainyard:platform": "openpai",
            "trainyard:cluster": {"uri": answers["uri"], "user": answers["user"]},
            "trainyard:storage": {"name": answers["storage"]},
            "trainyard:registry": {"existing": answers["repository"]},
        }

    def choose_machine(self, needs: MachineNeeds) -> NewMachine:
        if not needs.gpus:
            return _machine_of_task("cpu", {"cpus": 2, "memoryGb": 8}, needs.processes or 1)
        gpus = next((number for number in _GPUS if number >= (needs.processes or 1)), _GPUS[-1])
        size = {"gpus": gpus, "cpus": 4 * gpus, "memoryGb": 16 * gpus}
        return _machine_of_task(f"gpu{gpus}", size, processes_on({"accelerators": gpus}, needs))


def _machine_of_task(name: str, size: Mapping[str, int], processes: int) -> NewMachine:
    return NewMachine({"shape": name}, processes, stack={"trainyard:skus": {name: dict(size)}})


NEW_STACKS = OpenPaiNewStacks()
