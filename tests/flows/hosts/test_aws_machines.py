# SPDX-License-Identifier: Apache-2.0
"""An instance runs its user data as its own root, runs commands of Systems Manager, and keeps its disk while it is
stopped."""

from __future__ import annotations

import asyncio
from pathlib import Path

from localcloud.aws.hosts.machine_assignments import machine_environments as local_environments
from localcloud.aws.machines import Machine, MachineCommand, SecurityGroupRules
from tests.support.aws_instances import GROUP, ITSELF, TO_ITSELF, Data, data_centre
from tests.support.security_rules import group_rule

USER_DATA = """#cloud-config
packages: [habanalabs-container-runtime]
write_files:
- path: /etc/trainyard/node.json
  permissions: "0640"
  content: '{"job": "resnet"}'
- path: /opt/trainyard/bin/serve
  permissions: "0755"
  encoding: b64
  content: IyEvYmluL3NoCmVjaG8gInNlcnZlcyAkV0hPIgplY2hvIGJvb3QgPj4gL3Zhci9saWIvYm9vdHMKc2xlZXAgMC4xCmV4aXQgMwo=
- path: /etc/systemd/system/own.service
  content: |
    [Service]
    Environment=WHO=everybody
    ExecStart=/opt/trainyard/bin/serve
    Restart=on-failure
    RestartSec=0.1
    [Install]
    WantedBy=multi-user.target
runcmd:
- echo first > /var/lib/order
- [sh, -c, "echo second >> /var/lib/order; id -u >> /var/lib/order"]
- [systemctl, enable, --now, own]
"""


CONTAINER = """
import json, os, sys, time
print("in", os.getcwd(), os.environ["PART"], os.environ["FILED"], os.environ.get("AWS_ENDPOINT_URL"), flush=True)
sys.exit(5)
"""
SLEEPS = (
    "import signal, sys, time; signal.signal(signal.SIGTERM, lambda *_: sys.exit(9)); print(1, flush=True);"
    " time.sleep(600)"
)


def test_an_instance_runs_user_data_and_commands_and_keeps_its_disk(tmp_path: Path) -> None:
    asyncio.run(_one_instance(tmp_path))


async def _one_instance(folder: Path) -> None:
    async with data_centre(folder) as data:
        machine = data.start(1, USER_DATA)
        await data.heard("running", machine.id)
        await data.heard("agent", machine.id)
        await _boots(data, machine)
        await _obeys(data, machine)
        await _runs_containers(data, machine)
        await _keeps_its_disk(data, machine)


async def _boots(data: Data, machine: Machine) -> None:
    code, output, errors = await data.run(
        machine, "while ! systemctl is-enabled own; do sleep 0.05; done", "cat /var/lib/order",
        "stat -c %a /etc/trainyard/node.json", "hl-smi | wc -l", "fi_info", "echo wrong >&2; exit 7",
    )  # fmt: skip
    assert (code, errors) == (7, "wrong\n"), output
    wanted = ["enabled", "first", "second", "0", "640", "8", "provider: efa"]
    assert [line for line in output.splitlines() if line != "disabled"][:7] == wanted, output
    # The unit fails, and is started again.
    assert (await data.run(machine, "while [ $(wc -l < /var/lib/boots) -lt 3 ]; do sleep 0.05; done"))[0] == 0
    assert "[own.service] serves everybody" in data.consoles()
    assert "packages, not installed: ['habanalabs-container-runtime']" in data.consoles()


async def _obeys(data: Data, machine: Machine) -> None:
    """Commands end by themselves, at their timeout, or when they are cancelled. Their output is complete."""
    assert await data.run(machine, "sleep 600", seconds=0.3) == (None, "", "")
    long = MachineCommand("long", machine.id, ["echo began; sleep 600"], 60)
    data.instances.send(long)
    await data.heard("began", "long")
    data.instances.cancel("long", machine.id)
    await data.until(lambda: "long" in data.reports.ended, "waited for the end")
    assert data.reports.ended["long"][0] == -15
    code, output, _ = await data.run(machine, "python3 -c 'print(chr(27) * 100000)'")
    assert (code, output) == (0, "\x1b" * 24000)


