# SPDX-License-Identifier: Apache-2.0
"""For every line of the documents, an example meets the requirement, or seeds.toml says why none is needed."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from components.oci import iam
from components.oci.iam.parse import parse_statement
from components.oci.iam.permissions import known_words, verb_covers
from components.oci.iam.printing import grant_text
from components.oci.plan import OciPlan
from components.oci.rules import security_rules
from components.oci.statements import matching_rule, policy_lines
from components.values.security_rules import port_range_text
from schemas.judge import titles_by_code
from schemas.load import load_config
from tests.support.examples import any_stack, plan, stack_file
from tests.support.oci_plans import oci_plan

HERE = Path(__file__).parent
TABLES = HERE.parent / "programs" / "tables"
ROWS = tomllib.loads((HERE / "seeds.toml").read_text("utf-8"))["row"]
# The required and the optional keys of each kind of row, besides `seed`, `line` and `kind`.
COLUMNS = {
    "port": ({"stack", "mode", "ports"}, {"with"}),
    "statement": ({"stack", "mode", "means"}, {"with", "taken", "without"}),
    "exactly": ({"stack", "mode", "statements"}, {"with"}),
    "matching": ({"stack", "rule"}, {"with", "of"}),
    "holds": ({"stack", "type", "text"}, set()),
    "stacks": ({"stacks", "framework"}, set()),
    "said": ({"why"}, set()),
}

Row = Mapping[str, Any]


def rows(kind: str) -> list[Any]:
    chosen = [row for row in ROWS if row["kind"] == kind]
    return [pytest.param(row, id=f"{row['seed']} {row['line'][:60]} {row.get('ports', '')}") for row in chosen]


def planned(row: Row) -> OciPlan:
    """The plan of the row's example, with what `with` changes in its file."""
    if "with" not in row:
        return plan(row["stack"])
    config = yaml.safe_load(stack_file(row["stack"]).read_text("utf-8"))["config"]
    for key, value in row["with"].items():
        before = config.get(f"trainyard:{key}")
        config[f"trainyard:{key}"] = _merged(before, value)
    # As Pulumi passes configuration to programs: texts unchanged, objects as JSON.
    values = {key: value if isinstance(value, str) else json.dumps(value) for key, value in config.items()}
    loaded = load_config(values, (), row["stack"])
    assert loaded.stack is not None, loaded.findings
    return oci_plan(loaded.stack)


def _merged(before: Any, change: Any) -> Any:
    if not isinstance(before, Mapping) or not isinstance(change, Mapping):
        return change
    # A stack has one kind of users, so another kind replaces the existing one.
    kept = {key: value for key, value in before.items() if key != "users" or "users" not in change}
    return kept | {key: _merged(kept.get(key), value) for key, value in change.items()}


def filled(text: str, made: OciPlan) -> str:
    access = made.access
    users = (
        f"dynamic-group {access.users_dynamic_group}" if access.users_dynamic_group else f"group {access.users_group}"
    )
    words = {
        "users": users,
        "runs": f"dynamic-group {access.runs_group}",
        "compartment": made.compartment or "",
        "bucket": made.bucket.name,
        "repository": made.registry.repository,
    }
    for name, word in words.items():
        text = text.replace(f"{{{name}}}", word)
    return text


@pytest.mark.parametrize("row", rows("port"))
def test_a_port_of_the_documents_is_open_within_the_subnet(row: Row) -> None:
    network = planned(row).network
    assert network.mode == row["mode"]
    rules = security_rules(network)
    wanted = row["ports"]
    for side in (rules.ingress, rules.egress):
        assert wanted in [port_range_text(rule.ports, "all") for rule in side if rule.peer == network.subnet_cidr]


@pytest.mark.parametrize("row", rows("statement"))
def test_a_statement_of_the_documents_is_made_or_covered(row: Row) -> None:
    made = planned(row)
    assert made.access.mode == row["mode"]
    texts = {line.text for line in policy_lines(made)}
    taken = [filled(text, made) for text in row.get("taken", [row["means"]])]
    assert set(taken) <= texts
    meant = parse_statement(filled(row["means"], made))
    statements = [parse_statement(text) for text in taken]
    left_out = verb_covers("manage", row["without"]) if "without" in row else frozenset()
    assert iam.permissions_of_grant(meant.grant) - left_out <= frozenset().union(
        *(iam.permissions_of_grant(one.grant) for one in statements)
    )
    for one in statements:
        assert (one.subject, one.location, one.condition) == (meant.subject, meant.location, meant.condition)


