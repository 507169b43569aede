# SPDX-License-Identifier: Apache-2.0
"""catalog/platforms.toml and the check that reads it know the same features; tables are shaped as readers expect."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from catalog import frameworks
from catalog.platforms import platform_word, platforms
from catalog.tables import table
from schemas.checks.access_checks import FEATURES
from trainyard.cli.main import main

PLATFORMS = platforms()
LACKING = [(name, feature) for name, row in PLATFORMS.items() for feature in row.lacks]
JOB = {
    "framework": "pytorch", "image": "registry.example.com/vision:1", "shape": "VM.GPU.A10.1",
    "roles": {"main": 1, "worker": 3}, "command": "train.py", "runs": {"base": {}},
}  # fmt: skip
# Keys that only one platform requires.
DEMANDED = {
    "cluster": {"uri": "https://openpai.example.com", "user": "vision-bot"},
    "storage": {"name": "vision-nfs"}, "skus": {"VM.GPU.A10.1": {"gpus": 1, "cpus": 8, "memoryGb": 32}},
}  # fmt: skip
STOPS = {"replicas": 3, "completion": {"minFailed": -1}}
# Values of a stack file that need a feature: keys of the file, and keys of its job.
ASKS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "failed-nodes": ({}, {"layout": "node-groups", "roles": {"main": 1, "worker": STOPS}}),
    "node-groups": ({}, {"layout": "node-groups"}),
    "network": ({"network": {"cidr": "10.30.0.0/16"}}, {}),
    "inputs": ({}, {"inputs": [{"mount": "/data"}]}),
}


def findings(folder: Path, platform: str, keys: dict[str, Any], job: dict[str, Any]) -> list[tuple[str, str]]:
    """Codes and messages of all findings of `trainyard check` for a stack file of this platform."""
    own = {
        "team": "vision",
        "environment": "dev",
        "platform": platform,
        **DEMANDED,
        **keys,
        "jobs": {"resnet": {**JOB, **job}},
    }
    region = PLATFORMS[platform].region
    config = {f"trainyard:{key}": value for key, value in own.items()}
    config |= {region.key: region.example} if region else {}
    file = folder / "Pulumi.asked.yaml"
    file.write_text(yaml.safe_dump({"config": config}), "utf-8")
    told = CliRunner().invoke(main, ["check", "--format", "json", str(file)]).stdout
    return [(one["code"], one["message"]) for one in json.loads(told)["findings"]]


def test_the_features_of_the_table_are_those_of_the_checks() -> None:
    assert {feature for _, feature in LACKING} == set(FEATURES) == set(ASKS)


@pytest.mark.parametrize(("platform", "feature"), LACKING)
def test_a_feature_that_a_platform_lacks_is_reported_with_its_reason(
    platform: str, feature: str, tmp_path: Path
) -> None:
    reason = ("TY901", f"{platform_word(platform)} cannot do this: {PLATFORMS[platform].lacks[feature]}")
    assert reason in findings(tmp_path, platform, *ASKS[feature])
    assert reason not in findings(tmp_path, platform, {}, {})


@pytest.mark.parametrize("platform", PLATFORMS)
def test_a_platform_says_what_it_does_not_train_and_whether_it_deploys(platform: str, tmp_path: Path) -> None:
    row = PLATFORMS[platform]
    codes = [code for code, _ in findings(tmp_path, platform, {}, {})]
    assert ("TY902" in codes) is not row.deploys
    for name in frameworks.framework_names():
        role = next(iter(frameworks.framework_row(name).roles))
        refused = [words for code, words in findings(tmp_path, platform, {}, {"framework": name, "roles": {role: 1}})
                   if code == "TY903"]  # fmt: skip
        trained = name in (row.trains or [name])
        assert refused == ([] if trained else [f"{platform_word(platform)} does not train with `{name}`: {row.why}"])


def test_shapes_are_flexible_or_have_a_size() -> None:
    for name, row in table("shapes").items():
        assert row.get("flex", False) == name.endswith(".Flex")
        assert row.get("flex") or (row["vcpus"] > 0 and row["memory_gib"] > 0)
        assert ("accelerator" in row) == ("accelerators" in row)


def test_regions_have_unique_keys() -> None:
    keys = table("regions")["keys"]
    assert len(set(keys.values())) == len(keys)
    assert keys["us-ashburn-1"] == "iad"