async def _runs_containers(data: Data, machine: Machine) -> None:
    environments = [row[0].name for row in local_environments()]
    _, output, errors = await data.run(
        machine, "mkdir -p /root/code; printf 'FILED=from a file\n' > /root/env",
        f"cat > /root/code/one.py <<'END'\n{CONTAINER}\nEND",
        "docker run --runtime=habana --net=host --env-file /root/env -e PART=3 -v /root/code:/workspace/code:ro"
        " -w /workspace/code --name one gaudi:1.15.1 python3 one.py", "echo $?", "docker inspect --format"
        " '{{.State.Status}} {{.State.ExitCode}}' one", "docker logs --timestamps one | head -1", "docker rm one",
    )  # fmt: skip
    lines = output.splitlines()
    assert "in /root/code 3 from a file None" in lines or "in /workspace/code 3 from a file None" in lines, errors
    assert lines[lines.index("5") :][:2] == ["5", "exited 5"], output
    assert "it has no Gaudi" in output
    assert f"`{environments[0]}` stands in for the image gaudi:1.15.1" in output
    assert "and gloo for HCCL" in output
    assert lines[-2].startswith("20")
    assert lines[-1] == "one"
    _code, output, errors = await data.run(
        machine, f'docker run -d --name two gaudi:1.15.1 python3 -c "{SLEEPS}"', "docker run --name two gaudi true",
        "until docker logs two | grep -qx 1; do sleep 0.05; done", "docker stop two", "docker wait two",
        "docker run --mount x gaudi true", "docker exec two true",
    )  # fmt: skip
    assert output.splitlines() == ["two", "two", "9"], (output, errors)
    # Processes that a container leaves behind, such as sshd, end with it.
    _, output, _ = await data.run(
        machine,
        "docker run --name three gaudi"
        " sh -c 'setsid sleep 987 & printf \"1%%\\r2%%\\n\"; printenv TRAINYARD_KEEP_MEGABYTES'",
        "docker logs three | tail -n 2 | tr '\\r' '@'",
        # Debian's smallest image has no pgrep.
        "for one in /proc/[0-9]*/cmdline; do tr '\\0' ' ' <$one 2>/dev/null; echo; done | grep -c '^sleep 987'",
    )
    *_, bar, megabytes, left = output.splitlines()
    assert left == "0", output
    assert bar == "1%@2%", "a carriage return ends no line"
    assert int(megabytes) > 50, "of the machine's disk"
    for words in ("two is already in use", "no option '--mount'", "no `exec`"):
        assert words in errors


async def _keeps_its_disk(data: Data, machine: Machine) -> None:
    """A shutdown from inside, a reboot, a stop and a start. Then the instance is terminated, and nothing is left."""
    await data.run(machine, "echo kept > /root/kept; echo lost > /run/lost; ln -s /etc /var/lib/link")
    data.reports.heard.clear()
    data.instances.send(MachineCommand("off", machine.id, ["shutdown -h now; sleep 600"], 60))
    await data.heard("ended", machine.id)
    data.instances.started(machine)
    await data.heard("agent", machine.id)
    _code, output, _ = await data.run(
        machine, "cat /root/kept /run/lost; cat /var/lib/order | wc -l; systemctl is-active own"
    )
    assert output.splitlines()[:2] == ["kept", "3"], output
    for acts in ((data.instances.rebooted,), (lambda one: data.instances.stopped(one.id), data.instances.started)):
        data.reports.heard.clear()
        for act in acts:
            act(machine)
        await data.heard("agent", machine.id)
        assert (await data.run(machine, "cat /root/kept"))[1] == "kept\n"
    del data.reports.living[machine.id]
    data.instances.terminated(machine.id)
    await data.until(lambda: not list(data.folder.glob("i-*")), "something is left")
    assert not [words for words in data.reports.heard if words[0] == "failed"]


