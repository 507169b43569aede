# SPDX-License-Identifier: Apache-2.0
"""Machines of every row, through botocore's own client: where they are offered, what their quotas count, capacity
blocks, and the images that public parameters name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from catalog.aws import Interface, aws_machine
from catalog.tables import table
from localcloud.aws.additions import capacity
from tests.support.aws_clients import refused
from tests.support.aws_inside import AwsInside, aws_inside

MACHINES = table("aws_machines")["machines"]
GAUDI_IMAGE = table("aws_local")["image"][0]["id"]
ZONE, OTHER_ZONE = "us-east-1a", "us-east-1c"


class Account:
    """A deployer's clients, and a subnet in each of two zones."""

    def __init__(self, inside: AwsInside) -> None:
        self.cloud = inside.cloud
        self.ec2, self.ssm, self.quotas = (
            inside.client(inside.deployer, service) for service in ("ec2", "ssm", "service-quotas")
        )
        vpc = self.ec2.create_vpc(CidrBlock="10.7.0.0/16")["Vpc"]["VpcId"]
        self.subnets = {
            zone: self.ec2.create_subnet(VpcId=vpc, CidrBlock=f"10.7.{number}.0/24", AvailabilityZone=zone)["Subnet"][
                "SubnetId"
            ]
            for number, zone in enumerate((ZONE, OTHER_ZONE))
        }

    def launch(self, kind: str, count: int = 1, zone: str = ZONE, **more: Any) -> list[str]:
        answer = self.ec2.run_instances(
            ImageId=GAUDI_IMAGE, InstanceType=kind, MinCount=count, MaxCount=count, SubnetId=self.subnets[zone], **more
        )
        return [instance["InstanceId"] for instance in answer["Instances"]]

    def in_block(self, block: str, kind: str = "p5en.48xlarge", count: int = 1, zone: str = ZONE) -> list[str]:
        return self.launch(kind, count, zone, **bought(block))

    def refusal_of(self, kind: str, layout: Sequence[Interface]) -> tuple[str, str]:
        launch = {"ImageId": GAUDI_IMAGE, "InstanceType": kind, "MinCount": 1, "MaxCount": 1, "DryRun": True}
        interfaces = [
            {"NetworkCardIndex": interface.card, "DeviceIndex": interface.device, "InterfaceType": interface.kind,
             "SubnetId": self.subnets[ZONE]} for interface in layout
        ]  # fmt: skip
        return refused(self.ec2.run_instances, **launch, NetworkInterfaces=interfaces)

    def buy(self, count: int = 2, hours: int = 48, **when: Any) -> str:
        offerings = self.ec2.describe_capacity_block_offerings(
            InstanceType="p5en.48xlarge", InstanceCount=count, CapacityDurationHours=hours, **when
        )["CapacityBlockOfferings"]
        assert {offering["AvailabilityZone"] for offering in offerings} == {ZONE, OTHER_ZONE}
        offering = next(offering for offering in offerings if offering["AvailabilityZone"] == ZONE)
        bought = self.ec2.purchase_capacity_block(
            CapacityBlockOfferingId=offering["CapacityBlockOfferingId"], InstancePlatform="Linux/UNIX"
        )["CapacityReservation"]
        assert (bought["ReservationType"], bought["InstanceMatchCriteria"]) == ("capacity-block", "targeted")
        assert bought["EndDate"] - bought["StartDate"] == timedelta(hours=hours)
        return str(bought["CapacityReservationId"])

    def block(self, identifier: str) -> dict[str, Any]:
        (block,) = self.ec2.describe_capacity_reservations(CapacityReservationIds=[identifier])["CapacityReservations"]
        return dict(block)

    def ended(self) -> set[str]:
        return {
            instance["InstanceId"]
            for reservation in self.ec2.describe_instances()["Reservations"]
            for instance in reservation["Instances"]
            if instance["State"]["Name"] == "terminated"
        }

    def limit(self, name: str, value: int) -> None:
        self.cloud._faults.add({"kind": "limit", "limit": name, "value": value})


def bought(block: str, market: str = "capacity-block") -> dict[str, Any]:
    return {
        "InstanceMarketOptions": {"MarketType": market},
        "CapacityReservationSpecification": {"CapacityReservationTarget": {"CapacityReservationId": block}},
    }


@pytest.fixture(scope="module")
def inside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AwsInside]:
    with aws_inside(tmp_path_factory.mktemp("aws")) as inside:
        yield inside


@pytest.fixture
def account(inside: AwsInside) -> Iterator[Account]:
    account = Account(inside)
    yield account
    inside.cloud._faults.clear()
    for reservation in account.ec2.describe_instances()["Reservations"]:
        account.ec2.terminate_instances(InstanceIds=[one["InstanceId"] for one in reservation["Instances"]])


