# SPDX-License-Identifier: Apache-2.0
"""A plan as text and as plain values."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from components.oci.plan import OciPlan
from components.oci.stack import OciAccess, OciJob, OciNetwork, OciStack, Users, Vault
from components.plan import show
from schemas.model import Bucket, Code, Git, Input, PortRange, Role, Run, Secret, Shape, Uses, Waiver
from tests.support.oci_plans import oci_plan

TOKEN = "hf_do-not-print-me"


def stack() -> OciStack:
    job = OciJob(
        framework="pytorch",
        image="${registry}:1.4",
        shape=Shape("VM.Standard.E4.Flex", 4.0, 64.0),
        roles={"main": Role(1), "worker": Role(2, env={"ROLE_TOKEN": Secret(TOKEN)})},
        command="train.py --epochs 10",
        code=Code(git=Git("https://example.com/train.git", commit="abc123")),
        env={"HF_TOKEN": Secret(TOKEN), "PLAIN": "seen"},
        inputs=(Input("/data", prefix="images/"),),
        keep=("model.pt", "results/**"),
        runs={"base": Run(), "tuned": Run(args=("--lr", "0.1"), attempt=2, until="finished")},
    )
    return OciStack(
        name="vision-dev",
        team="vision",
        environment="dev",
        region="us-ashburn-1",
        compartment="ocid1.compartment.oc1..vision",
        tenancy="ocid1.tenancy.oc1..company",
        access=OciAccess(users=Users(group="scientists")),
        network=OciNetwork(nat=True),
        bucket=Bucket(key="ocid1.key.oc1..vision"),
        vault=Vault("ocid1.vault.oc1..v", "ocid1.key.oc1..k", {"registry-login": Secret(TOKEN)}),
        jobs={"resnet": job},
    )


@pytest.fixture
def plan() -> OciPlan:
    return oci_plan(stack())


def test_the_same_stack_gives_the_same_plan_and_text() -> None:
    first, second = oci_plan(stack()), oci_plan(stack())
    assert first == second
    assert show.plan_text(first) == show.plan_text(second)
    assert show.to_plain_values(first) == show.to_plain_values(second)


def test_a_plan_shows_no_secret_as_text_or_json(plan: OciPlan) -> None:
    told = show.plan_text(plan)
    assert TOKEN not in told
    assert TOKEN not in json.dumps(show.to_plain_values(plan))
    assert told.count("HF_TOKEN=(secret)") == 6
    assert told.count("ROLE_TOKEN=(secret)") == 4
    assert "PLAIN=seen" in told
    assert "registry-login in ocid1.vault.oc1..v" in told


def test_plain_values_survive_json(plan: OciPlan) -> None:
    values = show.to_plain_values(plan)
    assert json.loads(json.dumps(values)) == values


def test_keys_are_those_of_stack_files(plan: OciPlan) -> None:
    values = show.to_plain_values(plan)
    assert values["network"]["subnetCidr"] == "10.20.0.0/24"
    assert values["jobs"]["resnet"]["maximumRuntimeMinutes"] == 1440
    assert values["jobs"]["resnet"]["roles"][1]["ports"] == {"data": "29500-29563"}
    assert values["vault"]["secrets"] == {"registry-login": show.SECRET}
    # Names people chose are no keys of ours: they stay as they are.
    assert values["jobs"]["resnet"]["runs"]["base"]["nodes"][0]["environment"]["HF_TOKEN"] == show.SECRET


def test_the_text_tells_what_opens_and_why(plan: OciPlan) -> None:
    lines = [" ".join(line.split()) for line in show.plan_text(plan).splitlines()]
    assert "FROM TO PORTS EVIDENCE WHY" in lines
    assert "resnet/worker resnet/main tcp 29400 measured the store where the ranks meet (MASTER_PORT)" in lines
    assert any(line.startswith("subnet internet tcp 443") for line in lines)
    assert "way out to Oracle's services, and out through NAT" in lines


def test_the_text_tells_what_each_run_does(plan: OciPlan) -> None:
    lines = [line.strip() for line in show.plan_text(plan).splitlines()]
    assert "Job resnet: pytorch, 3 nodes of VM.Standard.E4.Flex, 4 OCPU, 64 GB of memory" in lines
    assert "Run resnet/tuned: vision-dev-resnet-tuned, attempt 2, `up` waits until it is finished" in lines
    assert "$ train.py --epochs 10 --lr 0.1" in lines
    assert "worker-1: worker, rank 2" in lines
    assert any("https://example.com/train.git at abc123" in line for line in lines)
    assert any("the bucket/images/ at /data" in line for line in lines)
    assert any("model.pt, results/** of the working directory, of any size" in line for line in lines)


def test_the_text_tells_how_nodes_find_their_rank_and_one_another(plan: OciPlan) -> None:
    lines = [" ".join(line.split()) for line in show.plan_text(plan).splitlines()]
    ranks = "ranks main is rank 0, workers follow in order; MASTER_ADDR is the address of main"
    assert f"{ranks}; addresses are exchanged in the bucket" in lines
    told = lines[lines.index("On each node the launcher adds:") + 1 :]
    assert told[:2] == ["MASTER_ADDR={address.main}", "MASTER_PORT=29400"]
    job = stack().jobs["resnet"]
    groups = replace(stack(), jobs={"resnet": replace(job, layout="node-groups")})
    assert "addresses and ranks are those of OCI's own list of nodes" in show.plan_text(oci_plan(groups))


def test_what_a_stack_does_not_make_is_said() -> None:
    borrowed = replace(stack(), network=OciNetwork(subnet="ocid1.subnet.oc1..ours"), bucket=Bucket(existing="company"))
    told = show.plan_text(oci_plan(borrowed))
    assert "Network: least, not made by this stack" in told
    assert "ocid1.subnet.oc1..ours" in told
    assert "company, not made by this stack" in told


def test_a_table_without_rows_is_not_printed() -> None:
    borrowed = oci_plan(replace(stack(), network=OciNetwork(subnet="ocid1.subnet.oc1..ours")))
    empty = replace(borrowed, network=replace(borrowed.network, rules=()), access=replace(borrowed.access, grants=()))
    shown = show.plan_text(empty)
    assert "Network: least, not made by this stack" in shown
    assert not [words for words in ("has to let through", "has to be granted", "EVIDENCE", "MAY") if words in shown]


def test_waivers_are_told_with_their_reason_and_last_day() -> None:
    waived = replace(stack(), waivers={"public-bucket": Waiver("a public data set", "2026-12-31")})
    assert "  waived       public-bucket until 2026-12-31: a public data set" in show.plan_text(oci_plan(waived))
    said = {"reason": "a public data set", "until": "2026-12-31"}
    assert show.to_plain_values(oci_plan(waived))["waivers"] == {"public-bucket": said}


def test_in_an_existing_vcn_the_way_out_is_not_promised() -> None:
    network = OciNetwork(vcn="ocid1.vcn.oc1..theirs", subnet_cidr="10.0.1.0/24", route_table="routes", nat=True)
    told = show.plan_text(oci_plan(replace(stack(), network=network)))
    assert "as the route table of that VCN says" in told
    assert "out through NAT" not in told.split("FROM")[0]


def test_what_another_stack_makes_goes_by_no_name_of_ours() -> None:
    taken = Uses("org/trainyard/platform", ("network", "access", "bucket", "registry", "logs", "project"))
    team = replace(stack(), network=OciNetwork(), bucket=Bucket(), uses=taken)
    told = show.plan_text(oci_plan(team))
    for name in ("vision-dev-training", "vision/dev/training", "vision-dev-runs"):
        assert name not in told
    assert told.count("that of org/trainyard/platform") >= 5


@pytest.mark.parametrize(
    ("path", "kind", "known"),
    [
        ("resnett/base/main-0", "job", ("resnet",)),
        ("resnet/bass/main-0", "run", ("base", "tuned")),
        ("resnet/base/main", "node", ("main-0", "worker-0", "worker-1")),
        ("resnet", "run", ("base", "tuned")),
        ("", "job", ("resnet",)),
    ],
)
def test_a_wrong_node_names_the_wrong_part_and_the_right_ones(
    plan: OciPlan, path: str, kind: str, known: tuple[str, ...]
) -> None:
    with pytest.raises(show.UnknownNameError) as wrong:
        show.find_node(plan, path)
    assert (wrong.value.kind, wrong.value.choices) == (kind, known)


def test_a_node_is_found(plan: OciPlan) -> None:
    assert show.find_node(plan, "resnet/tuned/worker-1").rank == 2


def test_tables_have_straight_columns_and_no_trailing_blanks() -> None:
    assert list(show.aligned_rows([("a", "bb", "c"), ("aaa", "b", "")], "")) == ["a    bb  c", "aaa  b"]
    assert list(show.aligned_rows([])) == []


@pytest.mark.parametrize(("ports", "shown"), [(None, "all"), (PortRange(5, 5), "5"), (PortRange(5, 9), "5-9")])
def test_ports_are_shown_as_all_one_or_a_range(ports: PortRange | None, shown: str) -> None:
    assert show.planned_ports_text(ports) == shown


def test_a_limit_of_runs_at_once_is_in_the_plan_and_in_the_inputs_of_its_runs_alone() -> None:
    whole = stack()
    runs = {"sweep": Run(each={"lr": (0.1, 0.2, 0.3)}, at_most=2), "base": Run()}
    limited = oci_plan(replace(whole, jobs={name: replace(job, runs=runs) for name, job in whole.jobs.items()}))
    (job,) = limited.jobs.values()
    assert "9 nodes at most: the other runs wait in `up` (`atMost`)" in show.plan_text(limited)
    asked = {name: run.turn_inputs for name, run in job.runs.items()}
    turns = {"turns": {"atMost": 2, "names": "sweep-lr-"}}
    assert asked == {"base": {}, **{f"sweep-lr-{rate}": turns for rate in ("0.1", "0.2", "0.3")}}
