# SPDX-License-Identifier: Apache-2.0
"""`trainyard up` from a stack file to a trained run, with the real engine and the local cloud."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from components.oci.client.session import DEPLOYER, session_of
from localcloud import control
from tests.support.local_team import ROOT, SEALED, Team, ended, summary
from tests.support.review_examples import git
from trainyard.local.cloud_use import StackClaim

pytestmark = pytest.mark.engine


@pytest.fixture
def team(tmp_path: Path) -> Iterator[Team]:
    one = Team(tmp_path)
    yield one
    one.end()


@pytest.mark.torture
def test_the_stack_of_make_up_is_brought_up_and_down(tmp_path: Path) -> None:
    team = Team(tmp_path, shipped=True)
    try:
        first = team.trainyard("up", "local")
        assert set(summary(first)) == {"created"}
        assert "run      line/base: SUCCEEDED" in first
        assert re.search(r"\[0\] done: y = (2\.9|3\.0)\d x .* on 2 workers", first), "what it printed is read back"
        assert re.search(r"line/base/1/\w{12}/output/result\.json", first), "what it left in the bucket is shown"
        assert re.search(r'"slope": (2\.9|3\.0)', first)
        assert set(summary(team.trainyard("up", "local"))) == {"unchanged"}
        assert "Nothing is left; the local cloud is stopped." in team.trainyard("down", "local")
        assert team.in_cloud() == []
    finally:
        team.end()


def test_up_trains_a_second_up_changes_nothing_down_leaves_nothing(team: Team) -> None:
    first = team.trainyard("up", "local")
    assert summary(first) == {"created": 21}
    assert "run      line/base: SUCCEEDED" in first
    assert re.search(r"console  http://127\.0\.0\.1:\d+/console", first)
    assert re.search(r"\[\S+\] done: y = (2\.9|3\.0)\d x", first), "what the run printed is read back"

    second = team.trainyard("up", "local")
    assert summary(second) == {"unchanged": 21}
    assert summary(team.trainyard("preview", "local")) == {"unchanged": 21}

    team.change("bucket: { name: demo-local-training", "bucket: { name: demo-local-renamed")
    renamed = team.trainyard("preview", "local")
    assert re.search(r"warning: trainyard:bucket: the bucket `demo-local-training` holds about \d+ objects?;", renamed)
    assert "`up` would fail at its end" in renamed
    assert "bucket replace" in renamed
    team.change("bucket: { name: demo-local-renamed", "bucket: { name: demo-local-training")

    a_review_of_the_engines_preview_says_what_one_without_it_says(team)

    cloud = control.find_running_cloud(team.home / "cloud")
    assert cloud is not None
    last = team.trainyard("down", "local")
    assert re.search(r"bucket +demo-local-training goes with its \d+ objects?\n", last.partition("Destroying")[0])
    assert summary(last) == {"deleted": 21}
    assert ended(cloud.pid), "the local cloud is stopped with its last stack"
    assert not list((team.home / "pulumi" / "state").rglob("local.json"))
    assert "encryptionsalt" not in team.file.read_text(), "a team's file is never written to"


def a_review_of_the_engines_preview_says_what_one_without_it_says(team: Team) -> None:
    """A wider rule, a statement more and a replaced job: both reviews show all three, and the same."""
    git(team.stacks, "init", "-q")
    git(team.stacks, "add", "-A")
    git(team.stacks, "commit", "-qm", "before")
    team.configure("network", {**team.written("network"), "nat": True})
    jobs = team.written("jobs")
    jobs["line"] |= {
        "command": "train.py --epochs 6",
        "inputs": [{"bucket": "company-pictures", "mount": "/data/more"}],
    }
    team.configure("jobs", jobs)
    seen = team.attempt("preview", "local", "--json", "--show-sames")
    assert seen.returncode == 0, seen.stderr
    file = team.home / "preview.json"
    file.write_text(seen.stdout)
    by_engine, offline = (team.review(*words) for words in (("--preview", str(file)), ("--against", "HEAD")))
    keys = ("kind", "opened", "closed", "gained", "lost", "hanging")
    assert {key: by_engine[key] for key in keys} == {key: offline[key] for key in keys}
    assert any(one["outside"] and "TCP 443" in one["words"] for one in offline["opened"])
    assert any("company-pictures" in one["resource"] for one in offline["gained"])
    replaced = [_replaced(one) for one in (by_engine, offline)]
    assert ("trainyard:index:Run", "line/base") in replaced[0]
    assert replaced[0] == replaced[1]
    git(team.stacks, "checkout", "--", ".")


def _replaced(review: dict[str, Any]) -> set[tuple[str, str]]:
    return {(one["type"], one["name"]) for one in review["changes"] if one["kind"] == "replaced"}


@pytest.mark.torture
def test_new_arguments_or_images_replace_the_run_and_nothing_else(team: Team) -> None:
    team.trainyard("up", "local")
    team.change("base: { until: finished }", "base: { until: finished, args: [--points, '50'] }")
    output = team.trainyard("up", "local")
    assert summary(output) == {"replaced": 1, "unchanged": 20}
    argument = "nodes[0].environment.TRAINYARD_LAUNCH.command[3]: + --points 50"
    assert re.search(rf"trainyard:index:Run line/base [^\n]*\[diff: ~{re.escape(argument)}\]", output)

    team.change("${registry}:1.0", "${registry}:1.1")
    team.change("maximumRuntimeMinutes: 60", "maximumRuntimeMinutes: 90")
    output = team.trainyard("up", "local", "--diff")
    assert summary(output) == {"replaced": 1, "unchanged": 20}, "the job and the history of its runs stay"
    assert re.search(r'image +: "iad\.\S+:1\.0" => "iad\.\S+:1\.1"', output)
    assert "image: iad" not in output, "the sentences are for the view of one line"

    team.change("ocpus: 1", "ocpus: 2")
    team.change("10.20.0.0/16", "10.20.0.0/17")
    team.change("until: finished,", f"until: finished, env: {{ TOKEN: {json.dumps(SEALED)} }},")
    seen = team.trainyard("preview", "local")
    assert "vcn update [diff: ~cidrBlocks[0]: 10.20.0.0/16 -> 10.20.0.0/17]" in seen
    assert "line update [diff: ~jobInfrastructureConfigurationDetails.jobShapeConfigDetails.ocpus: 1 -> 2]" in seen
    assert "nodes[0].environment.TOKEN: [secret]" in seen
    assert "nodes[0].environment.TRAINYARD_LAUNCH.secrets[0]: + TOKEN" in seen
    assert "[diff: ]" not in seen


# A script that writes files where tutorials do. The node has a /tmp of its own.
TUTORIAL = """
for name, size in {"snapshot.pt": 10, "large.bin": 51_000_000, "wanted.bin": 51_000_000, "/tmp/model.pt": 2000}.items():
    with open(name, "wb") as file:
        file.truncate(size)
