# SPDX-License-Identifier: Apache-2.0
"""Framework files come from users: each invalid column is named."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest

from catalog import frameworks
from components.plan.build import plan_of
from schemas.judge import judge_file

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "frameworks.md").read_text("utf-8")
RAY, EXTENDING = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
PROCESSES = '\n[options.procs]\ntype = "integer"\ndefault = 1\nmeaning = "Processes."\n'
ADS = '[ads]\ncluster = "DASK"\n[[ads.start_options]]\n'
DASH = '\n[options.dash]\ntype = "boolean"\ndefault = true\nmeaning = "A dashboard."\n'


def complaint(text: str) -> str:
    with pytest.raises(frameworks.FrameworkError) as raised:
        every_strategy(tomllib.loads(text))
    return str(raised.value)


def every_strategy(columns: dict[str, Any]) -> None:
    for strategy in (None, *frameworks.parse_framework(columns).strategies):
        frameworks.parse_framework(columns, strategy)


# A text of the file, its replacement, and the expected message.
WRONG: dict[str, tuple[str, str, str]] = {
    "a column nobody knows": (
        'summary = "Ray for searches"',
        'summary = "Ray for searches"\ncolour = 1',
        "has no column `colour`",
    ),
    "no name": ('name = "search" ', "", "needs `name`"),
    "a name that is none": ('name = "search" ', "name = 3 ", "`name` must be a text"),
    "roles that are none": ("[roles.head]", "[roles]\nx = 3\n[roles.head]", "`roles.x` must be a table"),
    "a role without its mode": ('mode = "MAIN"\n', "", "`roles.head` needs `mode`"),
    "a mode that ADS does not know": ('"MAIN"', '"HEAD"', "`roles.head.mode` must be one of MAIN, WORKER, PS"),
    "a number as text": ("minimum = 1\nmaximum", 'minimum = "1"\nmaximum', "`roles.head.minimum` must be a whole"),
    "true is no number": ("minimum = 1\nmaximum", "minimum = true\nmaximum", "`roles.head.minimum` must be a whole"),
    "fewer than none": ("minimum = 1\nmaximum", "minimum = -1\nmaximum", "`minimum` must be 0 or more"),
    "at most less than at least": ("maximum = 1", "maximum = 0", "`maximum` must not be smaller"),
    "words that are no list": ('start = ["ray", "start", "--head"', 'start = "ray" #', "start` must be a list"),
    "a port that nobody has awaited": ('awaits = ["head"]', 'awaits = ["tail"]', "awaits `tail`, which is not"),
    "a port of nobody, on every node": ('awaits = ["head"]', 'awaits_every = ["tail"]', "awaits `tail`, which is not"),
    "a port that the kernel picks": (
        "default = 6379",
        'default = "all"',
        "awaits `head`, but the kernel picks its ports",
    ),
    "a port of UDP that it awaits": (
        "default = 6379",
        'default = 6379\nprotocol = "udp"',
        "awaits `head`, whose protocol is UDP, so nothing says whether it answers",
    ),
    "a protocol without ports": (
        "default = 6379",
        'default = 6379\nprotocol = "icmp"',
        "`ports[0].protocol` must be one of tcp, udp",
    ),
    "a port that is not open to it": (
        'reached_from = ["head", "worker"]\ndefault = 6379',
        'reached_from = ["head"]\ndefault = 6379',
        "`roles.worker` awaits `head`, which it may not reach: add `worker`",
    ),
    "nodes that wait for themselves": (
        'awaits = ["head"]',
        'awaits_every = ["worker"]',
        "none of them would ever start",
    ),
    "a command that is no list": ('awaits = ["head"]', 'awaits_command = "true"', "awaits_command` must be a list"),
    "a command with an address of nobody": (
        'awaits = ["head"]',
        'awaits_command = ["true", "{address.tail}"]',
        "`roles.worker.awaits_command` has the placeholder `{address.tail}`",
    ),
    "an address of nobody": ("{address.head}:{port.head}", "{address.tail}:1", "has the placeholder `{address.tail}`"),
    "a port of nobody": ("{port.head}", "{port.tail}", "has the placeholder `{port.tail}`"),
    "a process's rank before there is one": (
        '"{address}"',
        '"{process}"',
        "`roles.head.start` has the placeholder `{process}`",
    ),
    "a variable's name": ("RAY_ADDRESS", '"RAY-ADDRESS"', "which is not a valid name of a variable"),
    "a role's name": ("[roles.worker]", '[roles."a worker"]', "`roles` has `a worker`"),
    "a label's name": ('label = "worker"', 'label = "a.b"', "`ports` has the label `a.b`"),
    "a label twice": ('label = "worker"', 'label = "head"', "has the label `head` twice"),
    "a role that is not there": ('listens = ["head"]', 'listens = ["tail"]', "names the role `tail`"),
    "nobody listens": ('listens = ["head"]', "listens = []", "needs a role that `listens`"),
    "a port that is none": ("default = 6379", 'default = "x"', "`default` must be a port"),
    "a port too high": ("default = 6379", "default = 70000", "`default` must be a port"),
    "a range backwards": ("10002-10101", "10101-10002", "`default` must be a port"),
    "a range too small": ("minimum_size = 100", "minimum_size = 101", "fewer ports than `minimum_size`"),
    "an option of nobody": ("minimum_size = 100", 'per_node = "procs"', "names the option `procs`, which does not"),
    "a type that is none": ("[environment]", f"{PROCESSES.replace('integer', 'int')}\n[environment]", "must be one of"),
    "a default of another type": (
        "[environment]",
        f"{PROCESSES.replace('default = 1', 'default = true')}\n[environment]",
        "is not of the type integer",
    ),
    "a default that is not finite": (
        "[environment]",
        f"{PROCESSES.replace('integer', 'number').replace('default = 1', 'default = nan')}\n[environment]",
        "`default` is outside `minimum` and `maximum`",
    ),
    "an argument of ADS for nobody": (
        "[environment]",
        f'{ADS}role = "tail"\nwhen = "dash"\n{DASH}\n[environment]',
        "`ads.start_options` names the role `tail`",
    ),
    "an argument of ADS with a port of nobody": (
        "[environment]",
        f'{ADS}role = "head"\nwhen = "dash"\nthen = ["{{port.tail}}"]\n{DASH}\n[environment]',
        "`ads.start_options` has the placeholder `{port.tail}`",
    ),
    "a default that may not be": ("[environment]", f"{PROCESSES}minimum = 2\n[environment]", "`default` is outside"),
    "a default that is no value": (
        "[environment]",
        '[options.how]\ntype = "string"\ndefault = "a"\nvalues = ["b"]\nmeaning = "How."\n[environment]',
        "`default` is not one of its `values`",
    ),
    "a strategy that is not there": (
        'summary = "Ray for searches"',
        'summary = "Ray for searches"\ndefault_strategy = "x"',
        "no strategy `x`",
    ),
    "a strategy with a wrong port": (
        "[environment]",
        '[[strategies.x.ports]]\nlabel = "y"\nlistens = ["z"]\nreached_from = []\ndefault = 1\nwhy = ""\n[environment]',
        "names the role `z`",
    ),
}


@pytest.mark.parametrize(("old", "new", "said"), WRONG.values(), ids=WRONG)
def test_what_a_file_gets_wrong_is_said(old: str, new: str, said: str) -> None:
    assert RAY.count(old) >= 1
    assert said in complaint(RAY.replace(old, new, 1))


def test_an_option_that_counts_is_a_number() -> None:
    text = f'processes = "dash"\n{RAY}{DASH}'
    assert "`processes` names the option `dash`, which is not of the type integer" in complaint(text)


def test_every_node_of_a_role_needs_something_that_listens_before_the_command() -> None:
    text = re.sub(r"service = true\nawaits = .*\nstart = .*\n", "runs_command = true\n", RAY)
    text = text.replace("runs_command = true", 'runs_command = true\nawaits_every = ["worker"]', 1)
    assert "nothing listens there before the command: give `roles.worker` a `start`" in complaint(text)


def test_a_file_that_extends_another_says_only_what_differs() -> None:
    base, made = frameworks.framework_row("pytorch"), frameworks.parse_framework(tomllib.loads(EXTENDING))
    assert (made.roles, made.ports, made.options, made.wraps) == (base.roles, base.ports, base.options, base.wraps)
    assert made.environment == {**base.environment, "PL_TRAINER_NUM_NODES": "{nodes}"}
    assert made.gang
    assert made.processes == "processes"


def test_what_a_file_names_again_is_its_own() -> None:
    text = """
    [roles.main]
    minimum = 1
    mode = "MAIN"
    why = "why"
    runs_command = true
    [[ports]]
    label = "data"
    listens = ["main"]
    reached_from = ["main"]
    default = 1
    why = "why"
    [[ports]]
    label = "more"
    listens = ["main"]
    reached_from = ["main"]
    default = 2
    why = "why"
    """
    made = frameworks.parse_framework(tomllib.loads('stands_for = ["x"]\n' + EXTENDING + text))
    assert made.roles["main"].maximum is None
    assert [(port.label, port.default) for port in made.ports] == [("rendezvous", 29400), ("data", 1), ("more", 2)]
    assert made.stands_for == ("x", *frameworks.framework_row("pytorch").stands_for)


@pytest.mark.parametrize("name", ['"keras"', '"lightning2"', "3", '["pytorch"]'])
def test_only_a_built_in_framework_can_be_extended(name: str) -> None:
    assert "`extends` must be one of accelerate, dask" in complaint(EXTENDING.replace('"pytorch"', name))


def test_a_framework_without_roles_is_none() -> None:
    assert complaint('name = "x"\nsummary = "x"\nrank = "x"\nroles = {}') == "`roles` is empty"


def test_a_role_needs_something_to_run() -> None:
    text = re.sub(r"start = .*\nruns_command = true\n", "", RAY, count=1)
    assert "`roles.head` has nothing to run" in complaint(text)


def test_the_page_s_example_is_a_framework() -> None:
    row = frameworks.parse_framework(tomllib.loads(RAY))
    assert list(row.roles) == ["head", "worker"]
    assert [port.label for port in row.ports] == ["head", "worker", "manager", "objects"]


def test_a_stack_uses_the_page_s_example_as_the_page_says(tmp_path: Path) -> None:
    (tmp_path / "search.toml").write_text(RAY)
    file = tmp_path / "Pulumi.search.yaml"
    file.write_text(
        "config:\n  oci:region: us-ashburn-1\n  trainyard:team: lab\n  trainyard:environment: dev\n"
        "  trainyard:tenancy: ocid1.tenancy.oc1..aaaacompany\n  trainyard:compartment: ocid1.compartment.oc1..aaaalab\n"
        "  trainyard:access: { users: { group: scientists } }\n  trainyard:frameworks: { search: search.toml }\n"
        "  trainyard:jobs:\n    grid: { framework: search, image: '${registry}:1', shape: VM.GPU.A10.1,"
        " command: tune.py, roles: { head: 1, worker: 3 }, ports: { head: 6380 }, runs: { base: {} } }\n"
    )
    judged = judge_file(file)
    assert judged.findings == ()
    plan = plan_of(judged)
    opened = {(rule.source, rule.target, str(rule.ports)) for rule in plan.network.rules if "/" in rule.source}
    ways = (("head", "worker"), ("worker", "head"), ("worker", "worker"))
    assert opened == {
        ("grid/worker", "grid/head", "6380"),
        *((f"grid/{one}", f"grid/{other}", "10002-10101") for one, other in ways),
        *((f"grid/{one}", f"grid/{other}", port) for one, other in ways for port in ("10000", "10001")),
    }
    head, worker = plan.jobs["grid"].runs["base"].nodes[:2]
    assert head.launch["start"][-1] == "6380"
    assert worker.launch["start"][4] == "{address.head}:6380"
    assert worker.launch["command"] == []


def rows(kind: Any) -> Iterator[Any]:
    """A dataclass and those its columns hold."""
    yield kind
    for hint in get_type_hints(kind).values():
        for part in (hint, *get_args(hint), *(inner for outer in get_args(hint) for inner in get_args(outer))):
            if is_dataclass(part):
                yield from rows(part)


def test_the_page_explains_every_column() -> None:
    columns = {column.name for kind in rows(frameworks.Document) for column in fields(kind)}
    assert len(columns) > 30
    assert {name for name in columns if f"`{name}`" not in PAGE} == set()
