# SPDX-License-Identifier: Apache-2.0
"""The policy pack with the real engine, on the examples of its rules."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from catalog.version import VERSION
from policies.offline import results_of_snapshot
from policies.pack import NAME
from policies.rule import Examples, JudgedResource, PolicyRule, StackRule, resource_rules, stack_rules
from policies.settings import NOT_KNOWN_YET
from tests.support.examples import STACKS
from tests.support.policy_examples import snapshot, written
from trainyard.cli.main import main
from trainyard.engine.obtain import local_stack_environment

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
        self.env = local_stack_environment(root / "home") | {"PULUMI_OPTION_COLOR": "never"}
        created = self.pulumi("stack", "init", "dev")
        assert created.returncode == 0, created.stderr

    def pulumi(self, *words: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            ["pulumi", *words, "--non-interactive"],
            cwd=self.program, env=self.env, capture_output=True, text=True, timeout=SLOW_SECONDS,
        )  # fmt: skip

    def configure(self, **config: Any) -> None:
        """Sets keys of the stack file."""
        file = self.program / "Pulumi.dev.yaml"
        values = {"config": {f"trainyard:{key}": value for key, value in config.items()}}
        kept = yaml.safe_load(file.read_text()) if file.exists() else {}
        file.write_text(yaml.safe_dump({**(kept or {}), **values}))

    def judged(self, command: str, *resources: tuple[Any, ...], options: tuple[str, ...] = ()) -> tuple[bool, str]:
        """Whether the engine went on, and all that it printed."""
        (self.program / "resources.json").write_text(json.dumps(resources))
        done = self.pulumi(command, "--policy-pack", str(PACK), *options)
        return done.returncode == 0, done.stdout + done.stderr


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def as_row(resource: JudgedResource) -> tuple[str, str, Any, bool]:
    """A resource in the form that the program reads."""
    return resource.type, resource.name, written(resource.properties, {"later": True}), resource.protect


def examples(kind: str) -> Iterator[tuple[PolicyRule, JudgedResource]]:
    for rule in resource_rules():
        of_kind: Examples = getattr(rule, kind)
        for number, example in enumerate(of_kind.values()):
            yield rule, replace(example, name=f"{rule.id}-{kind}-{number}")


def offline(resources: Sequence[JudgedResource], config: Mapping[str, Any], **plan: Any) -> set[tuple[str, str, str]]:
    """A review's verdicts in the form of the engine's output. A verdict without a resource is on the stack."""
    return {
        (one.level, NOT_KNOWN_YET if one.outcome == "unknown" else one.rule, one.resource or "examples-dev")
        for one in results_of_snapshot(snapshot(resources, **plan), config, date.today())
    }


def told(said: str) -> set[tuple[str, str, str]]:
    """(level, policy, resource) of each line such as `- [mandatory]  all-tcp  (oci:Core:SecurityList: rules)`."""
    return set(re.findall(r"- \[(\w+)\]\s+(\S+)\s+\(.*: (\S+)\)", said))


def test_the_engine_gets_the_verdicts_of_rules_on_their_examples(project: Project) -> None:
    """A review gives the same verdicts for all of them without the engine."""
    every = [resource for kind in KINDS for _, resource in examples(kind)]
    went_on, said = project.judged("preview", *map(as_row, every))
    assert not went_on
    heard = told(said)
    lines = {line.strip() for line in said.splitlines()}
    for rule, one in examples("passes"):
        assert (rule.level, rule.id, one.name) not in heard
    for rule, one in examples("fails"):
        assert (rule.level, rule.id, one.name) in heard
        assert f"remedy: {rule.remedy}" in lines
    for rule, one in examples("unknown"):
        assert (rule.level, rule.id, one.name) not in heard
        assert ("advisory", NOT_KNOWN_YET, one.name) in heard
        assert any(line.startswith(f"{one.name}: {rule.id}: ") for line in lines), one.name
    assert "Traceback" not in said
    assert heard == offline(every, {})


@pytest.mark.parametrize("rule", stack_rules(), ids=lambda rule: rule.id)
def test_the_engine_gets_the_verdict_of_a_rule_on_a_whole_stack(
    rule: StackRule, project: Project, tmp_path: Path
) -> None:
    """The first failing and the first passing example of each rule. tests/unit/policies tests all of them with the
    engine's protocol."""
    for kind, expected in (("fails", True), ("passes", False)):
        stack = next(iter(getattr(rule, kind).values()))
        resources = [replace(one, name=f"{kind}-{number}") for number, one in enumerate(stack.resources)]
        config = {rule.id: {"enforcementLevel": rule.level, **stack.settings}}
        settings = tmp_path / "settings.json"
        settings.write_text(json.dumps(config))
        plan: dict[str, Any] = {"environment": stack.environment} if stack.environment else {}
        plan |= {"access": {"mode": stack.access_mode}} if stack.access_mode else {}
        project.configure(**plan)
        _, said = project.judged("preview", *map(as_row, resources), options=("--policy-pack-config", str(settings)))
        heard = told(said)
        assert heard == offline(resources, config, **plan), said
        assert any((level, policy) == (rule.level, rule.id) for level, policy, _ in heard) is expected, said


