# SPDX-License-Identifier: Apache-2.0
"""Machines of a cluster serve the queue of their job (docs/decisions/0021)."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.aws_machines import client
from tests.support.machine_cluster import KEY_SECRET, ClusterWorld, cluster
from tests.support.programs import make_ssh_key
from tests.support.waiting import eventually

TWO = ("main-0", "worker-0")
# Ends at once on SIGTERM, as the launcher does.
LONG = "trap 'echo asked to end; exit 143' TERM; echo begun; while :; do sleep 0.05; done"


@pytest.fixture(scope="module")
def two(aws: str, tmp_path_factory: pytest.TempPathFactory, private_key: str) -> Iterator[ClusterWorld]:
    client(aws, "s3").create_bucket(Bucket="two-machines")
    with cluster(aws, "two-machines", tmp_path_factory.mktemp("two"), TWO, private_key) as world:
        for node in TWO:
            world.report(node, "ready")
        yield world


def next_number(world: ClusterWorld) -> int:
    rows = world.s3.list_objects_v2(Bucket=world.bucket, Prefix=world.key("queue/")).get("Contents", [])
    return len(rows) + 1


def states(ends: dict[str, dict[str, object]]) -> list[object]:
    return [ends[node]["state"] for node in sorted(ends)]


def test_a_report_names_its_instance_and_start_time(two: ClusterWorld) -> None:
    report = two.report("worker-0", "ready")
    assert set(report) == {"instance", "boot", "state", "reason", "at", "address", "since"}
    assert (report["instance"], report["address"]) == ("i-1", "127.0.0.2")


def test_a_start_runs_on_all_nodes_and_its_lines_are_in_the_log(two: ClusterWorld) -> None:
    number = next_number(two)
    two.ticket(number, "echo one; echo two >&2; env | sort; exit 0")
    ends = two.ended(number)
    assert states(ends) == ["SUCCEEDED", "SUCCEEDED"]
    assert ends["main-0"]["code"] == 0
    for node in TWO:
        lines = two.lines(number, node)
        assert lines.index("one") < lines.index("two")
        assert f"TRAINYARD_START=s{number:08}" in lines
        assert "TRAINYARD_SCRATCH=/opt/trainyard/scratch" in lines
        assert f"[machine] s{number:08} begins on {node} with registry/train:1" in lines


def test_scratch_space_is_writable_and_removed_after_the_start(two: ClusterWorld) -> None:
    number, places = next_number(two), two.machines["main-0"].root / "var/lib/trainyard/scratch/starts"
    two.ticket(number, f'cd {places}/{number:08}; echo "$SHOWN"; echo kept > written; ls')
    assert two.ended(number)["main-0"]["state"] == "SUCCEEDED"
    lines = two.lines(number, "main-0")
    assert "written" in lines
    assert f'"/opt/trainyard/scratch": "{places}/{number:08}"' in " ".join(lines)
    eventually(lambda: not (places / f"{number:08}").exists())


def test_each_node_reports_its_own_exit_code(two: ClusterWorld) -> None:
    number = next_number(two)
    two.ticket(number, 'case "$TRAINYARD_NODE_ADDRESS" in 127.0.0.1) exit 3;; esac')
    ends = two.ended(number)
    assert (ends["main-0"]["state"], ends["main-0"]["code"], ends["main-0"]["details"]) == (
        "FAILED",
        3,
        "ended with code 3",
    )
    assert ends["worker-0"]["state"] == "SUCCEEDED"


def test_a_start_begins_after_every_node_has_ended_the_previous_one(two: ClusterWorld, tmp_path: Path) -> None:
    """Two tickets at once; the first one's nodes end at different times."""
    first = next_number(two)
    note = tmp_path / "note"
    slow = f'case "$TRAINYARD_NODE_ADDRESS" in 127.0.0.1) sleep 2;; esac; echo end >> {note}'
    two.ticket(first, slow)
    two.ticket(first + 1, f"echo begin >> {note}")
    two.ended(first + 1)
    assert note.read_text().split() == ["end", "end", "begin", "begin"]


