# SPDX-License-Identifier: Apache-2.0
"""A review names every key of a job that changes, or a row says why its change means nothing. The keys and values are
those of the schema of stack files."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from catalog.platforms import platforms
from catalog.tables import table
from schemas.compose import schema_of
from schemas.judge import judge_file
from tests.support.examples import STACKS
from tests.support.review_examples import AWS, OCI, PAI
from trainyard.review.what_runs import compare_what_runs

_EXAMPLES = {"oci": OCI, "aws-dl1": AWS, "openpai": PAI}
_ABSENT = object()


class JobKeys:
    """Both sides of a change of each key below a job, by the schema of a platform."""

    def __init__(self, platform: str) -> None:
        self.schema = schema_of(platform)
        config = self.schema["$defs"]["config"]["properties"]
        self.job = self.resolved(self.resolved(config["trainyard:jobs"])["additionalProperties"])

    def resolved(self, part: Mapping[str, Any]) -> dict[str, Any]:
        if "$ref" not in part:
            return dict(part)
        return {**self.resolved(self.schema["$defs"][part["$ref"].rsplit("/", 1)[-1]]), **part}

    def changes(self, part: Mapping[str, Any], now: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
        whole = self.resolved(part)
        branches = [self.resolved(branch) for branch in whole.get("anyOf", ())]
        mapping = next((branch for branch in (whole, *branches) if "properties" in branch), None)
        if mapping is None and whole.get("type") == "object" and isinstance(whole.get("additionalProperties"), dict):
            mapping = {"properties": {"added": whole["additionalProperties"]}}
        if mapping is not None:
            base = dict(now) if isinstance(now, dict) else self.required_values(mapping)
            if isinstance(whole.get("additionalProperties"), dict):
                mapping = {"properties": dict.fromkeys(base or {"added"}, whole["additionalProperties"])}
            for key, below in mapping["properties"].items():
                for where, before, after in self.changes(below, base.get(key, _ABSENT), f"{path}.{key}"):
                    there = isinstance(now, dict) or base or before is not _ABSENT
                    yield where, {**base, key: before} if there else _ABSENT, {**base, key: after}
        elif whole.get("type") == "array" and "properties" in self.resolved(whole["items"]):
            first = now[0] if isinstance(now, list) and now else _ABSENT
            for where, before, after in self.changes(whole["items"], first, f"{path}.*"):
                yield where, [] if before is _ABSENT else [before], [after]
        else:
            examples = [*whole.get("examples", ()), *whole.get("enum", ()), *branches_examples(branches)]
            examples += [True, False] if whole.get("type") == "boolean" else []
            different = [example for example in examples if example not in (now, whole.get("default", now))]
            if different:
                yield path, now, different[0]

    def required_values(self, mapping: Mapping[str, Any]) -> dict[str, Any]:
        return {
            key: next(iter(self.resolved(mapping["properties"][key])["examples"]))
            for key in mapping.get("required", ())
        }


def branches_examples(branches: list[dict[str, Any]]) -> Iterator[Any]:
    for branch in branches:
        yield from branch.get("examples", ())


def without_absent(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_absent(part) for key, part in value.items() if part is not _ABSENT}
    return [without_absent(part) for part in value] if isinstance(value, list) else value


@pytest.mark.parametrize("platform", platforms())
def test_every_key_of_a_job_shows_or_has_a_reason_not_to(platform: str, tmp_path: Path) -> None:
    whole = yaml.safe_load((STACKS / f"Pulumi.{_EXAMPLES[platform]}.yaml").read_text("utf-8"))
    ((name, job),) = whole["config"]["trainyard:jobs"].items()
    keys = JobKeys(platform)
    seen, unshown = 0, set()
    for path, before, after in keys.changes(keys.job, job):
        judged = []
        for side, value in (("before", before), ("after", after)):
            document = copy.deepcopy(whole)
            document["config"]["trainyard:jobs"][name] = without_absent(value)
            file = tmp_path / f"Pulumi.{side}.yaml"
            file.write_text(yaml.safe_dump(document), "utf-8")
            judged.append(judge_file(file))
            assert judged[-1].stack is not None, (path, value, judged[-1].findings)
        seen += 1
        if not compare_what_runs(*judged):
            unshown.add(path.removeprefix("."))
    assert seen >= 40
    silent = {row["path"] for row in table("what_runs")["job"] if "silent" in row}
    silent |= {f"runs.*.{row['path']}" for row in table("what_runs")["run"] if "silent" in row}
    assert {re.sub(r"^(roles|runs)\.\w+", r"\1.*", path) for path in unshown} <= silent
