# SPDX-License-Identifier: Apache-2.0
"""Every line of the documents is answered by the examples, or is said to belong elsewhere (seeds.toml)."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import iam
from catalog.tables import table
from components.oci.rules import security_rules
from components.oci.statements import lines, matching_rule
from components.plan.model import Plan
from iam.parse import parse
from iam.permissions import verb_covers
from schemas.model import PortRange
from tests.examples import plan, stack

HERE = Path(__file__).parent
TABLES = HERE.parent / "programs" / "tables"
ROWS = tomllib.loads((HERE / "seeds.toml").read_text("utf-8"))["row"]
KINDS = ("port", "statement", "matching", "holds", "stacks", "elsewhere", "said")

Row = Mapping[str, Any]


def rows(kind: str) -> list[Any]:
    chosen = [row for row in ROWS if row["kind"] == kind]
    return [pytest.param(row, id=f"{row['seed']} {row['line'][:60]} {row.get('ports', '')}") for row in chosen]


def filled(text: str, made: Plan) -> str:
    access = made.access
    words = {
        "users": f"group {access.users_group}",
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
    network = plan(row["stack"]).network
    assert network.mode == row["mode"]
    open_ports = [rule.ports for rule in security_rules(network).ingress if rule.peer == network.subnet_cidr]
    wanted = None if row["ports"] == "all" else PortRange.from_shorthand(row["ports"])
    assert wanted in open_ports


@pytest.mark.parametrize("row", rows("statement"))
def test_a_statement_of_the_documents_is_made_or_covered(row: Row) -> None:
    made = plan(row["stack"])
    assert made.access.mode == row["mode"]
    texts = {line.text for line in lines(made)}
    taken = [filled(text, made) for text in row.get("taken", [row["means"]])]
    assert set(taken) <= texts
    meant = parse(filled(row["means"], made))
    statements = [parse(text) for text in taken]
    left_out = verb_covers("manage", row["without"]) if "without" in row else frozenset()
    assert iam.grants(meant.grant) - left_out <= frozenset().union(*(iam.grants(one.grant) for one in statements))
    for one in statements:
        assert (one.subject, one.location, one.condition) == (meant.subject, meant.location, meant.condition)


@pytest.mark.parametrize("row", rows("matching"))
def test_a_rule_of_the_documents_gathers_the_runs(row: Row) -> None:
    made = plan(row["stack"])
    assert matching_rule(made, "runs") == filled(row["rule"], made)


@pytest.mark.parametrize("row", rows("holds"))
def test_the_table_of_an_example_shows_what_a_line_asks_for(row: Row) -> None:
    blocks = (TABLES / f"{row['stack']}.txt").read_text("utf-8").split("\n\n")
    of_type = [block for block in blocks if block.split("  ")[0].split("\n")[0] == row["type"]]
    assert any(row["text"] in block for block in of_type), of_type


@pytest.mark.parametrize("row", rows("stacks"))
def test_a_framework_of_the_documents_has_its_examples(row: Row) -> None:
    for name in row["stacks"]:
        assert {job.framework for job in stack(name).jobs.values()} == {row["framework"]}


@pytest.mark.parametrize("row", rows("elsewhere"))
def test_what_belongs_elsewhere_names_a_platform_that_is_not_deployed_to(row: Row) -> None:
    platforms = table("platforms")
    assert not platforms[row["platform"]]["deploys"], "the row can be held against that platform's examples now"
    if "feature" in row:
        assert row["feature"] in platforms["oci"]["lacks"]


def test_every_row_is_of_a_known_kind_and_says_something() -> None:
    for row in ROWS:
        assert row["kind"] in KINDS, row["line"]
        assert row["line"].strip()
        if row["kind"] in ("elsewhere", "said"):
            assert row["why"], row["line"]


def test_no_statement_of_the_documented_mode_comes_from_nowhere() -> None:
    """Each one answers a line of the documents."""
    made = plan("oci-documented")
    answered = {
        filled(text, made)
        for row in ROWS
        if row["kind"] == "statement" and row["stack"] == "oci-documented"
        for text in row.get("taken", [row["means"]])
    }
    assert {line.text for line in lines(made)} == answered
