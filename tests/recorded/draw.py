# SPDX-License-Identifier: Apache-2.0
"""Draws changes of the examples' stack files: other rules, grants, images, runs and machines; stacks that are new,
removed, broken, or on another platform."""

from __future__ import annotations

import copy
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

import yaml

from schemas.judge import judge_file
from tests.support.examples import STACKS

Config = dict[str, Any]
KEY = "ocid1.key.oc1.iad.bbbbexamplevault.abuwcljrexamplekeydrawn"
AWS_KEY = "arn:aws:kms:us-east-1:123456789012:key/0a1b2c3d-1111-4222-8333-0a1b2c3d4e5f"
OFFICE = {"cidr": "203.0.113.0/24", "ports": 3022, "why": "SSH from the office"}
# Settings by their path in `config`, with values to choose from. `*` is any key that exists.
SETTINGS: Mapping[str, Sequence[Any]] = {
    "trainyard:network.nat": [True],
    "trainyard:network.cidr": ["10.77.0.0/16", "172.20.0.0/20"],
    "trainyard:network.mode": ["proof-of-concept", "documented", "least-privilege"],
    "trainyard:network.flowLog": [True],
    "trainyard:network.ingress": [[OFFICE], [{**OFFICE, "cidr": "198.51.100.7/32", "ports": "3022-3030"}]],
    "trainyard:access.mode": ["proof-of-concept", "documented", "least-privilege"],
    "trainyard:access.users": [{"group": "auditors"}, {"dynamicGroup": "notebooks"}, {"role": "scientists"}],
    "trainyard:access.narrow": [{"bucket": True}, {"repository": True}],
    "trainyard:bucket.name": ["drawn-data"],
    "trainyard:bucket.key": [KEY, AWS_KEY],
    "trainyard:bucket.versioning": [False],
    "trainyard:bucket.keep": [False],
    "trainyard:registry.immutable": [True, False],
    "trainyard:registry.repository": ["drawn/images"],
    "trainyard:logs.retentionDays": [30, 90, 180],
    "trainyard:logs.enabled": [False],
    "trainyard:tags": [{"cost-center": "4711"}],
    "trainyard:environment": ["drawn"],
    "trainyard:account": ["210987654321"],
    "trainyard:quota.vcpus": [384],
    "trainyard:storage.name": ["drawn-nfs"],
    "trainyard:cluster.virtualCluster": ["research"],
    "trainyard:cluster.token": [{"secure": "v1:ZHJhd24=:dG9rZW4="}],
    "trainyard:skus.*.memoryGb": [24, 48],
    "trainyard:skus.*.gpus": [1, 4],
    "trainyard:jobs.*.image": ["${registry}:9.9", "docker.io/library/python:3.12", "openpai/standard:drawn"],
    "trainyard:jobs.*.shape": [
        "VM.GPU.A10.2",
        "VM.GPU3.2",
        {"name": "VM.Standard.E4.Flex", "ocpus": 4, "memoryGb": 32},
    ],
    "trainyard:jobs.*.command": ["train.py --drawn 7"],
    "trainyard:jobs.*.env": [{"DRAWN": "1"}, {"DRAWN": {"secure": "v1:ZHJhd24=:dmFsdWU="}}],
    "trainyard:jobs.*.inputs": [[{"bucket": "company-pictures", "mount": "/data/more"}], [{"mount": "/data/own"}]],
    "trainyard:jobs.*.blockStorageGb": [400, 700],
    "trainyard:jobs.*.maximumRuntimeMinutes": [77],
    "trainyard:jobs.*.stallMinutes": [33],
    "trainyard:jobs.*.ports.data": ["29500-29700", "all"],
    "trainyard:jobs.*.ports.worker": [8800],
    "trainyard:jobs.*.roles.*": [1, 2, 6],
    "trainyard:jobs.*.cluster.stopWhenIdle": [5],
    "trainyard:jobs.*.cluster.spot": [True],
    "trainyard:jobs.*.cluster.ami": ["ami-0123456789abcdef0"],
    "trainyard:jobs.*.runs.*.args": [["--lr", "0.5"]],
    "trainyard:jobs.*.runs.*.attempt": [7],
    "trainyard:jobs.*.runs.*.until": ["accepted", "finished"],
    "trainyard:jobs.*.runs.drawn": [{}, {"each": {"LR": ["0.1", "0.2"]}, "atMost": 1}],
}
# Paths of which a key is removed, or copied to another name.
REMOVED = ("trainyard:jobs.*.runs.*", "trainyard:jobs.*", "trainyard:jobs.*.env", "trainyard:access", "trainyard:logs")
COPIED = ("trainyard:jobs.*.runs.*", "trainyard:jobs.*")
# Stacks of a round by the beginning of their names: few, because `make test` reviews one round.
SHARES = {"aws-": 1, "oci-": 3, "openpai-": 1}
SEED, ROUNDS = 39, 8
_ATTEMPTS = 400