# Overlapping, for the mistake `use read metrics`.
GRANT = re.compile(r"\b(?=(inspect|read|use|manage) ([a-z]+(?:-[a-z]+)*)\b)")


@pytest.mark.parametrize("row", rows("statement"))
def test_a_statement_means_what_its_line_says(row: Row) -> None:
    meant, line = parse_statement(filled(row["means"], planned(row))), row["line"].lower()
    said = [f"{verb} {kind}" for verb, kind in GRANT.findall(line) if kind in known_words()]
    assert not said or grant_text(meant.grant) == said[-1]
    who = re.search(r"allow (dynamic-group|group|service) ", line)
    assert not who or meant.subject.kind == who[1]
    for variable in re.findall(r"target\.[a-z]+\.[a-z]+", line):
        assert f"where {variable} = " in row["means"]


@pytest.mark.parametrize("row", rows("matching"))
def test_a_matching_rule_of_the_documents_includes_the_runs(row: Row) -> None:
    made = planned(row)
    assert matching_rule(made, row.get("of", "runs")) == filled(row["rule"], made)


@pytest.mark.parametrize("row", rows("exactly"))
def test_a_mode_of_the_documents_has_their_statements_and_no_others(row: Row) -> None:
    made = planned(row)
    assert made.access.mode == row["mode"]
    assert [line.text for line in policy_lines(made)] == [filled(text, made) for text in row["statements"]]


@pytest.mark.parametrize("row", rows("holds"))
def test_an_examples_table_shows_what_a_line_of_the_documents_requires(row: Row) -> None:
    blocks = (TABLES / f"{row['stack']}.txt").read_text("utf-8").split("\n\n")
    of_type = [block for block in blocks if block.split("  ")[0].split("\n")[0] == row["type"]]
    assert any(row["text"] in block for block in of_type), of_type


@pytest.mark.parametrize("row", rows("stacks"))
def test_a_framework_of_the_documents_has_its_examples(row: Row) -> None:
    for name in row["stacks"]:
        assert {job.framework for job in any_stack(name).jobs.values()} == {row["framework"]}


def test_a_job_of_one_server_has_one_task_role() -> None:
    """Shell text in the form of the documents on OpenPAI."""
    text = (TABLES / "openpai-data-parallel.txt").read_text("utf-8")
    assert set(re.findall(r"protocol\.taskRoles\.(\w+)\.", text)) == {"main"}


@pytest.mark.parametrize("row", [pytest.param(row, id=f"{row['seed']} {row['line'][:60]}") for row in ROWS])
def test_a_row_has_the_columns_of_its_kind_and_names_existing_things(row: Row) -> None:
    needed, possible = COLUMNS[row["kind"]]
    assert needed | {"seed", "line", "kind"} <= set(row) <= needed | possible | {"seed", "line", "kind", "note"}
    assert row["seed"] in ("000", "001", "002", "003", "004")
    assert all(value != "" for value in row.values())
    told = f"{row.get('why', '')} {row.get('note', '')}"
    assert set(re.findall(r"TY\d{3,4}", told)) <= set(titles_by_code())
    for path in re.findall(r"(?:tests|docs|stacks|schemas)/[\w./-]*\w", told):
        assert (HERE.parents[1] / path).exists(), path


def test_no_row_is_repeated() -> None:
    told = [json.dumps({**row, "note": ""}, sort_keys=True) for row in ROWS]
    assert len(told) == len(set(told))


def test_every_port_of_the_documented_mode_has_a_line_of_the_documents() -> None:
    """Each one answers a line of the documents."""
    network = plan("oci-documented").network
    answered = {
        row["ports"] for row in ROWS if row["kind"] == "port" and row["stack"] == "oci-documented" and "with" not in row
    }
    within = {port_range_text(rule.ports, "all") for rule in security_rules(network).ingress}
    assert within == answered
    assert {rule.peer for rule in security_rules(network).ingress} == {network.subnet_cidr}


def test_every_statement_of_the_documented_mode_has_a_line_of_the_documents() -> None:
    """Each one answers a line of the documents."""
    made = plan("oci-documented")
    answered = {
        filled(text, made)
        for row in ROWS
        if row["kind"] == "statement" and row["stack"] == "oci-documented" and "with" not in row
        for text in row.get("taken", [row["means"]])
    }
    assert {line.text for line in policy_lines(made)} == answered
