# SPDX-License-Identifier: Apache-2.0
"""Stacks on any machine of AWS: its interfaces, how it is bought, and what `check` says when it alone changes."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from catalog.aws import aws_machine
from catalog.platforms import platform_in, platform_spellings, platform_word
from components.aws.machines import MachineImage, MachinePlace, launch_template, template_name
from components.aws.plan import aws_dl1_plan
from components.aws.stack import Cluster
from components.plan.build import plan_of
from schemas.findings import dotted_path
from schemas.judge import Judged, judge_file
from schemas.model import Shape
from tests.support.aws_plans import aws_job, aws_plan, aws_stack

PLACE = MachinePlace("subnet-1", "sg-1", "profile")
STACKS = Path(__file__).parents[4] / "stacks"
ENA, EFA, ONLY = "interface", "efa", "efa-only"
# As AWS's page on network cards of accelerated machines has it: (card, device, type).
LAYOUTS = {
    "dl1.24xlarge": [(0, 0, EFA), (1, 1, EFA), (2, 1, EFA), (3, 1, EFA)],
    "p4d.24xlarge": [(0, 0, ENA), (0, 1, ONLY), (1, 0, ONLY), (2, 0, ONLY), (3, 0, ONLY)],
    "p5.48xlarge": [(0, 0, ENA), (0, 1, ONLY), *((card, 0, ONLY) for card in range(1, 32))],
    "p6-b300.48xlarge": [(0, 0, ENA), *((card, 0, ONLY) for card in range(1, 17))],
    "g6e.8xlarge": [(0, 0, EFA)],
    "g6e.24xlarge": [(0, 0, ENA), (0, 1, ONLY), (1, 0, ONLY)],
    "trn2.3xlarge": [(0, 0, EFA)],
    "g5.xlarge": [(0, 0, ENA)],
    "c7i.xlarge": [(0, 0, ENA)],
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_machine_starts_with_the_interfaces_of_its_row(name: str) -> None:
    stack = aws_stack(jobs={"resnet": aws_job(shape=Shape(name))})
    plan = aws_plan(jobs=dict(stack.jobs))
    cluster = plan.jobs["resnet"].cluster
    template = launch_template(cluster, MachineImage("ami-1", "/dev/sda1", "ami-1"), PLACE, "", {})
    made = template["network_interfaces"]
    seen = [(one["network_card_index"], one["device_index"], one.get("interface_type", ENA)) for one in made]
    assert seen == LAYOUTS[name]
    # Only an EFA without an address takes none of the subnet's. The rest of the addresses are endpoints'.
    addresses = sum(kind != ONLY for _card, _device, kind in seen)
    none = aws_stack(jobs={})
    assert stack.addresses({}) - none.addresses({}) == stack.jobs["resnet"].nodes * addresses
    assert ("associate_public_ip_address" in made[0]) is (len(made) == 1)


def test_a_single_interface_of_a_machine_whose_first_card_has_no_efa_is_on_another_card() -> None:
    machine = aws_machine("p6-b300.48xlarge")
    assert machine is not None
    assert [(one.card, one.device, one.kind) for one in machine.interfaces(1)] == [(0, 0, ENA), (1, 0, ONLY)]


def test_a_capacity_block_is_targeted_by_its_id_and_its_machines_never_stop() -> None:
    block = Cluster(market="capacity-block", reservation="cr-1", ami="ami-1")
    plan = aws_plan(jobs={"resnet": aws_job(shape=Shape("p5en.48xlarge"), cluster=block)})
    cluster = plan.jobs["resnet"].cluster
    image = MachineImage("ami-1", "/dev/sda1", "ami-1")
    template = launch_template(cluster, image, PLACE, "", {})
    assert template["instance_market_options"] == {"market_type": "capacity-block"}
    assert template["capacity_reservation_specification"] == {
        "capacity_reservation_target": {"capacity_reservation_id": "cr-1"}
    }
    assert "placement" not in template
    assert cluster.stop_when_idle_minutes == 0
    reserved = Cluster(reservation="cr-1", ami="ami-1", stop_when_idle=0)
    other = aws_plan(jobs={"resnet": aws_job(shape=Shape("p5en.48xlarge"), cluster=reserved)}).jobs["resnet"].cluster
    assert template_name(cluster, image, {}) != template_name(other, image, {})


def test_spot_is_another_spelling_of_its_market_and_all_interfaces_of_all_of_them() -> None:
    short = aws_plan(jobs={"resnet": aws_job(cluster=Cluster(ami="ami-1", spot=True))})
    whole = aws_plan(jobs={"resnet": aws_job(cluster=Cluster(ami="ami-1", market="spot", efa=4))})
    assert short.jobs["resnet"].cluster == whole.jobs["resnet"].cluster


def test_both_words_name_the_platform_and_inside_there_is_one() -> None:
    assert platform_in({"trainyard:platform": "aws"}) == platform_in({"trainyard:platform": "aws-dl1"}) == "aws-dl1"
    assert platform_in({"trainyard:platform": "aws-dl"}) == "aws-dl"
    assert platform_word("aws-dl1") == "aws"
    assert platform_spellings()["aws"] == "aws-dl1"


def _judged(folder: Path, changes: dict[str, str]) -> Judged:
    """An example stack with its code, changed."""
    text = (STACKS / "Pulumi.aws-dl1-resnet.yaml").read_text("utf-8")
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    shutil.copytree(STACKS / "examples" / "resnet-ddp", folder / "examples" / "resnet-ddp")
    file = folder / "Pulumi.resnet.yaml"
    file.write_text(text, "utf-8")
    return judge_file(file)


def test_a_file_that_says_aws_has_the_plan_of_one_that_says_aws_dl1(tmp_path: Path) -> None:
    earlier, now = (_judged(tmp_path / word, {"platform: aws-dl1": f"platform: {word}"}) for word in ("aws-dl1", "aws"))
    assert not earlier.findings
    assert not now.findings
    assert plan_of(earlier) == plan_of(now)


def test_who_changes_the_machine_only_is_told_each_thing_that_has_to_follow(tmp_path: Path) -> None:
    judged = _judged(tmp_path, {"shape: dl1.24xlarge": "shape: p5.48xlarge", "LOG_LEVEL_ALL": "HABANA_LOGS"})
    found = {
        dotted_path(one.path).removeprefix("trainyard:jobs.resnet."): (one.code, one.remedy) for one in judged.findings
    }
    assert found == {
        "trainyard:quota.vcpus": (
            "TY165",
            "ask AWS for a larger quota of P instances (L-417A185B), or use fewer nodes",
        ),
        "options.backend": ("TY162", "use `nccl`, `gloo`, `auto`"),
        "code": ("TY8200", "use the device `cuda` and the backend `nccl`"),
        "cluster.ami": ("TY8202", "use `ami: nvidia`, or the id of an image with the drivers of NVIDIA GPUs"),
        "cluster.release": ("TY169", "remove it"),
        "cluster.efa": ("TY167", "remove it: then they use all, and data between nodes moves fastest"),
        "runs.warm.env.HABANA_LOGS": ("TY501", found["runs.warm.env.HABANA_LOGS"][1]),
    }


def test_what_follows_the_machine_satisfies_check(tmp_path: Path) -> None:
    judged = _judged(
        tmp_path,
        {
            "shape: dl1.24xlarge": "shape: p5.48xlarge",
            "{vcpus: 192}": "{vcpus: 384}",
            "backend: hccl": "backend: nccl",
            "ami: ami-0d11a1b2c3d4e5f60": "ami: nvidia",
            "        release: 1.15.1\n        efa: 4\n": "",
            "      code: ./examples/resnet-ddp\n": "",
        },
    )
    assert not judged.findings
    cluster = aws_dl1_plan(plan_of(judged)).jobs["resnet"].cluster
    assert (cluster.efa, cluster.image, cluster.release, cluster.host_nic) == (32, None, "", "libfabric")
    assert cluster.image_parameter
    assert cluster.image_parameter.startswith("/aws/service/deeplearning/")
