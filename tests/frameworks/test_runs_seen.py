# SPDX-License-Identifier: Apache-2.0
"""`trainyard runs` for a failed run: the rank that failed first, dropped packets, and strict JSON."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import oci
import pytest

from launcher.exits import PEER_SYMPTOM
from tests.support.field import STACK, Field, Run
from tests.support.framework_examples import EXAMPLES
from tests.support.waiting import LONGEST_SECONDS, eventually

ROOT = Path(__file__).parents[2]
FIRST = "rank 1 (worker-0) was the first to report a failure"
# The worker tries a port that no rule opens until its follower has heard of that, and fails. The main node waits for it
# until it is ended.
SCRIPT = """
import json, os, socket, sys, time
rank, progress = int(os.environ["RANK"]), os.environ["TRAINYARD_PROGRESS"]
with open(progress, "a") as file:
    file.write(json.dumps({"step": rank, "loss": float("nan"), "rate": float("inf"), "name": "\\x1b[2J"}) + "\\n")
if rank == 0:
    time.sleep(600)
end, heard = time.monotonic() + 300, os.path.join(os.environ["HOME"], "ends")
while time.monotonic() < end and not os.path.exists(heard):
    try:
        socket.create_connection((os.environ["MASTER_ADDR"], 29510), timeout=2)
    except OSError as error:
        print("gave up:", error, flush=True)
sys.exit(3)
"""


def words_of(field: Field, run: Run, command: str, *more: str) -> list[str]:
    words = [sys.executable, "-m", "trainyard", "runs", command, STACK, f"train/{run.name}"]
    return [*words, "--home", str(field.world.clients.cloud.home), *more]


def runs(field: Field, run: Run, command: str, *more: str) -> str:
    done = subprocess.run(
        words_of(field, run, command, *more), cwd=ROOT, capture_output=True, text=True, timeout=LONGEST_SECONDS
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done.stdout


def record_flows(field: Field, run: Run) -> None:
    """The flow log of the run's subnet, in the log group of the run's own log."""
    models, clients = oci.logging.models, field.world.clients
    job = clients.data_science.get_job(run.nodes[0].job_id).data
    source = models.OciService(
        service="flowlogs", category="all", resource=job.job_infrastructure_configuration_details.subnet_id
    )
    configuration = models.Configuration(source=source)
    details = models.CreateLogDetails(display_name=f"{run.name}-flows", log_type="SERVICE", configuration=configuration)
    field.world.made(clients.logging.create_log(field.world.log_group, details))


def dropped_as_on_oci(field: Field, run: Run) -> list[dict[str, Any]]:
    """The command's output if it does not use the local cloud's own API, but only Oracle's SDK and the compartment."""
    cloud = field.world.clients.cloud
    words = [sys.executable, "-m", "trainyard", "runs", "list", "--place", cloud.compartment, "--format", "json"]
    environment = {**os.environ, **cloud.env_for("deployer")}
    done = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=LONGEST_SECONDS)
    assert not done.returncode, done.stderr
    told = next(one for one in strict(done.stdout) if one["run"] == run.name)
    return list(told["dropped"])


def strict(text: str) -> Any:
    def refuse(name: str) -> None:
        pytest.fail(f"{name} is not JSON")

    return json.loads(text, parse_constant=refuse)


def follow_until_dropped(field: Field, run: Run, heard: Path) -> list[str]:
    """What a follower reads beside the run's output. The worker ends once it has read of dropped packets."""
    words = words_of(field, run, "logs", "--follow")
    with heard.open("w") as said, subprocess.Popen(words, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=said) as follower:
        try:
            eventually(heard.read_text, lambda text: "dropped: " in text)
            for home in (field.world.clients.cloud.home / "runs" / run.nodes[1].id).glob("node-[0-9]"):
                (home / "ends").touch()
            follower.wait(LONGEST_SECONDS)
        finally:
            follower.kill()
    # On a busy machine it also says how long it has been looking.
    return [line for line in heard.read_text().splitlines() if not line.startswith("looking at ")]


def test_runs_names_the_first_failure_and_dropped_packets(field: Field, tmp_path: Path) -> None:
    example = EXAMPLES["pytorch"]
    (tmp_path / "train.py").write_text(SCRIPT)
    job = replace(example.job(2), command="train.py")
    with field.run(job, tmp_path, example.environment(), without=["29500-29563"]) as run:
        record_flows(field, run)
        while_it_ran, *others = follow_until_dropped(field, run, tmp_path / "heard")
        pair = "dropped: worker-0 -> main-0 tcp 29510, "
        assert while_it_ran.startswith(f"train/{run.name}: {pair}"), "one line, before the run has ended"
        first, last = (f"{FIRST}: ended with code 3: {PEER_SYMPTOM}", "no egress rule of worker-0 lets it through")
        cause = f"worker-0 cannot reach main-0 on TCP 29510: {last}"
        assert [line for line in others if pair not in line] == [f"train/{run.name}: FAILED", f"  {cause}"]
        assert others[-1].startswith(f"  {pair}")
        assert others[-1].endswith(last)
        assert run.finished() == ["FAILED", "FAILED"]
        (told,) = strict(runs(field, run, "list", "--format", "json"))
        assert told["firstFailure"] == {"rank": 1, "node": "worker-0", "reason": first}
        (dropped,) = told["dropped"]
        assert dropped["pair"] == "worker-0 -> main-0 tcp 29510"
        assert dropped["packets"] >= 1
        assert told["nodes"][1]["launcher"]["progress"] == {
            "step": 1, "loss": "NaN", "rate": "Infinity", "name": "\x1b[2J"
        }  # fmt: skip
        shown = runs(field, run, "list")
        for text in (shown, runs(field, run, "watch")):
            assert cause in text
            assert "dropped: worker-0 -> main-0 tcp 29510, " in text
            assert dropped["missing"] in text
            assert "\x1b" not in text
        (recorded,) = dropped_as_on_oci(field, run)
        assert (recorded["pair"], recorded["packets"]) == (dropped["pair"], dropped["packets"])
        assert recorded["missing"] == "no egress rule of worker-0, or no ingress rule of main-0, lets it through"
        assert "exited with code" not in shown, "that every launcher ended says nothing of why"
