# SPDX-License-Identifier: Apache-2.0
"""The pack under the real engine, on the very examples its rules carry."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from catalog.version import VERSION
from policies.pack import NAME, NOT_KNOWN_YET
from policies.rule import Examples, PolicyRule, Unknown, rules
from trainyard import engine

PROJECT = Path(__file__).with_name("policies_project")
PACK = Path(__file__).parents[2] / "policies"
SLOW_SECONDS = 600.0
KINDS = ("passes", "fails", "unknown")
TAGS = {"stack": "vision-dev", "team": "vision", "environment": "dev"}
BUCKET = "oci:ObjectStorage/bucket:Bucket"

pytestmark = pytest.mark.engine


class Project:
    """A copy of the project beside this file, with a stack and a home of its own."""

    def __init__(self, root: Path) -> None:
        shutil.copytree(PROJECT, root / "examples")
        self.program = root / "examples" / "program"
        (self.program / ".venv").symlink_to(sys.prefix)
        self.env = engine.environment(root / "home") | {"PULUMI_OPTION_COLOR": "never"}
        created = self.pulumi("stack", "init", "dev")
        assert created.returncode == 0, created.stderr

    def pulumi(self, *words: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            ["pulumi", *words, "--non-interactive"],
            cwd=self.program, env=self.env, capture_output=True, text=True, timeout=SLOW_SECONDS,
        )  # fmt: skip

    def judged(self, command: str, *resources: tuple[str, str, Any], options: tuple[str, ...] = ()) -> tuple[bool, str]:
        """Whether the engine went on, and all that it printed."""
        (self.program / "resources.json").write_text(json.dumps(resources))
        done = self.pulumi(command, "--policy-pack", str(PACK), *options)
        return done.returncode == 0, done.stdout + done.stderr


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def written(value: Any) -> Any:
    """An example's properties as JSON for the program."""
    if isinstance(value, Unknown):
        return {"later": True}
    if isinstance(value, Mapping):
        return {key: written(item) for key, item in value.items()}
    return [written(item) for item in value] if isinstance(value, list) else value


def resources(kind: str) -> Iterator[tuple[PolicyRule, tuple[str, str, Any]]]:
    for rule in rules():
        examples: Examples = getattr(rule, kind)
        for number, example in enumerate(examples.values()):
            yield rule, (example.type, f"{rule.id}-{kind}-{number}", written(example.properties))


def told(said: str) -> set[tuple[str, str, str]]:
    """(level, policy, resource) of each line such as `- [mandatory]  all-tcp  (oci:Core:SecurityList: rules)`."""
    return set(re.findall(r"- \[(\w+)\]\s+(\S+)\s+\(.*: (\S+)\)", said))


def test_the_engine_hears_what_the_rules_say_of_their_examples(project: Project) -> None:
    went_on, said = project.judged("preview", *(example for kind in KINDS for _, example in resources(kind)))
    assert not went_on
    heard = told(said)
    lines = {line.strip() for line in said.splitlines()}
    for rule, (_, name, _) in resources("passes"):
        assert (rule.level, rule.id, name) not in heard
    for rule, (_, name, _) in resources("fails"):
        assert (rule.level, rule.id, name) in heard
        assert f"remedy: {rule.remedy}" in lines
    for rule, (_, name, _) in resources("unknown"):
        assert (rule.level, rule.id, name) not in heard
        assert ("advisory", NOT_KNOWN_YET, name) in heard
        assert any(line.startswith(f"{name}: {rule.id}: ") for line in lines), name
    assert "Traceback" not in said


def test_a_failer_stops_the_preview_with_the_remedy_and_a_passer_goes_on(project: Project) -> None:
    private = {"freeformTags": TAGS, "versioning": "Enabled"}
    went_on, said = project.judged("preview", (BUCKET, "data", private | {"accessType": "ObjectRead"}))
    assert not went_on
    assert told(said) == {("mandatory", "public-bucket", "data")}
    assert "Traceback" not in said
    assert "data: accessType ObjectRead lets anybody read objects" in said
    assert "remedy: set accessType: NoPublicAccess" in said
    went_on, said = project.judged("preview", (BUCKET, "data", private))
    assert went_on, said
    assert told(said) == set()
    assert f"{NAME}@v{VERSION}" in said


def test_what_a_preview_cannot_know_is_remarked_on_and_judged_by_up(project: Project) -> None:
    bucket = (BUCKET, "data", {"freeformTags": TAGS, "versioning": {"later": True}, "accessType": {"later": True}})
    went_on, said = project.judged("preview", bucket)
    assert went_on, said
    assert told(said) == {("advisory", NOT_KNOWN_YET, "data")}
    assert "data: public-bucket: `accessType` is not known yet" in said
    went_on, said = project.judged("up", bucket, options=("--yes", "--skip-preview"))
    assert not went_on
    assert "data: accessType Enabled lets anybody read objects" in said
    assert told(said) == {("mandatory", "public-bucket", "data")}


def test_a_team_can_raise_a_remark_to_a_demand(project: Project, tmp_path: Path) -> None:
    bucket = (BUCKET, "data", {"freeformTags": TAGS})
    went_on, said = project.judged("preview", bucket)
    assert went_on, said
    assert told(said) == {("advisory", "unversioned-bucket", "data")}
    levels = tmp_path / "levels.json"
    levels.write_text(json.dumps({"unversioned-bucket": "mandatory"}))
    went_on, said = project.judged("preview", bucket, options=("--policy-pack-config", str(levels)))
    assert not went_on, said
    assert told(said) == {("mandatory", "unversioned-bucket", "data")}