print("about to fail")
raise SystemExit(3)
"""


@pytest.mark.torture
def test_a_failed_run_ends_up_with_its_reason_and_last_lines(team: Team) -> None:
    """Its files are kept, or named in its log."""
    (team.stacks / "local" / "train.py").write_text(TUTORIAL)
    team.change("maximumRuntimeMinutes: 60", "maximumRuntimeMinutes: 60\n      keep: ['want*.bin']")
    done = team.run("up", "local", "--local", "--stacks", str(team.stacks))
    output = done.stdout + done.stderr
    assert done.returncode != 0
    assert "about to fail" in output
    assert "exit code 3" in output.lower() or "code 3" in output, output
    assert "Traceback" not in output
    storage = session_of(team.cloud, DEPLOYER).client("object_storage")
    listed = storage.list_objects(team.cloud.namespace, "demo-local-training", fields="size").data.objects
    kept = {item.name.partition("/output/")[2]: item.size for item in listed if "/output/" in item.name}
    assert kept == {"workdir/snapshot.pt": 10, "workdir/wanted.bin": 51_000_000, "workdir/large.bin": 51_000_000}
    log = team.trainyard("runs", "logs", "local", "line/base")
    named = re.findall(r"\.launcher\]   (.*)", log.partition("that training made will be lost with this node")[2])
    assert named == ["2.0 kB  /tmp/model.pt: outside of the working directory"]
    assert "1 file (2.0 kB) not kept" in team.trainyard("runs", "list", "local", "line/base")
    shown = team.trainyard("runs", "outputs", "local", "line/base")
    assert "not kept of rank 0: 1 file, 2 kB\n" in shown
    assert "  2 kB  /tmp/model.pt: outside of the working directory\n" in shown


@pytest.mark.torture
def test_a_truncated_state_is_replaced_by_its_backup(team: Team) -> None:
    team.trainyard("up", "local")
    (state,) = (team.home / "pulumi" / "state").rglob("local.json")
    state.write_text(state.read_text()[:-1000])
    again = team.attempt("up", "local")
    assert again.returncode == 0, again.stdout + again.stderr
    assert "cut off" in again.stderr
    made = team.in_cloud()
    assert set(summary(team.trainyard("up", "local"))) == {"unchanged"}
    assert team.in_cloud() == made
    assert "Nothing is left" in team.trainyard("down", "local")
    assert team.in_cloud() == [], "what the older state did not know of went too"


@pytest.mark.torture
def test_a_stack_that_another_command_has_locked_is_refused(team: Team) -> None:
    team.trainyard("up", "local")
    lock = team.home / "pulumi" / "state" / ".pulumi" / "locks" / "organization" / "trainyard" / "local" / "held.json"
    lock.parent.mkdir(parents=True, exist_ok=True)
    lock.write_text(json.dumps({"pid": 7, "hostname": "elsewhere", "timestamp": "2026-11-21T15:49:37.15Z"}))
    for word in ("up", "down"):
        refused = team.attempt(word, "local")
        assert refused.returncode == 1
        assert refused.stderr.startswith(
            "Error: Another command is working on the stack `local`: process 7 on elsewhere, since 2026-11-21T15:49:37."
        )
        assert str(lock) in refused.stderr
    lock.unlink()

    # Both commands start at the same time, before the engine has its lock.
    claim = StackClaim(team.home / "pulumi" / "claim-local.lock", "local")
    for word in ("up", "down"):
        refused = team.attempt(word, "local")
        assert refused.returncode == 1
        assert f"working on the stack `local`: process {os.getpid()}, since 20" in refused.stderr
        assert "Run this again when it has ended" in refused.stderr
        assert "pulumi cancel" not in refused.stdout + refused.stderr
    del claim

    part = next((team.home / "pulumi" / "state").rglob("local.json")).with_name("local.json.123456.tmp")
    part.write_text("what an engine had written when it was killed")
    shutil.copy(team.file, team.file.with_name("Pulumi.seen.yaml"))
    team.trainyard("preview", "seen")
    down = team.trainyard("down", "local")
    assert "Nothing is left; the local cloud is stopped." in down
    assert "Still up" not in down, "what was only previewed is not up"
    assert "pulumi stack rm" not in down
    assert not part.exists()


def test_errors_of_a_stack_file_are_reported_before_anything_is_made(team: Team) -> None:
    team.change("framework: script", "framework: scripd")
    done = team.run("up", "local", "--local", "--stacks", str(team.stacks))
    output = done.stdout + done.stderr
    assert done.returncode != 0
    assert re.search(r"Pulumi\.local\.yaml:\d+:\d+.* TY\d+ .*scripd", output), output
    assert "did you mean `script`" in output
    assert "Traceback" not in output
    assert "Vcn" not in output


def test_plain_pulumi_works_in_a_teams_own_repository(team: Team) -> None:
    """Works without the command `trainyard`: with the engine, a checkout, and a Pulumi.yaml whose `main` points to
    it."""
    folder = team.stacks.parent
    project = (ROOT / "Pulumi.yaml").read_text()
    for ours, theirs in (
        ("main: .", f"main: {ROOT}"),
        ("./provider", f"{ROOT}/provider"),
        (": .venv", f": {ROOT}/.venv"),
    ):
        assert ours in project
        project = project.replace(ours, theirs)
    (folder / "Pulumi.yaml").write_text(project)
    assert team.pulumi("stack", "init", "local", "--cwd", str(folder)).returncode == 0
    seen = team.pulumi("preview", "--stack", "local", "--cwd", str(folder), "--json")
    assert seen.returncode == 0, seen.stdout + seen.stderr
    steps = json.loads(seen.stdout)["steps"]
    assert {step["op"] for step in steps} == {"create"}
    assert "trainyard:index:Run" in {step["newState"]["type"] for step in steps}
    sound = team.pulumi("preview", "-s", "local", "--cwd", str(folder), "-c", "trainyard:team=sound", "--diff")
    assert "sound-local-runs" in sound.stdout, "-c wins over the file"

    team.change("cidr: 10.20.0.0/16", "cidr: 10.20.0.0/33")
    refused = team.pulumi("preview", "--stack", "local", "--cwd", str(folder))
    assert refused.returncode != 0
    assert re.search(r"team/stacks/Pulumi\.local\.yaml:\d+: TY\d+", refused.stdout + refused.stderr), refused.stdout
    assert "Traceback" not in refused.stdout + refused.stderr


def test_plain_pulumi_works_with_a_config_file_from_elsewhere(team: Team) -> None:
    (team.stacks / "Pulumi.yaml").write_text("name: trainyard\nruntime: python\n")
    assert team.pulumi("stack", "init", "local", "--cwd", str(team.stacks)).returncode == 0
    there = {"TRAINYARD_STACKS": str(team.stacks)}
    seen = team.pulumi("preview", "--stack", "local", "--config-file", str(team.file), more=there)
    assert summary(seen.stdout) == {"to": 21}, seen.stdout + seen.stderr


def test_plain_pulumi_works_with_the_variables_of_cloud_env(team: Team) -> None:
    (team.stacks / "Pulumi.yaml").write_text("name: trainyard\nruntime: python\n")
    trainyard = f"{shlex.quote(sys.executable)} -m trainyard cloud env --pulumi --home {team.cloud.home}"
    typed = [
        f'eval "$({trainyard})"',
        f"pulumi stack init local --non-interactive --cwd {team.stacks}",
        f"TRAINYARD_STACKS={team.stacks} pulumi preview --non-interactive -s local --config-file {team.file}",
    ]
    bare = {"PATH": "/usr/bin:/bin", "HOME": os.environ["HOME"], "PULUMI_CONFIG_PASSPHRASE": "of another stack"}
    cache = {name: os.environ[name] for name in ("XDG_CACHE_HOME",) if name in os.environ}
    seen = subprocess.run(
        ["bash", "-ec", "\n".join(typed)], cwd=ROOT, env={**bare, **cache}, capture_output=True, text=True, timeout=900
    )
    assert summary(seen.stdout) == {"to": 21}, seen.stdout + seen.stderr


def test_a_missing_stack_is_named_with_the_existing_ones(team: Team) -> None:
    done = team.run("up", "nowhere", "--local", "--stacks", str(team.stacks))
    assert done.returncode != 0
    assert f"no stack `nowhere` in {team.stacks}/: there are `local`" in done.stderr
    assert "Traceback" not in done.stderr


def test_up_without_local_shows_the_commands_for_an_account(team: Team) -> None:
    done = team.run("up", "local")
    assert done.returncode == 2
    assert "pulumi up -s local" in done.stderr