def test_a_queued_start_can_be_cancelled_while_another_runs(two: ClusterWorld) -> None:
    first = next_number(two)
    two.ticket(first, LONG)
    eventually(lambda: all(two.state(first, node).get("sshPort") for node in TWO))
    two.ticket(first + 1, "echo never")
    two.cancel(first + 1)
    # A canceled second start ends without waiting for the end of the first.
    assert states(two.ended(first + 1)) == ["CANCELED", "CANCELED"]
    assert two.state(first, "main-0")["state"] == "IN_PROGRESS"
    assert not any(f"{first + 1:08}" in " ".join(call) for call in two.machines["main-0"].calls("docker", "run"))
    eventually(lambda: "begun" in two.lines(first, "main-0"))
    two.cancel(first)
    ends = two.ended(first)
    assert states(ends) == ["CANCELED", "CANCELED"]
    eventually(lambda: "asked to end" in two.lines(first, "main-0"))


def test_a_node_enforces_the_maximum_runtime(two: ClusterWorld) -> None:
    number = next_number(two)
    two.ticket(number, LONG, maximumMinutes=0.05)
    ends = two.ended(number)
    assert states(ends) == ["FAILED", "FAILED"]
    assert ends["main-0"]["details"] == "the maximum runtime of 0.05 minutes is over"


def test_after_a_kill_the_container_continues_and_each_line_is_logged_once(two: ClusterWorld, tmp_path: Path) -> None:
    number, machine = next_number(two), two.machines["main-0"]
    gate = tmp_path / "gate"
    two.ticket(number, f"echo begun; while [ ! -e {gate} ]; do sleep 0.05; done; echo done")
    # A line that the store has, but that the machine has not recorded yet, would be sent again.
    eventually(lambda: [*machine.root.rglob(f"*{number}/delivered.json")])
    assert "begun" in two.lines(number, "main-0")
    machine.kill()
    machine.serve()
    two.report("main-0", "busy")
    machine.kill()
    gate.touch()
    two.ended(number, "worker-0")
    machine.serve()
    assert states(two.ended(number)) == ["SUCCEEDED", "SUCCEEDED"]
    eventually(lambda: "done" in two.lines(number, "main-0"))
    lines = two.lines(number, "main-0")
    assert (lines.count("begun"), lines.count("done")) == (1, 1)
    assert any("the program was restarted; the container goes on" in line for line in lines)
    assert len([call for call in machine.calls("docker", "run") if f"{number:08}" in " ".join(call)]) == 1


def test_a_machine_that_rebooted_never_runs_a_start_twice(two: ClusterWorld) -> None:
    number, machine = next_number(two), two.machines["worker-0"]
    two.ticket(number, LONG)
    eventually(lambda: "begun" in two.lines(number, "worker-0"))
    boot = two.report("worker-0", "busy")["boot"]
    machine.reboot()
    ends = two.ended(number, "worker-0")
    assert ends["worker-0"]["state"] == "FAILED"
    assert "the machine rebooted while the start was running" in str(ends["worker-0"]["details"])
    assert two.report("worker-0", "ready")["boot"] != boot
    two.cancel(number)
    two.ended(number)


def test_kills_at_any_moment_neither_lose_a_start_nor_run_it_twice(two: ClusterWorld, tmp_path: Path) -> None:
    number, machine, note = next_number(two), two.machines["main-0"], tmp_path / "note"
    two.ticket(number, f'echo "$TRAINYARD_NODE_ADDRESS" >> {note}; echo begun; sleep 1.5; echo done')
    kills = 0
    while kills < 8 and two.state(number, "main-0").get("state") not in ("SUCCEEDED", "FAILED"):
        time.sleep(0.1 + 0.13 * (kills % 7))
        machine.kill()
        machine.serve()
        kills += 1
    assert states(two.ended(number)) == ["SUCCEEDED", "SUCCEEDED"]
    assert sorted(note.read_text().split()) == ["127.0.0.1", "127.0.0.2"]
    eventually(lambda: "done" in two.lines(number, "main-0"))
    two.report("main-0", "ready")
    eventually(lambda: not (machine.root / f"var/lib/trainyard/starts/{number:08}/shown").exists())


def test_a_rotated_key_is_used_from_the_next_start_on(two: ClusterWorld, tmp_path: Path) -> None:
    new = make_ssh_key(tmp_path / "new")
    secrets, files = (
        client(two.endpoint, "secretsmanager"),
        [m.root / "root/.ssh/id_rsa" for m in two.machines.values()],
    )
    before = secrets.get_secret_value(SecretId=KEY_SECRET)["SecretString"]
    secrets.put_secret_value(SecretId=KEY_SECRET, SecretString=new)
    number = next_number(two)
    two.ticket(number)
    two.ended(number)
    assert [file.read_text() for file in files] == [(tmp_path / "new").read_text()] * 2
    public = (tmp_path / "new.pub").read_text().split()[1]
    authorized = (two.machines["main-0"].root / "root/.ssh/authorized_keys").read_text()
    assert (public in authorized, authorized.count("ssh-rsa")) == (True, 1)
    secrets.put_secret_value(SecretId=KEY_SECRET, SecretString=before)


