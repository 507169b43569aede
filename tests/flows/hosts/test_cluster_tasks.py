# SPDX-License-Identifier: Apache-2.0
"""Tasks of the local OpenPAI run isolated, with the steps of OpenPAI's runtime before and after their command."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

from localcloud.openpai.tasks import TaskExit, TaskImage, TaskStorage
from tests.support.cluster_tasks import Reports, attempt_of, carried_out, hosts
from tests.support.nodes import ROOT

_CMD = "com.microsoft.pai.runtimeplugin"
_JOB = {
    "secrets": {"key": "se'cr$et"},
    "parameters": {"word": "hello"},
    "prerequisites": [
        {"name": "image", "type": "dockerimage", "uri": "example.com/plain:1"},
        {"name": "tools", "type": "script", "plugin": f"{_CMD}.cmd", "callbacks": [
            {"event": "taskStarts", "commands": ["echo tools for <% $parameters.word %>", "export GONE=1"]},
            {"event": "taskSucceeds", "commands": ["echo tools after"]},
        ]},
    ],
    "taskRoles": {"main": {"dockerImage": "image", "prerequisites": ["tools"]}},
    "extras": {_CMD: [
        {"plugin": "cmd", "parameters": {"preCommands": ["echo '<% $secrets.key %>'"],
                                         "postCommands": ["echo extras after"]}},
        {"plugin": "cmd", "failurePolicy": "ignore", "parameters": {"preCommands": ["false", "echo goes on"]}},
        {"plugin": "cmd", "taskroles": ["other"], "parameters": {"preCommands": ["exit 9"]}},
        {"plugin": "ssh", "parameters": {"jobssh": True}},
    ]},
}  # fmt: skip
_TALKS = """
echo out; echo err >&2; printf 'no end'
python -c 'import os, socket, sys; print(os.environ["PAI_JOB_NAME"], sorted(n for _, n in socket.if_nameindex()))'
echo "${GONE:-nothing is left of plugins} in $PAI_WORK_DIR as $(id -u)"
cat /mnt/data/given; echo written > /mnt/data/written-by-$(hostname)
cat /mnt/fixed/given; ! echo x > /mnt/fixed/other
ls /run/trainyard | tr '\\n' ' '
test ! -e {root}/tests && test ! -e {home} && echo isolated
"""


_EATS = "python -c 'x = bytearray(300 << 20); print(len(x))'"


def test_a_task_has_what_openpai_gives_it(tmp_path: Path) -> None:
    folder = tmp_path / "storages" / "data"
    folder.mkdir(parents=True)
    (folder / "given").write_text("of the storage\n")
    shown = (TaskStorage("data", "/mnt/data", folder), TaskStorage("fixed", "/mnt/fixed", folder, read_only=True))
    protocol = {**_JOB, "secrets": {"key": "0123456789"}}
    talks = _TALKS.replace("{root}", str(ROOT)).replace("{home}", str(tmp_path))
    first = attempt_of("a1", tmp_path, talks, protocol=protocol, storages=shown)
    second = attempt_of("a2", tmp_path, "cat /mnt/data/given", storages=shown, index=1)
    reports = Reports()
    ends = carried_out(tmp_path, reports, [first, second])
    said = {path.name: path.read_text() for path in first.logs.iterdir()}
    assert ends == {"a1": TaskExit(0), "a2": TaskExit(0)}, (ends, said)
    assert sorted(reports.ran) == ["a1", "a2"]
    assert sorted(said) == ["all", "runtime.log", "stderr", "stdout"]
    user = 1000
    assert said["stdout"].splitlines()[:4] == [
        "out", "no endann~train ['eth0', 'lo']",
        f"nothing is left of plugins in /home/datascience as {user}", "of the storage",
    ]  # fmt: skip
    assert said["stdout"].splitlines()[-1].endswith("isolated")
    assert said["stderr"].splitlines()[0] == "err"
    assert "Read-only file system" in said["stderr"]
    assert {"out", "err"} < set(said["all"].splitlines())
    assert said["runtime.log"].splitlines() == [
        "tools for hello", "0123456789", "goes on",
        "the local cluster has no plugin ssh: it is left out", "the command starts", "the command ended with code 0",
        "extras after", "tools after",
    ]  # fmt: skip
    assert (folder / "written-by-main-0-0").read_text() == "written\n", "people and other tasks see it"
    assert reports.left == [], "nothing is left of a task's disk and of its secrets"


def test_a_tasks_end_is_reported_as_by_openpais_runtime(tmp_path: Path) -> None:
    """Exit codes below 128 reach the controller as 255, and signals unchanged. An unset variable ends the command,
    too."""
    fails = {"extras": {_CMD: [{"plugin": "cmd", "parameters": {"preCommands": ["false"]}}]}}
    commands = {
        "three": ("exit 3", 255, "code 3"), "killed": ("kill -9 $$", 137, "code 137"),
        "ill": ("exit 132", 132, "code 132"), "unset": ("echo $nothing", 255, "code 1"),
        "absent": ("no-such-program", 220, "code 127"), "claims": ("exit 253", 255, "code 253"),
        "plugin": ("echo not reached", 255, "code 1"), "memory": (_EATS, -1200, "memory"),
        "wrong": ("true", 1, "no plugin 'magic'"),
        # The runtime recognizes some failures by the command's output: a missing module, bad memory.
        "import": ("echo 'ImportError: no torch' >&2; exit 1", 232, "code 1"),
        "memory-errors": ("echo cuda_error_ECC_uncorrectable; exit 1", 223, "code 1"),
        # Tasks that fail before their command: an image that the checker refuses, commands that the initializer cannot
        # parse.
        "digest": ("true", 254, "no digests"), "twin": ("true", 254, "2 prerequisites have the name `image`"),
        "registry": ("true", 254, "`auth` has no `registryuri`"),
        "docker": ("true", 254, "it does not know `docker.io`"),
        # Secrets are filled in as OpenPAI does it, like HTML.
        "entities": ("test '<% $secrets.p %><% $secrets.none %>' = 'a&amp;b'", 0, ""),
        "quotes": ("true", 1, "cannot read the parameters of the plugin 'cmd'"),
    }  # fmt: skip
    attempts = [attempt_of(name, tmp_path, command) for name, (command, _, _) in commands.items()]
    quotes = [{"plugin": "cmd", "parameters": {"preCommands": ['echo "it\'s"']}}]
    image, auth = {"type": "dockerimage", "name": "image", "uri": "a/b"}, {"username": "u", "password": "p"}
    protocols: dict[str, Any] = {
        "plugin": fails, "wrong": {"extras": {_CMD: [{"plugin": "magic"}]}}, "quotes": {"extras": {_CMD: quotes}},
        "entities": {"secrets": {"p": "a&b"}},
        "twin": {"prerequisites": [image, {"type": "data", "name": "image", "uri": "x"}]},
        "registry": {"secrets": {"p": "x"}, "prerequisites": [{**image, "auth": auth}]},
        "docker": {"secrets": {"p": "x"}, "prerequisites": [{**image, "auth": {**auth, "registryuri": "docker.io"}}]},
    }  # fmt: skip
    images = {"digest": TaskImage(f"example.com/plain@sha256:{'0' * 64}")}
    attempts = [
        replace(
            each,
            protocol={**each.protocol, **protocols.get(each.id, {})},
            memory_mb=64 if each.id == "memory" else 512,
            image=images.get(each.id, each.image),
        )
        for each in attempts
    ]
    ends = carried_out(tmp_path, Reports(), attempts)
    assert {name: how.code for name, how in ends.items()} == {name: code for name, (_, code, _) in commands.items()}
    for name, (_, _, words) in commands.items():
        assert words in ends[name].details
    assert (tmp_path / "logs" / "plugin" / "stdout").read_text() == ""


def test_a_stopped_task_ends_with_all_its_processes(tmp_path: Path) -> None:
    waits = "exec timeout 600 bash -c \"trap 'trap : TERM; echo asked; exit 5' TERM; echo waits; sleep 600 & wait\""
    attempts = [attempt_of(name, tmp_path, waits) for name in ("waits", "unasked")]
    reports = Reports()

    async def stop_one() -> None:
        async with hosts(tmp_path, reports) as tasks:
            tasks.stop("nobody's")
            for attempt in attempts:
                tasks.start(attempt)
            while not all(
                (attempt.logs / "stdout").exists() and (attempt.logs / "stdout").read_text() for attempt in attempts
            ):
                await asyncio.sleep(0.02)
            tasks.stop("waits")
            while "waits" not in reports.ends:
                await asyncio.sleep(0.02)

    asyncio.run(asyncio.wait_for(stop_one(), 60))
    assert (attempts[0].logs / "stdout").read_text() == "waits\n", "in OpenPAI's container a stop is no signal either"
    assert reports.ends["waits"].code == 137
    assert list(reports.ends) == ["waits"], "the cloud ends, and its controller takes the other one for lost"
    assert not (tmp_path / "tasks").exists(), "nothing is left of them, secrets neither"