def test_every_machine_is_offered_in_some_zones_of_both_regions(account: Account) -> None:
    pages = account.ec2.get_paginator("describe_instance_type_offerings").paginate(LocationType="availability-zone")
    offered = {(row["InstanceType"], row["Location"]) for page in pages for row in page["InstanceTypeOfferings"]}
    assert {(name, zone) for name in MACHINES for zone in (ZONE, OTHER_ZONE)} <= offered
    assert not {("dl1.24xlarge", "us-east-1b"), ("trn2.48xlarge", "us-east-1b")} & offered


def test_the_layout_of_every_machine_is_taken(account: Account) -> None:
    """With no EFA, with one, and with all. No card carries a second one."""
    layouts: dict[Any, tuple[str, int]] = {}
    for name in MACHINES:
        machine = aws_machine(name)
        assert machine
        for efa in {0, min(1, machine.efa_interfaces), machine.efa_interfaces}:
            layout = machine.interfaces(efa)
            layouts.setdefault((layout, machine.network_cards, machine.interfaces_per_card), (name, efa))
    for (layout, _, most), (name, efa) in layouts.items():
        assert account.refusal_of(name, layout)[0] == "DryRunOperation", (name, efa)
        if efa:
            second = Interface(layout[-1].card, most - 1, "efa-only")
            assert account.refusal_of(name, (*layout, second))[0] != "DryRunOperation", name


@pytest.mark.parametrize(
    ("name", "interface", "refusal"),
    [
        ("p6-b300.48xlarge", Interface(0, 1, "efa-only"), "Network card 0 of p6-b300.48xlarge does not support EFA"),
        ("p5.48xlarge", Interface(1, 2, "efa-only"), "The specified number '2' for the device index exceeds"),
        ("p5.48xlarge", Interface(0, 0, "efa-only"), "is used by more than one network interface"),
        ("g6e.xlarge", Interface(0, 1, "efa"), "The instance type g6e.xlarge does not support EFA"),
    ],
)
def test_an_interface_that_a_card_does_not_carry_is_refused(
    account: Account, name: str, interface: Interface, refusal: str
) -> None:
    assert refusal in account.refusal_of(name, (Interface(0, 0, "interface"), interface))[1]


def test_machines_of_one_quota_count_together(account: Account) -> None:
    listed = {
        quota["QuotaCode"]: quota for page in account.quotas.get_paginator("list_service_quotas").paginate(
            ServiceCode="ec2"
        ) for quota in page["Quotas"]
    }  # fmt: skip
    codes = {code for row in table("aws_machines")["quotas"].values() for code in (row["on_demand"], row.get("spot"))}
    assert listed.keys() == codes - {None}
    shared = table("aws_machines")["quotas"]["P"]["on_demand"]
    account.limit(shared, 96 + 192)
    assert account.quotas.get_service_quota(ServiceCode="ec2", QuotaCode=shared)["Quota"]["Value"] == 288
    account.launch("p4d.24xlarge")
    account.launch("p5.48xlarge")
    assert refused(account.launch, "p4d.24xlarge")[0] == "VcpuLimitExceeded"
    account.launch("g6e.48xlarge")
    spot: dict[str, Any] = {"InstanceMarketOptions": {"MarketType": "spot"}}
    account.limit(table("aws_machines")["quotas"]["P5"]["spot"], 192)
    account.launch("p5.48xlarge", **spot)
    assert refused(account.launch, "p5en.48xlarge", **spot)[0] == "MaxSpotInstanceCountExceeded"
    account.launch("p4d.24xlarge", **spot)
    # A family whose quota nobody knows is not counted, and neither is a machine that no row names.
    account.launch("p6-b200.48xlarge", 20, **spot)
    account.launch("t3.micro", 20)


def test_a_block_holds_the_machines_that_were_bought(account: Account) -> None:
    block = account.buy()
    assert (account.block(block)["State"], account.block(block)["AvailableInstanceCount"]) == ("active", 2)
    account.limit(table("aws_machines")["quotas"]["P5"]["on_demand"], 0)  # a block's machines count to no quota
    first, _ = account.in_block(block, count=2)
    shown = account.ec2.describe_instances(InstanceIds=[first])["Reservations"][0]["Instances"][0]
    assert (shown["InstanceLifecycle"], shown["CapacityReservationId"]) == ("capacity-block", block)
    assert refused(account.in_block, block)[0] == "ReservationCapacityExceeded"
    account.ec2.stop_instances(InstanceIds=[first])
    (third,) = account.in_block(block)
    assert refused(account.ec2.start_instances, InstanceIds=[first])[0] == "ReservationCapacityExceeded"
    account.ec2.terminate_instances(InstanceIds=[third])
    account.ec2.start_instances(InstanceIds=[first])
    assert {first, third} & account.ended() == {third}
    account.ec2.terminate_instances(InstanceIds=[third])  # once more, as on AWS