def test_a_replaced_machine_fails_the_unfinished_start_of_the_old_one(two: ClusterWorld) -> None:
    """The instance was replaced: its disk, and with it its records, are gone."""
    number, machine = next_number(two), two.machines["worker-0"]
    two.ticket(number, LONG)
    eventually(lambda: "begun" in two.lines(number, "worker-0"))
    machine.kill()
    machine.end_containers()
    (machine.root / "var").rename(machine.root / f"old-{number}")
    machine.serve()
    ends = two.ended(number, "worker-0")
    assert ends["worker-0"]["state"] == "FAILED"
    assert "another machine had this node's part" in str(ends["worker-0"]["details"])
    two.cancel(number)
    two.ended(number)


def test_no_node_starts_its_container_if_another_node_cannot(two: ClusterWorld) -> None:
    number, machine = next_number(two), two.machines["worker-0"]
    (machine.state / "missing-image").touch()
    try:
        two.ticket(number, "echo never")
        ends = two.ended(number)
    finally:
        (machine.state / "missing-image").unlink()
    assert "the image registry/train:1 cannot be pulled" in str(ends["worker-0"]["details"])
    assert "push it, or correct `image`" in str(ends["worker-0"]["details"])
    assert str(ends["main-0"]["details"]).startswith("the node worker-0 ended before the start")
    assert "never" not in two.lines(number, "main-0")


def test_the_role_lets_docker_into_amazon_s_registry_and_no_password_is_on_a_command_line(two: ClusterWorld) -> None:
    number, machine = next_number(two), two.machines["main-0"]
    registry = "123456789012.dkr.ecr.us-east-1.amazonaws.com"
    two.ticket(number, image=f"{registry}/vision/train:1.0")
    assert states(two.ended(number)) == ["SUCCEEDED", "SUCCEEDED"]
    password = (machine.state / "password").read_text()
    assert machine.calls("docker", "login") == [["docker", "login", "--username", "AWS", "--password-stdin", registry]]
    assert password
    assert password not in json.dumps(machine.calls())
    assert ["docker", "pull", "--quiet", f"{registry}/vision/train:1.0"] in machine.calls("docker", "pull")


def test_secret_variables_are_on_no_command_line_and_not_on_the_disk_afterwards(two: ClusterWorld) -> None:
    number = next_number(two)
    values = {"WANDB_API_KEY": "hush-hush-hush", "CERTIFICATE": "line one\nline two"}
    others = {"main-0/OWN": "hush-main", "worker-0/OWN": "hush-worker", "worker-0/ITS": "hush-its"}
    client(two.endpoint, "secretsmanager").create_secret(Name=f"run-{number}", SecretString=json.dumps(values | others))
    two.ticket(
        number,
        "python3 -c \"import os, json; print(json.loads(os.environ['SHOWN']))\"; sleep 0.5",
        secret=f"run-{number}",
    )
    machine = two.machines["main-0"]
    shown = machine.root / f"var/lib/trainyard/starts/{number:08}/shown/variables.json"
    eventually(shown.exists)
    assert json.loads(shown.read_text()) == {**values, "OWN": "hush-main"}, "nothing of another node's"
    assert shown.stat().st_mode & 0o777 == 0o600
    assert states(two.ended(number)) == ["SUCCEEDED", "SUCCEEDED"]
    assert "hush" not in json.dumps(machine.calls())
    assert "hush" not in machine.console()
    eventually(lambda: not shown.parent.exists())


def test_spot_interruption_ends_a_start_in_time(two: ClusterWorld) -> None:
    number, machine = next_number(two), two.machines["worker-0"]
    two.ticket(number, LONG)
    eventually(lambda: "begun" in two.lines(number, "worker-0"))
    path = "/latest/meta-data/spot/instance-action"
    machine.instance.answers[path] = json.dumps({"action": "stop", "time": "2026-11-22T21:00:00Z"})
    two.wake()
    try:
        ends = two.ended(number, "worker-0")
        assert ends["worker-0"]["details"] == "AWS takes this spot instance back (stop at 2026-11-22T21:00:00Z)"
        eventually(lambda: "asked to end" in two.lines(number, "worker-0"))
    finally:
        del machine.instance.answers[path]
    two.cancel(number)
    two.ended(number)


