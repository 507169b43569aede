# SPDX-License-Identifier: Apache-2.0
"""`trainyard run` as a command, on a stack that is up on the local cloud, with real runs."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import oci
import pytest

from tests.support.local_team import ROOT, summary
from tests.support.screens import on_terminal
from tests.support.try_world import TryTeam, jobs, try_team
from tests.support.waiting import LONGEST_SECONDS, eventually

pytestmark = pytest.mark.engine


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TryTeam]:
    with try_team(tmp_path_factory.mktemp("tries")) as one:
        one.trainyard("up", "local")
        yield one


def state_of(team: TryTeam) -> str:
    (state,) = (team.home / "pulumi" / "state").rglob("local.json")
    return state.read_text()


def test_a_try_is_the_deployed_run_with_other_arguments_and_leaves_no_trace_in_the_state(team: TryTeam) -> None:
    before = state_of(team)
    done = team.try_("line", "--follow", "--env", "COLOUR=green", "--", "--lr", "0.5")
    assert done.returncode == 0, done.stdout + done.stderr
    (title,) = re.findall(r"Started (line/try-[0-9a-f]{6}), like line/base: 1 node of VM", done.stderr)
    given = f"args ['--epochs', '5', '--lr', '0.5'] colour green place {title}"
    assert given in done.stdout, "the arguments of the run are replaced, those of the command stay"
    assert f"{title}: SUCCEEDED" in done.stderr

    ((name, left),) = team.outputs(title).items()
    assert re.fullmatch(rf"{title}/1/\w{{12}}/output/given\.txt", name), "where every run leaves its output"
    assert left == given
    (run,) = team.job_runs(title)
    assert run.freeform_tags["run"] == title.partition("/")[2]
    assert run.display_name == f"demo-local-{title.replace('/', '-')}"
    whole = team.clients.data_science.get_job_run(run.id).data
    assert whole.job_configuration_override_details.maximum_runtime_in_minutes == 60, "it costs no more than the job"
    assert state_of(team) == before
    assert summary(team.trainyard("up", "local")).keys() == {"unchanged"}
    assert f"local {title}: SUCCEEDED" in team.run("runs", "--local", "local", title).stdout


def test_without_arguments_a_try_repeats_the_run_that_is_named(team: TryTeam) -> None:
    first = team.try_("line", "-f")
    assert "args ['--epochs', '5', '--lr', '0.1'] colour red" in first.stdout, first.stderr
    other = team.try_("line/tuned", "-f", "--args", "--name 'two words'", "--name", "mine")
    assert "args ['--epochs', '5', '--name', 'two words'] colour blue place line/try-mine" in other.stdout, other.stderr
    again = team.try_("line", "--name", "mine")
    assert again.returncode == 1
    assert "there was a try line/try-mine already" in again.stderr


@pytest.mark.parametrize("job", ["pair", "groups"])
def test_two_concurrent_tries_have_separate_rendezvous(team: TryTeam, job: str) -> None:
    with ThreadPoolExecutor(2) as pool:
        titles = list(pool.map(lambda name: team.started(job, "--name", name, "--", "--wait", name), ("one", "two")))
    for title in titles:
        team.alive(title)
    nodes = []
    for title in titles:
        own = eventually(lambda title=title: _printed(team, title), lambda ranks: len(ranks) == 2)  # type: ignore[misc]
        assert set(own) == {"0", "1"}
        assert {args for args, _ in own.values()} == {f"['--epochs', '5', '--wait', '{title[-3:]}']"}
        assert len({peers for _, peers in own.values()}) == 1
        nodes.append(own["0"][1])
    assert not set(nodes[0].split(",")) & set(nodes[1].split(",")), "each try found its own nodes"
    for title in titles:
        team.finish(title)
        eventually(lambda title=title: team.states(title), lambda states: states == {"SUCCEEDED"})  # type: ignore[misc]
        assert len(team.outputs(title)) == 2


def _printed(team: TryTeam, title: str) -> dict[str, tuple[str, str]]:
    """By rank: the arguments of its script, and the nodes that it met."""
    lines = team.run("runs", "logs", "local", title, "--local", "--stacks", str(team.stacks)).stdout
    rows = re.findall(r"\[(\d) \S+\] (?:\[\d\] )?args (\[.*\]) colour None place None peers (\S+)", lines)
    return {rank: (args, peers) for rank, args, peers in rows}


def test_a_try_of_a_job_without_runs_uses_the_stack_file(team: TryTeam) -> None:
    done = team.try_("idle", "-f", "--", "--lr", "1")
    assert re.search(r"args \['--epochs', '5', '--lr', '1'\] colour red place idle/try-\w+", done.stdout), done.stderr


def test_a_try_runs_beside_the_run_that_it_copies(team: TryTeam) -> None:
    """While it trains, `logs`, `watch` and `cancel` work on it. Ctrl-C during `--follow` prints the command that ends
    it.
    """
    title = team.started("line", "--", "--wait")
    team.alive(title)
    place = ("--local", "--stacks", str(team.stacks))
    eventually(lambda: team.run("runs", "logs", "local", title, *place).stdout, lambda text: "--wait" in text)
    assert "SUCCEEDED" in team.run("runs", "list", "local", "line/base", *place).stdout, "another run is not touched"
    listed = json.loads(team.run("runs", "list", "local", title, "--format", "json", *place).stdout)
    assert [(one["job"], one["run"], one["state"]) for one in listed] == [("line", title[5:], "IN_PROGRESS")]
    ended = team.run("runs", "cancel", "local", title, "--yes", *place)
    assert f"Asked to end: {title}." in ended.stdout, ended.stderr
    eventually(lambda: team.states(title), lambda states: states == {"CANCELED"})

    following = subprocess.Popen(
        team.words("line", "--follow", "--name", "left", "--", "--wait"), cwd=ROOT, env=team.environment(),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert following.stdout is not None
        assert "--wait" in following.stdout.readline()
        following.send_signal(signal.SIGINT)
        _, said = following.communicate(timeout=LONGEST_SECONDS)
    finally:
        following.kill()
    assert following.returncode == 130
    assert "line/try-left goes on. To end it: " in said
    assert "trainyard runs cancel local line/try-left" in said
    assert team.states("line/try-left") == {"IN_PROGRESS"}
    team.finish("line/try-left")
    eventually(lambda: team.states("line/try-left"), lambda states: states == {"SUCCEEDED"})


@pytest.mark.torture
def test_a_progress_bar_is_redrawn_while_it_moves_and_keeps_its_last_state(team: TryTeam) -> None:
    """On a terminal, a progress bar redraws one line. `list` and `logs` show its current content."""
    place = ("--local", "--stacks", str(team.stacks))
    words = [*team.words("line", "--follow", "--name", "bar", "--", "--wait", "--bar")]
    with on_terminal(words, team.environment()) as shown:
        bars = shown.until(lambda text: len(set(re.findall(r"\[0\] ([\d.]+) s █ left ██\r\n", text))) >= 3)
        assert bars.count("\x1b[1F\x1b[J") >= 2, "each over the one before"
        listed = eventually(lambda: team.run("runs", "list", *_one("bar"), *place).stdout, lambda text: "█" in text)
        assert re.search(r"main-0 +running +\d+ s +[\d.]+ s █ left ██\n", listed)
        now = team.run("runs", "logs", *_one("bar"), *place).stdout
        assert re.search(r"\n\[0 main-0\] \[0\] [\d.]+ s █ left ██\n$", now), now
        team.finish("line/try-bar")
        whole = shown.until(lambda text: "SUCCEEDED" in text)
    left = re.sub(r"\x1b\[\d*[FJ]|\r\n", "", whole)
    assert not set("\x1b\r\ufffd") & set(left)
    logs = team.run("runs", "logs", *_one("bar"), *place).stdout
    assert "\n[0 main-0] [0] whole\n" in logs
    assert "█" not in logs, "what was drawn over"
    (raw,) = (team.cloud.home / "runs" / team.job_runs("line/try-bar")[0].id).glob("node-0.log")
    kept = b"".join(re.findall(rb"^\[0\+?\] (.*)$", raw.read_bytes().replace(b"\r", b"\0"), re.MULTILINE))
    assert kept.count(b"left") == kept.count(b"\0") - 1, "every drawing"
    parts = len(re.findall(rb"^\[0\+\]", raw.read_bytes(), re.MULTILINE))
    assert parts < kept.count(b"left") / 5, "few entries"


def _one(name: str) -> tuple[str, str]:
    return "local", f"line/try-{name}"


def test_a_progress_bar_in_a_pipe_is_printed_at_intervals(team: TryTeam) -> None:
    following = subprocess.Popen(
        team.words("line", "--follow", "--name", "pipe", "--", "--wait", "--bar"), cwd=ROOT, env=team.environment(),
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert following.stdout is not None
        assert "--wait" in following.stdout.readline()
        assert re.fullmatch(r"\[0 main-0\] \[0\] [\d.]+ s █ left ██\n", following.stdout.readline()), (
            "while it is drawn"
        )
        team.finish("line/try-pipe")
        rest, _ = following.communicate(timeout=LONGEST_SECONDS)
    finally:
        following.kill()
    assert "[0 main-0] [0] whole" in rest.splitlines()
    assert rest.count("left ██") < 3


def test_a_failed_try_sets_the_exit_code(team: TryTeam) -> None:
    failing = team.try_("line", "--follow", "--env", "PYTHONHOME=/nowhere")
    assert failing.returncode == 1
    assert re.search(r"line/try-\w+: FAILED\n  rank 0 \(main-0\) failed first: ", failing.stderr), failing.stderr


def test_a_rank_that_ended_early_is_named_and_not_the_rank_that_lost_it(team: TryTeam) -> None:
    title = team.started("pair", "--", "--leave")
    eventually(lambda: {run.lifecycle_state for run in team.job_runs(title)}, lambda states: "SUCCEEDED" in states)
    team.finish(title)
    done = team.run("runs", "logs", "local", title, "--follow", "--local", "--stacks", str(team.stacks))
    first = "rank 1 (worker-0) ended with 0 before the others: rank 0 (main-0) then ended with code 1: it lost a"
    assert f"{title}: FAILED\n  {first} connection" in done.stderr


def test_a_follower_reads_that_a_node_used_all_its_memory(team: TryTeam) -> None:
    done = team.try_("pair", "--follow", "--", "--hog")
    # Without control groups, the node's watcher ends it.
    why = r"rank 1 \(worker-0\) .*(?:the node used all its memory, 1\.0 GiB|of memory; 1\.0 GiB is the most)"
    assert re.search(rf"FAILED\n  {why}", done.stderr), done.stdout + done.stderr


@pytest.mark.parametrize(
    ("job", "words", "reason"),
    [
        ("lien", (), "no job `lien` in local: did you mean `line`?"),
        ("line/bose", (), "no run `bose` of line: did you mean `base`?"),
        ("line/try-mine", (), "`try-mine` is a try; name the run to start from: `base`, `tuned`"),
        ("idle/base", (), "the job idle has no runs in the stack file: name the job alone"),
        ("line", ("--env", "RANK=2"), "TY501 `RANK` is reserved: it says which process this is"),
        ("line", ("--env", "hunter2"), "--env takes NAME=VALUE"),
        ("line", ("--args", "'open"), "--args cannot be split into words: no closing quotation"),
        ("line", ("--args", "--lr 1", "--", "--lr"), "arguments come after `--` or in --args, not in both"),
        ("line", ("--name", "Not/A name"), "--name takes up to 36 lowercase letters"),
        ("line", ("--", "--password", "hunter2"), "TY504 holds what looks like a secret in plain text"),
    ],
)
def test_an_invalid_try_is_refused_before_any_node_starts(
    team: TryTeam, job: str, words: tuple[str, ...], reason: str
) -> None:
    runs = len(team.clients.data_science.list_job_runs(team.cloud.compartment).data)
    done = team.try_(job, *words)
    assert done.returncode in (1, 2)
    assert reason in done.stderr
    assert "hunter2" not in done.stdout + done.stderr, "a secret is not shown again"
    assert len(team.clients.data_science.list_job_runs(team.cloud.compartment).data) == runs


def test_a_secret_of_a_try_is_known_to_its_launcher(team: TryTeam) -> None:
    title = team.started("line", "--env", "HF_TOKEN=do-not-show")
    run = team.clients.data_science.get_job_run(team.job_runs(title)[0].id).data
    variables = run.job_configuration_override_details.environment_variables
    assert variables["HF_TOKEN"] == "do-not-show"
    assert json.loads(variables["TRAINYARD_LAUNCH"])["secrets"] == ["HF_TOKEN"]


def test_a_changed_stack_file_is_refused_and_anyway_starts_the_deployed_job(team: TryTeam) -> None:
    script, text = team.stacks / "local" / "train.py", team.file.read_text()
    script.write_text(script.read_text().replace("given =", "print('new code')\ngiven ="))
    changed = jobs()
    changed["line"] |= {"image": "${registry}:2.0", "env": {"COLOUR": "pink", "PLACE": "${job}/${run}"}}
    changed["line"]["shape"] = {"name": "VM.Standard.E4.Flex", "ocpus": 2, "memoryGb": 8}
    try:
        team.configure("jobs", changed)
        refused = team.try_("line", "--", "--lr", "2")
        assert refused.returncode == 1
        assert "has changed in the stack file since it was deployed: `code`, `image`, `shape`, `env.COLOUR`." in (
            refused.stderr
        )
        anyway = team.try_("line", "--follow", "--anyway", "--", "--lr", "2")
        assert "args ['--epochs', '5', '--lr', '2'] colour red" in anyway.stdout, anyway.stderr
        assert "new code" not in anyway.stdout
        changed["line"]["command"] = "train.py --epochs 9"
        team.configure("jobs", changed)
        blurred = team.try_("line", "--anyway", "--", "--lr", "2")
        assert "`command` has changed in the stack file" in blurred.stderr
        assert "it is unclear which parts of the old value to keep" in blurred.stderr
        plain = team.try_("line", "--follow", "--anyway")
        assert "args ['--epochs', '5', '--lr', '0.1']" in plain.stdout, plain.stderr
    finally:
        team.file.write_text(text)
        script.write_text(script.read_text().replace("print('new code')\n", ""))
    assert team.try_("line").returncode == 0


def test_a_try_without_the_needed_statement_is_refused(team: TryTeam) -> None:
    """The tenancy's user without further rights, first as a member of the stack's group, then not."""
    user, person = dict(team.cloud.env_for("user")), _user(team)
    done = team.try_("line", "--follow", env=user)
    assert done.returncode == 0, done.stdout + done.stderr
    run = team.job_runs(re.findall(r"Started (\S+),", done.stderr)[0])[0]
    assert team.clients.data_science.get_job_run(run.id).data.created_by == person, "as whoever calls"

    identity: Any = team.clients.identity
    for membership in identity.list_user_group_memberships(team.cloud.tenancy, user_id=person).data:
        identity.remove_user_from_group(membership.id)
    refused = team.try_("line", "--profile", "user")
    assert refused.returncode == 1
    assert f"{person} (profile user) may not do that" in refused.stderr
    missing = re.findall(r"  (Allow group scientists to .* in compartment id \S+)", refused.stderr)
    assert any("DATA_SCIENCE_JOB_RUN_CREATE" in text or "data-science-job-runs" in text for text in missing), missing
    assert "the caller is not in the group" in refused.stderr
    assert "Traceback" not in refused.stderr


def _user(team: TryTeam) -> str:
    return str(oci.config.from_file(str(team.cloud.config_file), "user")["user"])