@pytest.mark.parametrize(
    ("until", "level", "words"),
    [
        ("2999-12-31", "advisory", "waived until 2999-12-31: a public data set"),
        ("2020-12-31", "mandatory", "its waiver ended on 2020-12-31"),
    ],
    ids=["in force", "ended"],
)
def test_a_waiver_has_the_same_effect_for_the_engine_and_a_review(
    until: str, level: str, words: str, project: Project
) -> None:
    """It lets the preview go on while it lasts, and is named; from the day after it stops the preview again."""
    inputs = {"freeformTags": TAGS, "versioning": "Enabled", "accessType": "ObjectRead"}
    waivers = {"public-bucket": {"reason": "a public data set", "until": until}}
    project.configure(waivers=waivers)
    went_on, said = project.judged("preview", (BUCKET, "data", inputs, True))
    assert went_on is (level == "advisory"), said
    assert words in said
    opened = JudgedResource(BUCKET, inputs, "data", protect=True)
    assert told(said) == {(level, "public-bucket", "data")} == offline([opened], {}, waivers=waivers)
    (result,) = results_of_snapshot(snapshot([opened], waivers=waivers), {}, date.today())
    assert (result.outcome, result.waiver) == ("waived" if went_on else "fail", words)


def test_a_misspelt_rule_has_no_effect_in_the_engine_and_a_review_refuses_it(project: Project, tmp_path: Path) -> None:
    """The engine passes on the settings of the pack's rules only: no pack can see another name."""
    settings = tmp_path / "settings.json"
    settings.write_text(json.dumps({"unversioned-buckets": "mandatory"}))
    bucket = (BUCKET, "data", {"freeformTags": TAGS}, True)
    went_on, said = project.judged("preview", bucket, options=("--policy-pack-config", str(settings)))
    assert went_on, said
    assert told(said) == {("advisory", "unversioned-bucket", "data")}
    assert "unversioned-buckets" not in said
    done = CliRunner().invoke(main, ["review", "--stacks", str(STACKS), "--policy-config", str(settings)])
    words = "`unversioned-buckets` is not a rule of the pack (docs/policies.md): did you mean `unversioned-bucket`?"
    assert (done.exit_code, done.stderr) == (2, f"Error: {settings}: {words}\n")


def test_levels_depend_on_the_environment_and_invalid_settings_are_refused(project: Project, tmp_path: Path) -> None:
    opened = (BUCKET, "data", {"freeformTags": TAGS, "versioning": "Enabled", "accessType": "ObjectRead"}, True)
    settings = tmp_path / "settings.json"
    options = ("--policy-pack-config", str(settings))
    settings.write_text(json.dumps({"public-bucket": {"levels": {"dev": "advisory"}}}))
    went_on, said = project.judged("preview", opened, options=options)
    assert went_on, said
    assert told(said) == {("advisory", "public-bucket", "data")}
    settings.write_text(json.dumps({"budget": {"ceilings": {"dev": {"nodes": "many"}}}}))
    went_on, said = project.judged("preview", opened, options=options)
    assert not went_on
    assert "ceilings" in said


def test_a_mandatory_failure_stops_the_preview_with_the_remedy(project: Project) -> None:
    private = {"freeformTags": TAGS, "versioning": "Enabled"}
    went_on, said = project.judged("preview", (BUCKET, "data", private | {"accessType": "ObjectRead"}, True))
    assert not went_on
    assert told(said) == {("mandatory", "public-bucket", "data")}
    assert "Traceback" not in said
    assert "data: accessType ObjectRead lets anybody read objects" in said
    assert "remedy: set accessType: NoPublicAccess" in said
    went_on, said = project.judged("preview", (BUCKET, "data", private, True))
    assert went_on, said
    assert told(said) == set()
    assert f"{NAME}@v{VERSION}" in said


def test_values_unknown_in_a_preview_are_reported_and_judged_by_up(project: Project) -> None:
    bucket = (
        BUCKET,
        "data",
        {"freeformTags": TAGS, "versioning": {"later": True}, "accessType": {"later": True}},
        True,
    )
    went_on, said = project.judged("preview", bucket)
    assert went_on, said
    assert told(said) == {("advisory", NOT_KNOWN_YET, "data")}
    assert "data: public-bucket: `accessType` is not known yet" in said
    went_on, said = project.judged("up", bucket, options=("--yes", "--skip-preview"))
    assert not went_on
    assert "data: accessType Enabled lets anybody read objects" in said
    assert told(said) == {("mandatory", "public-bucket", "data")}


def test_a_team_can_make_an_advisory_rule_mandatory(project: Project, tmp_path: Path) -> None:
    bucket = (BUCKET, "data", {"freeformTags": TAGS}, True)
    went_on, said = project.judged("preview", bucket)
    assert went_on, said
    assert told(said) == {("advisory", "unversioned-bucket", "data")}
    levels = tmp_path / "levels.json"
    levels.write_text(json.dumps({"unversioned-bucket": "mandatory"}))
    went_on, said = project.judged("preview", bucket, options=("--policy-pack-config", str(levels)))
    assert not went_on, said
    assert told(said) == {("mandatory", "unversioned-bucket", "data")}
