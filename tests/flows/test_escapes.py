# SPDX-License-Identifier: Apache-2.0
"""Control sequences in all texts that others can write: none of them is in the output of a command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote_to_bytes

import oci
import pytest

from components.oci.client import job_runs
from launcher import escaping
from localcloud.control import Cloud
from tests.support.cloud_fixture import Clients
from tests.support.cloud_world import World
from tests.support.hostile import PLANTED, orders
from tests.support.waiting import LONGEST_SECONDS
from trainyard import markup

ROOT = Path(__file__).resolve().parents[2]
STACK = (ROOT / "stacks" / "Pulumi.oci-pytorch-ddp.yaml").read_text("utf-8")
QUOTED = json.dumps(PLANTED.replace("\x00", ""))


def trainyard(*words: str | bytes | Path) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "trainyard", *words], cwd=ROOT, capture_output=True, timeout=LONGEST_SECONDS, check=False
    )


def harmless(done: subprocess.CompletedProcess[bytes], own_commands: bool = False) -> bytes:
    """The whole output, after a check that it has no control sequences."""
    printed = done.stdout + b"\n" + done.stderr
    assert orders(printed, own_commands) == []
    assert b"Traceback" not in printed
    return printed


PLACES = {
    "a key": f"config:\n  trainyard:team: vision\n  {QUOTED}: 1\n",
    "a key of ours": f"config:\n  trainyard:team: vision\n  trainyard:access: {{ {QUOTED}: 1 }}\n",
    "a value": f"config:\n  trainyard:team: {QUOTED}\n",
    "a job": f"config:\n  trainyard:team: vision\n  trainyard:jobs:\n    {QUOTED}: {{ framework: pytorch }}\n",
    "a choice": f"config:\n  trainyard:team: vision\n  trainyard:platform: {QUOTED}\n",
    "a line": "config:\n  trainyard:team: [\n::error::planted\n##[error]planted\n",
}


@pytest.mark.parametrize("form", ["text", "json", "sarif", "github"])
def test_control_characters_in_a_stack_file_are_escaped(tmp_path: Path, form: str) -> None:
    files = []
    for number, text in enumerate(PLACES.values()):
        files.append(tmp_path / f"Pulumi.stack{number}.yaml")
        files[-1].write_text(text)
    printed = harmless(trainyard("check", "--format", form, *files), own_commands=form == "github")
    assert printed.count(b"stack") >= len(files)
    for command in ("plan", "access", "rehearse"):
        harmless(trainyard(command, files[2]))


@pytest.mark.parametrize("form", ["text", "json", "sarif", "github"])
def test_control_characters_of_a_file_name_are_escaped(tmp_path: Path, form: str) -> None:
    """Also where it is not UTF-8, which a name on Linux need not be."""
    names = [
        b"Pulumi.\xff\xfe.yaml",
        b"Pulumi.\x1b[31mx.yaml",
        b"::error::planted.yaml",
        "Pulumi.\u202ex.yaml".encode(),
    ]
    for name in names:
        (Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name))).write_text("config: 1\n")
    done = subprocess.run(
        [sys.executable, "-m", "trainyard", "check", "--format", form, *names],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, timeout=LONGEST_SECONDS,
    )  # fmt: skip
    printed = harmless(done, own_commands=form == "github")
    assert done.returncode == 1, printed
    if form == "sarif":
        results = json.loads(done.stdout)["runs"][0]["results"]
        places = [result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for result in results]
        assert {unquote_to_bytes(place) for place in places} == set(names)
        assert all(place.isascii() for place in places)


@pytest.mark.parametrize(
    "words",
    [("check", PLANTED), ("plan", PLANTED), ("runs", PLANTED), (PLANTED,), (f"--{PLANTED}",), ("plan", f"--{PLANTED}")],
)
def test_control_characters_of_a_command_line_are_escaped(words: tuple[str, ...]) -> None:
    """A script may get such an argument from elsewhere, such as the name of a branch."""
    done = trainyard(*(word.replace("\x00", "") for word in words))
    assert done.returncode in (1, 2)
    harmless(done)


def test_control_characters_in_a_plan_are_escaped(tmp_path: Path) -> None:
    """The places that may contain any text: commands, variables, tags, arguments."""
    file = tmp_path / "Pulumi.planted.yaml"
    made = STACK.replace("code:", f"env: {{ NOTE: {QUOTED} }}\n      code:", 1)
    file.write_text(made.replace("command: ", f"command: echo {json.dumps(PLANTED.replace(chr(0), ''))[1:-1]} #", 1))
    for command, form in (("plan", "text"), ("plan", "json"), ("access", "text"), ("check", "text")):
        harmless(trainyard(command, file, "--format", form))


@dataclass(frozen=True)
class Planted:
    world: World
    run: str

    def runs(self, *words: str) -> subprocess.CompletedProcess[bytes]:
        return trainyard("runs", *words, "--home", str(self.world.clients.cloud.home))


PRINTS = f"print({PLANTED!r}, flush=True)\nraise SystemExit(3)"


@pytest.fixture(scope="module")
def planted(shared_cloud: Cloud) -> Planted:
    """A run with hostile names, log lines, status and progress."""
    world = World(Clients(shared_cloud))
    namespace, storage = world.clients.cloud.namespace, world.clients.storage
    details = oci.object_storage.models.CreateBucketDetails(name="planted", compartment_id=world.compartment)
    storage.create_bucket(namespace, details)
    evil = PLANTED.replace("\x00", "")
    launch = {"role": evil, "roles": [], "folder": f"oci://planted@{namespace}/x", "attempt": 1}
    tags = {
        "stack": f"demo{evil}", "job": f"line{evil}", "run": f"base{evil}",
        job_runs.RUN_TAG: "planted", job_runs.NODE_TAG: f"0/{evil}/{evil}",
    }  # fmt: skip
    override = oci.data_science.models.DefaultJobConfigurationDetails(
        environment_variables={"TRAINYARD_LAUNCH": json.dumps(launch)}
    )
    made = world.run(
        world.job(PRINTS), display_name=evil, freeform_tags=tags, job_configuration_override_details=override
    )
    status = {
        "rank": 0, "node": PLANTED, "role": PLANTED, "address": PLANTED, "state": "failed", "code": 3,
        "reason": PLANTED, "culprit": 0, "progress": {PLANTED: PLANTED}, "at": PLANTED,
    }  # fmt: skip
    storage.put_object(
        namespace, "planted", f"x/{job_runs.start_of_job_run(made.id, {})}/status/0.json", json.dumps(status)
    )
    world.finished(made)
    world.printed(made, "planted")
    return Planted(world, made.id)


def test_control_characters_in_runs_and_logs_are_escaped(planted: Planted) -> None:
    compartment = planted.world.compartment
    for words in (["list"], ["list", "--format", "json"], ["watch", "--every", "0.1"], ["logs"]):
        printed = harmless(planted.runs(*words, "--compartment", compartment))
        assert b"planted" in printed, words
    harmless(trainyard("cloud", "log", "--home", str(planted.world.clients.cloud.home)))


def test_watch_sends_a_terminal_no_control_characters_of_a_run(planted: Planted) -> None:
    """Only our own cursor movements, and colours (off here), reach the terminal."""
    import pty

    master, slave = pty.openpty()
    try:
        words = [sys.executable, "-m", "trainyard", "runs", "watch", "--home", str(planted.world.clients.cloud.home)]
        plain = {**os.environ, "NO_COLOR": "1"}
        process = subprocess.Popen(words, cwd=ROOT, env=plain, stdin=slave, stdout=slave, stderr=slave)
        os.close(slave)
        shown = b""
        while True:
            try:
                chunk = os.read(master, 65536)
            except OSError:
                break
            shown += chunk
        assert process.wait(LONGEST_SECONDS) == 1
    finally:
        os.close(master)
    assert b"\x1b[J" in shown
    left = shown.replace(b"\x1b[J", b"").replace(b"\r\x1b[K", b"\n").replace(b"\r\n", b"\n")
    assert orders(left) == []


def test_each_kind_of_output_has_its_escape_function() -> None:
    assert escaping.terminal_line("a\x1b[31m\tb\nc") == "a\ufffd[31m  b\ufffdc"
    assert escaping.terminal_lines(" ::error::x\n##[error]x\nstd::x") == " : :error::x\n## [error]x\nstd::x"
    assert markup.escape_markdown("a|b\\|c <x> [y](http://z) _p_ q_r @s #1\n# t") == (
        "a\\|b\\\\\\|c &lt;x&gt; \\[y\\](http&#58;//z) \\_p\\_ q_r @&#8203;s #&#8203;1 # t"
    )
    assert markup.escape_sarif("see [here](http://x) \\o/\n\x1b") == "see \\[here\\](http://x) \\\\o/ \ufffd"
    assert markup.escape_annotation("a%\n\x1b:,", of_property=True) == "a%25%0A\ufffd%3A%2C"
    assert escaping.terminal_line("git+https://ann:pass@host/x https://token@host ssh://git@host a:b@c") == (
        "git+https://ann:****@host/x https://****@host ssh://git@host a:b@c"
    )
