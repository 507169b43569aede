# SPDX-License-Identifier: Apache-2.0
"""A new stack file for OpenPAI: the cluster, its user, a storage and a registry, which nobody can conclude, and a SKU
for what a node needs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from components.platform.new_stacks import Answer, Caller, MachineNeeds, NewMachine, NewStacks
from schemas.unfilled_values import PLACEHOLDER

_REPLACE = "an example, for which the local cluster stands in: replace it by yours"
_CPUS_OF_GPU, _MEMORY_OF_CPU = 4, 4


class OpenPaiNewStacks(NewStacks):
    local_answers = (
        Answer(
            "uri", "https://openpai.example.com", "trainyard:cluster", _REPLACE, "Address of the cluster's portal",
            f"https://{PLACEHOLDER}.example.com",
        ),
        Answer("user", "vision-bot", "trainyard:cluster", _REPLACE, "Your user there", PLACEHOLDER),
        Answer(
            "storage", "vision-nfs", "trainyard:storage", _REPLACE, "A storage of the cluster, for results", PLACEHOLDER
        ),
        Answer(
            "repository", "registry.example.com/vision/train", "trainyard:registry", _REPLACE,
            "Registry and repository of your images", f"registry.example.com/{PLACEHOLDER}",
        ),
    )  # fmt: skip

    def answers_of_account(self, caller: Caller) -> tuple[Answer, ...]:
        address = caller.environment.get("OPENPAI_URI")
        of_address, *others = self.local_answers
        return (replace(of_address, value=address, source="from OPENPAI_URI", unknown=None), *others) if address else ()

    def stack_keys(self, answers: Mapping[str, str]) -> Mapping[str, Any]:
        return {
            "trainyard:platform": "openpai",
            "trainyard:cluster": {"uri": answers["uri"], "user": answers["user"]},
            "trainyard:storage": {"name": answers["storage"]},
            "trainyard:registry": {"existing": answers["repository"]},
        }

    def choose_machine(self, needs: MachineNeeds) -> NewMachine:
        cpus = max(needs.cpus, _CPUS_OF_GPU * needs.gpus)
        size = {"cpus": cpus, "memoryGb": math.ceil(needs.memory_gb) or cpus * _MEMORY_OF_CPU}
        name = f"gpu{needs.gpus}" if needs.gpus else f"cpu{cpus}"
        sku = {"gpus": needs.gpus, **size} if needs.gpus else size
        return NewMachine({"shape": name}, needs.gpus, stack={"trainyard:skus": {name: sku}})


NEW_STACKS = OpenPaiNewStacks()