def test_invalid_tickets_block_no_other_run(two: ClusterWorld) -> None:
    number = next_number(two)
    two.put(f"queue/{number:08}.json", {"version": 1, "run": "base", "image": "--privileged", "nodes": []})
    two.put(f"queue/{number + 1:08}.json", ["\x1b[2J"])
    two.ticket(number + 2, "true")
    assert states(two.ended(number + 2)) == ["SUCCEEDED", "SUCCEEDED"]
    console = two.machines["main-0"].console()
    assert "is left out: '--privileged' is not an image" in console
    assert "\x1b" not in console


def test_a_ticket_of_fewer_nodes_concerns_only_those(two: ClusterWorld) -> None:
    number = next_number(two)
    two.ticket(number, "true", nodes=("worker-0",))
    two.ended(number, "worker-0")
    assert two.state(number, "main-0") == {}


def test_an_unfit_machine_reports_the_reason_and_fails_its_runs(
    aws: str, bucket: str, tmp_path: Path, private_key: str
) -> None:
    with cluster(aws, bucket, tmp_path, ("main-0",), private_key, efaInterfaces=5) as world:
        report = world.report("main-0", "failed")
        assert "libfabric finds 4 EFA interfaces of 5" in report["reason"]
        assert "start the instance through its stack, with that many EFA interfaces" in report["reason"]
        world.ticket(1, "true")
        details = str(world.ended(1)["main-0"]["details"])
        assert details.startswith("this machine is not fit for runs: libfabric finds 4 EFA")
        machine = world.machines["main-0"]
        checked = machine.ask("check")
        assert (checked.returncode, "8 Gaudi: there" in checked.stdout) == (1, True)
        assert machine.ask("wake", "00000001").stdout == "woken\n"


def test_devices_that_appear_late_make_no_machine_unfit_and_the_first_node_s_address_is_told(
    aws: str, bucket: str, tmp_path: Path, private_key: str
) -> None:
    cores = {"words": "cores", "count": 8, "shows": ["hl-smi"], "late": 600, "meets": {"ROOT": "{first}:1"}}
    with cluster(aws, bucket, tmp_path, TWO, private_key, serve=False, accelerator=cores) as world:
        late = world.machines["worker-0"]
        for name in ("hl-smi", "fi_info"):
            (late.state / f"broken-{name}").write_text("no device yet")
        for machine in world.machines.values():
            machine.serve()
        eventually(lambda: late.console().count("the driver of cores does not answer") > 1, describe=late.console)
        assert (world.get("nodes/worker-0.json") or {})["state"] == "preparing"
        for name in ("hl-smi", "fi_info"):
            (late.state / f"broken-{name}").unlink()
        world.report("worker-0", "ready")
        assert "failed: " not in late.console()
        world.ticket(1, 'echo "root $ROOT"')
        assert states(world.ended(1)) == ["SUCCEEDED", "SUCCEEDED"]
        assert all("root 127.0.0.1:1" in world.lines(1, node) for node in TWO)
        assert not any(word.startswith("--runtime") for word in late.calls("docker", "run")[0])


def test_four_machines_run_tickets_in_order_and_stop_only_when_idle(
    aws: str, bucket: str, tmp_path: Path, private_key: str
) -> None:
    nodes = ("main-0", "worker-0", "worker-1", "worker-2")
    note = tmp_path / "note"
    with cluster(aws, bucket, tmp_path, nodes, private_key, stopWhenIdleMinutes=0.03) as world:
        # They read the queue when they boot, without being woken. The first start lasts longer than the idle limit.
        world.ticket(1, f'case "$TRAINYARD_NODE_ADDRESS" in 127.0.0.1) sleep 3;; esac; echo 1 >> {note}')
        world.ticket(2, f"echo 2 >> {note}")
        assert states(world.ended(1)) == ["SUCCEEDED"] * 4
        assert not any(machine.state.joinpath("down").exists() for machine in world.machines.values())
        assert states(world.ended(2)) == ["SUCCEEDED"] * 4
        assert note.read_text().split() == ["1"] * 4 + ["2"] * 4
        for node, machine in world.machines.items():
            eventually(machine.state.joinpath("down").exists)
            assert machine.calls("shutdown") == [["shutdown", "-h", "now"]]
            assert world.report(node, "stopping")["reason"] == "no run for 0.03 minutes"
