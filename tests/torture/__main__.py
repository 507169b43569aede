# SPDX-License-Identifier: Apache-2.0
"""`python -m tests.torture`: runs the tests that `make test` samples in full counts, and writes the results to
docs/reliability.md.

`--scale 0.05` runs a twentieth of the counts, `--seed N` other random cases. `--part NAME` runs one part and does not
write the page; with `--row` it writes the part's row.
"""

from __future__ import annotations

import contextlib
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from xml.etree import ElementTree

import click

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reliability.md"
LONGEST_TIDYING_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Part:
    """One part: the full count, pytest's arguments for the count and the first seed, and the tested property."""

    holds: str
    unit: str
    full: int
    tests: Sequence[str]
    env: Mapping[str, str]
    options: Sequence[str] = ()

    def told(self, count: int, seed: int) -> tuple[dict[str, str], list[str]]:
        words = {"count": count, "first": seed, "last": seed + count}
        env = {name: text.format(**words) for name, text in self.env.items()}
        return env, [*self.tests, *(option.format(**words) for option in self.options)]


COUNTED = {"TRAINYARD_TORTURE": "{count}", "TRAINYARD_FIRST_SEED": "{first}"}
PARTS = {
    "mutations": Part(
        "a mutated stack file gives findings, never a traceback", "files", 20000,
        ("tests/torture/test_mutations.py",), COUNTED,
    ),
    "properties": Part(
        "no input breaks a property of schemas, plan, iam, rules or language", "examples of each", 5000,
        ("tests/unit", "tests/contract"), COUNTED, ("-m", "hypothesis", "--hypothesis-seed={first}"),
    ),
    "set-up": Part(
        "set-up is killed while it gets the engine: the cache has a complete engine or none, and the next set-up works",
        "kills", 300,
        ("tests/torture/test_set_up_kills.py",), COUNTED,
    ),
    "cloud": Part(
        "the local cloud is killed during mixed work: every answered change is kept, and the data is consistent",
        "rounds", 40,
        ("tests/flows/test_cloud_killed.py",), COUNTED,
    ),
    "input": Part(
        "hostile requests go to every operation of the local cloud: no 500, processor time in proportion to the bytes,"
        " a refused call changes nothing, and the same server answers", "requests", 50000,
        ("tests/flows/test_cloud_fuzz.py",), COUNTED, ("--hypothesis-seed={first}",),
    ),
    "access": Part(
        "another team's compartment or resource is refused in every field of every call, and no response reveals it",
        "ways to hide it", 3, ("tests/flows/test_cloud_matrix.py", "tests/flows/test_cloud_targets.py"), COUNTED,
    ),
    "borders": Part(
        "generated ambiguous requests change and read nothing outside of their sender's permissions, by the cloud's"
        " store; each fixed defect, put back, is found within 2,000", "requests", 20000,
        ("tests/torture/test_borders_aws.py", "tests/torture/test_borders_oci_openpai.py",
         "tests/torture/test_borders_isolation.py", "tests/torture/test_borders_secrets.py",
         "tests/torture/test_borders_wheels.py"), COUNTED,
    ),
    "up": Part(
        "`up` is killed (command, engine, plugin, cloud or all): the next `up` ends in the same state, no double, no"
        " orphan (with the local plugins, which mark their attempts; real providers: docs/aws.md)",
        "kills", 200, ("tests/flows/test_kills.py",), {"TRAINYARD_KILL_SEEDS": "{first}:{last}"},
    ),
    "second runs": Part(
        "a run is changed and started again while the old one runs, after it ended, or after `up` was killed: it ends"
        " like an undisturbed run, or resumes, with the right ranks", "replacements", 200,
        ("tests/torture/test_second_runs.py", "tests/flows/test_provider_engine.py"), COUNTED,
    ),
    "aws": Part(
        "each example of AWS, its variations and every machine are made, changed and destroyed with only the deployer's"
        " printed policies", "changes of each", 25,
        ("tests/torture/test_aws_deployers.py",), COUNTED,
    ),
    "review": Part(
        "a rule or a statement that allows more is in the review, compared with traffic and calls on the local clouds;"
        " one that is only written differently is not", "changes of each", 300,
        ("tests/torture/test_review_calls.py", "tests/torture/test_review_packets.py",
         "tests/programs/test_review_inputs.py", "tests/programs/test_review_drawn.py",
         "tests/unit/components/oci/review/test_oci_widenings.py",
         "tests/unit/components/aws/review/test_aws_widenings.py",
         "tests/unit/components/openpai/test_openpai_widenings.py", "tests/unit/trainyard/review/test_reach.py",
         "tests/recorded"),
        COUNTED,
    ),
    "drift": Part(
        "every change outside of Pulumi, made with the clouds' own clients, is found; an unchanged stack has no drift",
        "changes of each", 100,
        ("tests/flows/drift",), COUNTED,
    ),
    "flows": Part(
        "slow tests that add little coverage: longer lifecycles, changes and rehearsals of stacks",
        "round", 1, ("tests/flows", "tests/upgrade"), COUNTED,
        ("-m", "torture", "--ignore=tests/flows/test_first_hour.py",
         "--ignore=tests/flows/test_provider_engine.py", "--ignore=tests/flows/launcher/test_elastic.py"),
    ),
    "examples": Part(
        "examples come up side by side on one cloud, all and in pairs, in any order: up, unchanged, down, nothing left",
        "groups", 18, ("tests/flows/test_examples_up.py", "tests/flows/test_stand_ins.py"), COUNTED,
    ),
    "bare": Part(
        "`make up` trains on a machine with nothing but Debian, Python, make and git: as a user and as root, without"
        " and with nftables, with empty caches, on Debian 13, and without rules if they cannot be enforced",
        "round", 1, ("tests/bare/test_bare_machine.py",), COUNTED,
    ),
    "first hour": Part(
        "the commands of docs/first-hour.md work on OCI, OpenPAI and AWS DL1, and without environments, which `up`"
        " makes; on a machine with nothing but Debian they have results within ten minutes, and tutorials of today"
        " train there beside a load of twenty", "page", 1,
        ("tests/flows/test_first_hour.py", "tests/flows/test_tutorials.py", "tests/bare/test_bare_first_hour.py"),
        COUNTED,
    ),
    "why": Part(
        "`trainyard runs why` names what was done to a run (cause, rank, port or statement) in 95 of 100 cases, names"
        " nothing wrong with certainty, and accuses nobody in half as many undisturbed runs", "cases", 200,
        ("tests/why",), COUNTED,
    ),
    "preflight": Part(
        "every rule of every framework is closed once: before training, all nodes name the pairs, the ports and the"
        " rule to add, and ask for nothing else", "round", 1,
        ("tests/frameworks/test_preflight.py", "tests/flows/test_preflight.py"), COUNTED,
    ),
    "frameworks": Part(
        "each framework trains on two and on three hosts under its planned rules, and fails without any one of them;"
        " it also trains on tasks of OpenPAI, and programs that were made for OpenPAI train unchanged",
        "round", 1,
        ("tests/frameworks", "tests/flows/launcher/test_elastic.py", "tests/flows/openpai/test_training.py"), COUNTED,
    ),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Outcome:
    name: str
    count: int
    tests: int
    failed: int
    skipped: int
    seconds: float


@click.command()
@click.option("--scale", default=1.0, help="The share of the full counts to run.")
@click.option("--seed", default=0, help="The first seed.")
@click.option("--part", "only", type=click.Choice(list(PARTS)), help="Run only this part.")
@click.option("--row", is_flag=True, help="With --part: write its row to the page.")
@click.option("--jobs", default="auto", help="The number of processes, as pytest-xdist takes it.")
def main(scale: float, seed: int, only: str | None, row: bool, jobs: str) -> None:
    """Runs the stress tests in full counts."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    outcomes = [_run(name, max(1, round(PARTS[name].full * scale)), seed, jobs) for name in ([only] if only else PARTS)]
    if not only:
        PAGE.write_text(page(outcomes, scale, seed), "utf-8")
    elif row:
        PAGE.write_text(with_row(PAGE.read_text("utf-8"), outcomes[0], seed), "utf-8")
    sys.exit(any(outcome.failed or not outcome.tests for outcome in outcomes))


def _run(name: str, count: int, seed: int, jobs: str) -> Outcome:
    part = PARTS[name]
    env, words = part.told(count, seed)
    click.echo(f"torture: {name}, {count:,} {part.unit} from seed {seed}")
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="trainyard-torture-") as folder:
        report = Path(folder, "report.xml")
        _pytest([*words, "-q", "-n", jobs, f"--junit-xml={report}"], {**_environment(), **env})
        counted = _counts(report)
        for score in _scores(report):
            click.echo(score)
    return Outcome(name, count, *counted, time.monotonic() - start)


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name != "TRAINYARD_TORTURE"}


def _pytest(words: Sequence[str], env: Mapping[str, str]) -> None:
    """Runs pytest in a process group, which is ended with this process if that is interrupted. Its tests clean up."""
    process = subprocess.Popen([sys.executable, "-m", "pytest", *words], cwd=ROOT, env=env, start_new_session=True)
    try:
        process.wait()
    finally:
        for number in (signal.SIGINT, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError, subprocess.TimeoutExpired):
                if process.poll() is None:
                    os.killpg(process.pid, number)
                    process.wait(LONGEST_TIDYING_SECONDS)


def _counts(report: Path) -> tuple[int, int, int]:
    """The numbers of tests, of failed and of skipped ones. All are 0 if pytest could not start."""
    if not report.exists():
        return 0, 0, 0
    suites = list(ElementTree.parse(report).getroot().iter("testsuite"))
    tests, failures, errors, skipped = (
        sum(int(suite.get(name, "0")) for suite in suites) for name in ("tests", "failures", "errors", "skipped")
    )
    return tests, failures + errors, skipped


def _scores(report: Path) -> list[str]:
    """What tests say beside whether they passed: the property `score` of each."""
    found = ElementTree.parse(report).getroot().iter("property") if report.exists() else ()
    return [one.get("value", "") for one in found if one.get("name") == "score"]


def page(outcomes: Sequence[Outcome], scale: float, seed: int) -> str:
    """docs/reliability.md."""
    whole = "the full counts" if scale == 1 else f"{scale:.0%} of the full counts: a sample, not yet the whole"
    rows = "\n".join(map(_row, outcomes))
    return f"""# Reliability

For everybody who asks how trainyard behaves under faults. `make torture` wrote this page about its last run.

It ran {whole}, from seed {seed}.

| part | what must hold | tried | tests | failed | skipped | took | in full |
| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |
{rows}

- {datetime.now(UTC):%Y-%m-%d}, {platform.system()} {platform.machine()}, {os.cpu_count()} processors, Python \
{platform.python_version()}:
  `TRAINYARD_TORTURE=1 python -m tests.torture --scale {scale:g} --seed {seed}`.
- To repeat it: `python -m tests.torture --part NAME --seed N`. A test that failed names its seed, and the same seed
  draws the same mutation, victim and moment. The machine decides how far a process had come at that moment.
- `up` is killed at a moment drawn from an undisturbed `up`. The victim is one of these: everything, the command, one
  process that it started (engine, language host, a plugin, the policy pack), the cloud. Afterwards the test counts the
  resources in the cloud by kind and name, and Pulumi's state by URN. No two resources may share an id.
- `make test` runs the same in small, seeded samples. `TRAINYARD_SEED=N make test` draws other frameworks, rules and
  examples.
"""


def _row(one: Outcome) -> str:
    part = PARTS[one.name]
    return (
        f"| {one.name} | {part.holds} | {one.count:,} {part.unit} | {one.tests} |"
        f" {one.failed} | {one.skipped} | {one.seconds:,.0f} s | {part.full:,} |"
    )


def with_row(text: str, one: Outcome, seed: int) -> str:
    """The page with a new row for a part that ran alone, and a line about that."""
    alone = f"- `{one.name}` ran alone: "
    lines = [line for line in text.splitlines() if not line.startswith((f"| {one.name} |", alone))]
    # After the last row of the table, and after the last line of the list.
    last = max(number for number, line in enumerate(lines) if line.startswith("| "))
    lines.insert(last + 1, _row(one))
    return "\n".join([*lines, f"{alone}{datetime.now(UTC):%Y-%m-%d}, from seed {seed}."]) + "\n"


if __name__ == "__main__":
    main()