PORT = 5000
LISTENS = f"import socket\ns = socket.create_server(('0.0.0.0', {PORT}))\nwhile True: s.accept()"


# Of each kind of accelerator: a machine, the program that lists them, how many it lists, and docker's own runtimes.
SHOWN = {
    "p5.48xlarge": ("nvidia-smi -L | wc -l", "8", "nvidia", "NVIDIA GPUs", "NCCL"),
    "trn1.32xlarge": (
        "neuron-ls --json-output | python3 -c 'import json, sys; print(len(json.load(sys.stdin)))'",
        "16", "runc", "Trainium", "XLA",
    ),
    "c7i.xlarge": ("nvidia-smi || neuron-ls || hl-smi || echo none", "none", "runc", "", ""),
}  # fmt: skip


def test_programs_and_runtimes_are_those_of_the_machine_s_row(tmp_path: Path) -> None:
    asyncio.run(_other_machines(tmp_path))


async def _other_machines(folder: Path) -> None:
    async with data_centre(folder) as data:
        for number, (kind, (lists, count, runtime, words, backend)) in enumerate(SHOWN.items(), 1):
            machine = data.start(number, instance_type=kind)
            await data.heard("agent", machine.id)
            _, output, errors = await data.run(
                machine, f"({lists}) 2> /dev/null", f"docker run --runtime={runtime} --name one train:1 true",
                "docker run --runtime=habana train:1 true", "docker logs one",
            )  # fmt: skip
            assert output.splitlines()[0] == count, output
            assert "docker: unknown or invalid runtime name: habana" in errors
            assert f"a stand-in for a machine of the type {kind}{f': it has no {words}. ' if words else '. '}" in output
            assert ("and gloo for" in output) is bool(backend)
            assert f"gloo for {backend}" in output or not backend


def test_security_groups_are_enforced_and_change_at_once(tmp_path: Path) -> None:
    asyncio.run(_security_groups(tmp_path))


async def _security_groups(folder: Path) -> None:
    """A rule that names its own group applies to all members, in both directions, including later members."""
    async with data_centre(folder) as data:
        first = data.start(1)
        await data.heard("agent", first.id)
        unit = "[Service]\nExecStart=python3 -c \"exec(open('/root/listens').read())\"\n"
        await data.run(
            first, f'cat > /root/listens <<"END"\n{LISTENS}\nEND',
            f"cat > /etc/systemd/system/l.service <<'END'\n{unit}END", "systemctl start l",
        )  # fmt: skip
        second = data.start(2)
        await data.heard("agent", second.id)
        knock = f"python3 -c \"import socket; socket.create_connection(('10.0.1.10', {PORT}), 1)\""
        assert (await data.run(second, f"until {knock}; do sleep 0.05; done", seconds=20))[0] == 0, data.consoles()
        seen = await data.instances.evidence(first.id)
        used = [(row["list"], row["direction"], row["description"], row["connections"] > 0) for row in seen["rules"]]
        itself = "the group itself"
        assert used == [(GROUP, "ingress", itself, True), (GROUP, "egress", itself, False)]
        for group in (
            SecurityGroupRules(GROUP, "efa", (), (TO_ITSELF,)),
            SecurityGroupRules(GROUP, "efa", (ITSELF,), (group_rule("-1", "10.9.0.0/16", direction="egress"),)),
            SecurityGroupRules(GROUP, "efa", (group_rule("tcp", GROUP, PORT + 1, PORT + 2),), (TO_ITSELF,)),
        ):
            data.reports.group = group
            data.instances.network_changed()
            assert (await data.run(second, f"while {knock}; do sleep 0.05; done", seconds=20))[0] == 0, group
            data.reports.group = SecurityGroupRules(
                GROUP, "efa", (group_rule("tcp", "10.0.1.11/32", PORT, PORT),), (TO_ITSELF,)
            )
            data.instances.network_changed()
            assert (await data.run(second, f"until {knock}; do sleep 0.05; done", seconds=20))[0] == 0, group