def draw_rounds(into: Path) -> None:
    """Writes `into/N/before` and `into/N/after`, each with the stack files of one side."""
    for number in range(1, ROUNDS + 1):
        chance, folder = Random(SEED * 1000 + number), into / str(number)
        shutil.rmtree(folder, ignore_errors=True)
        files = sorted(STACKS.glob("Pulumi.*.yaml"))
        chosen = [
            file
            for beginning, share in SHARES.items()
            for file in chance.sample([one for one in files if one.name.startswith(f"Pulumi.{beginning}")], share)
        ]
        shutil.copytree(STACKS / "examples", folder / "after" / "examples")
        (folder / "before").mkdir()
        for file in chosen:
            shutil.copy(file, folder / "before")
            _draw_change(chance, file, folder / "after" / file.name)
        _draw_kind(number, folder, chosen)
        # Both sides use the examples' own code.
        shutil.rmtree(folder / "after" / "examples")


def _draw_change(chance: Random, file: Path, after: Path) -> None:
    """Writes the file with one to three edits that `check` accepts."""
    document = yaml.safe_load(file.read_text("utf-8"))
    for _ in range(_ATTEMPTS):
        changed = copy.deepcopy(document)
        for _ in range(chance.choice((1, 2, 3))):
            chance.choice((_set, _set, _set, _set, _remove, _copy))(chance, changed["config"])
        after.write_text(yaml.safe_dump(changed, sort_keys=False), "utf-8")
        if changed != document and not judge_file(after).errors:
            return
    raise AssertionError(f"no edit of {file.name} is accepted")


def _draw_kind(number: int, folder: Path, chosen: Sequence[Path]) -> None:
    """Makes another kind of change of one stack of the round."""
    aws, oci, _, other, openpai = (file.name for file in chosen)
    match number:
        case 1 | 3 | 5:
            new = {1: oci, 3: openpai, 5: aws}[number]
            (folder / "before" / new).unlink()
        case 2 | 4 | 8:
            removed = {2: openpai, 4: aws, 8: oci}[number]
            (folder / "after" / removed).unlink()
        case 6:
            broken = folder / "after" / oci
            broken.write_text(broken.read_text("utf-8").replace("framework: ", "framework: x"), "utf-8")
        case _:
            # Another platform under the same name.
            shutil.copy(STACKS / other, folder / "after" / aws)


def _set(chance: Random, config: Config) -> None:
    path = chance.choice(sorted(SETTINGS))
    _at(chance, config, path, lambda holder, key: holder.update({key: copy.deepcopy(chance.choice(SETTINGS[path]))}))


def _remove(chance: Random, config: Config) -> None:
    _at(chance, config, chance.choice(REMOVED), lambda holder, key: holder.pop(key, None))


def _copy(chance: Random, config: Config) -> None:
    def copy_key(holder: Config, key: str) -> None:
        holder["again"] = copy.deepcopy(holder[key])

    _at(chance, config, chance.choice(COPIED), copy_key)


def _at(chance: Random, config: Config, path: str, edit: Callable[[Config, str], object]) -> None:
    """Edits the last key of the path. Nothing if the stack lacks what is above it."""
    *above, last = path.split(".")
    holder: Any = config
    for part in above:
        holder = holder.get(chance.choice(sorted(holder)) if part == "*" and holder else part)
        if not isinstance(holder, dict):
            return
    if last != "*":
        edit(holder, last)
    elif holder:
        edit(holder, chance.choice(sorted(holder)))