def test_what_does_not_fit_a_block_is_refused(account: Account) -> None:
    block = account.buy()
    plain = account.ec2.create_capacity_reservation(
        InstanceType="p5en.48xlarge", InstancePlatform="Linux/UNIX", AvailabilityZone=ZONE, InstanceCount=1
    )["CapacityReservation"]["CapacityReservationId"]
    cases: list[tuple[str, str, Any]] = [
        ("InvalidParameterValue", "does not match", lambda: account.in_block(block, zone=OTHER_ZONE)),
        ("InvalidParameterValue", "does not match", lambda: account.in_block(block, "p5.48xlarge")),
        ("InvalidParameterValue", "market type", lambda: account.launch("p5en.48xlarge", **bought(block, "spot"))),
        ("InvalidParameterValue", "market type", lambda: account.in_block(plain)),
        ("InvalidParameterCombination", "need the ID", lambda: account.launch(
            "p5en.48xlarge", InstanceMarketOptions={"MarketType": "capacity-block"})),
        ("OperationNotPermitted", "cannot", lambda: account.ec2.cancel_capacity_reservation(
            CapacityReservationId=block)),
        ("OperationNotPermitted", "cannot", lambda: account.ec2.modify_capacity_reservation(
            CapacityReservationId=block, InstanceCount=3)),
        ("InvalidParameterValue", "duration", lambda: account.buy(hours=25)),
        ("InvalidParameterValue", "duration", lambda: account.buy(hours=24 * 15)),
        ("InvalidParameterValue", "count", lambda: account.buy(count=65)),
        ("Unsupported", "Capacity Blocks", lambda: account.ec2.describe_capacity_block_offerings(
            InstanceType="g6e.48xlarge", InstanceCount=1, CapacityDurationHours=24)),
        ("InvalidCapacityBlockOfferingId.NotFound", "exist", lambda: account.ec2.purchase_capacity_block(
            CapacityBlockOfferingId="cb-0123456789abcdef0", InstancePlatform="Linux/UNIX")),
    ]  # fmt: skip
    for number, (code, words, call) in enumerate(cases):
        found, message = refused(call)
        assert (found, words in message) == (code, True), (number, found, message)
    assert account.block(block)["AvailableInstanceCount"] == 2, "none of it had an effect"


def test_a_blocks_machines_end_half_an_hour_before_it(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    began = datetime.now(UTC).replace(tzinfo=None)
    later = account.buy(StartDateRange=began + timedelta(days=1))
    block = account.buy()
    assert account.block(later)["State"] == "scheduled"
    assert refused(account.in_block, later)[0] == "InvalidParameterValue"
    before = account.ended()
    (instance,) = account.in_block(block)

    def at(**since: float) -> None:
        moment = began + timedelta(**since)
        monkeypatch.setattr(capacity, "utc_now", lambda: moment)

    at(hours=25)
    assert (account.block(later)["State"], account.ended()) == ("active", before)
    at(hours=47.4)
    assert account.ended() == before
    at(hours=47.6)
    assert account.ended() - before == {instance}
    assert account.block(block)["State"] == "active"
    assert refused(account.in_block, block)[0] == "InvalidParameterValue"
    at(hours=48.1)
    assert (account.block(block)["State"], account.block(block)["AvailableInstanceCount"]) == ("expired", 0)


def test_a_fault_ends_a_block_now(account: Account) -> None:
    block = account.buy()
    before = account.ended()
    (instance,) = account.in_block(block)
    account.limit(block, 30)
    assert account.ended() - before == {instance}
    shown = account.block(block)
    assert shown["EndDate"] - shown["StartDate"] == timedelta(minutes=30)


@pytest.mark.parametrize(
    "parameter", sorted({row["ami"] for row in table("aws_accelerators").values() if "ami" in row})
)
def test_a_public_parameter_names_an_image_and_later_a_newer_one(account: Account, parameter: str) -> None:
    def read() -> str:
        return str(account.ssm.get_parameter(Name=parameter)["Parameter"]["Value"])

    first = read()
    account.limit(parameter, 1)
    second = read()
    assert first != second
    images = account.ec2.describe_images(ImageIds=[first, second])["Images"]
    assert {image["RootDeviceName"] for image in images} == {"/dev/sda1"}
    by_path = account.ssm.get_parameters_by_path(Path=parameter.rpartition("/")[0], Recursive=True)["Parameters"]
    assert [found["Value"] for found in by_path] == [second]
    assert refused(account.ssm.put_parameter, Name=parameter, Value="x", Overwrite=True)[0] == "AccessDeniedException"
