# SPDX-License-Identifier: Apache-2.0
"""Which updates OCI refuses, and how to avoid each refusal."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pulumi_oci as oci
import pytest

from catalog.tables import table
from components.messages import RefusedError
from components.oci.plan import OciPlan
from components.oci.resources.refusals import find_refusals
from components.oci.stack import OciNetwork, Vault
from components.outputs import Recorded
from schemas.findings import Wrong
from schemas.model import Bucket, Secret
from tests.support.samples import job, plan

VCN, SUBNET = "ocid1.vcn.oc1.iad.own", "ocid1.subnet.oc1.iad.other"
RULES = table("oci_refusals")


@pytest.fixture(autouse=True)
def only_subnet(monkeypatch: pytest.MonkeyPatch) -> None:
    """The VCN has no subnets of others. This replaces a lookup by the engine."""
    monkeypatch.setattr(oci.core, "get_subnets", lambda **where: SimpleNamespace(subnets=[]))


def state(**rows: Mapping[str, Any]) -> Recorded:
    kinds = {"vcn": "oci:Core/vcn:Vcn::vcn", "subnet": "oci:Core/subnet:Subnet::subnet"}
    kinds |= {"bucket": "oci:ObjectStorage/bucket:Bucket::bucket", "secret": "oci:Vault/secret:Secret::secret-token"}
    return Recorded({f"urn:pulumi:s::p::{kinds[name]}": outputs for name, outputs in rows.items()})


def recorded(subnet: str = "10.20.0.0/20", vcn: str = VCN) -> Recorded:
    """The network of 10.20.0.0/16, or a subnet in another VCN."""
    own = {"vcn": {"cidrBlocks": ["10.20.0.0/16"]}} if vcn == VCN else {}
    return state(subnet={"cidrBlock": subnet, "vcnId": vcn, "displayName": "nodes"}, **own)


def found(made: OciPlan, before: Recorded) -> list[Wrong]:
    return list(find_refusals(made, before))


def refused(made: OciPlan, before: Recorded) -> tuple[Wrong, ...]:
    with pytest.raises(RefusedError) as error:
        found(made, before)
    return error.value.wrongs


def network(cidr: str = "10.20.0.0/16", subnet: str = "10.20.0.0/20", **others: Any) -> OciPlan:
    return plan(network=OciNetwork(cidr=cidr, subnet_cidr=subnet, **others))


def test_a_range_without_the_subnet_is_named_with_the_way_that_works() -> None:
    (wrong,) = found(network("10.30.0.0/16", "10.30.0.0/20"), recorded())
    assert wrong.path[-2:] == ("trainyard:network", "cidr")
    assert "10.20.0.0/16 -> 10.30.0.0/16 leaves subnets outside: `nodes` (10.20.0.0/20)" in wrong.message
    assert RULES["vcn-range"]["rule"] in wrong.message
    assert "--replace urn:pulumi:s::p::oci:Core/vcn:Vcn::vcn`" in wrong.remedy
    assert not found(network("10.20.0.0/17"), recorded()), "it contains the subnet"
    assert not found(network(), recorded()), "nothing changes"
    assert not found(network("10.30.0.0/16", "10.30.0.0/20"), state()), "a new stack"


def test_what_trains_again_when_the_network_moves_is_said() -> None:
    moved = OciNetwork(cidr="10.30.0.0/16")
    (wrong,) = found(plan(network=moved, jobs={"train": job(layout="node-groups"), "other": job()}), recorded())
    assert wrong.remedy.endswith("The jobs of node groups start their runs again: `train`.")
    (wrong,) = found(plan(network=moved), recorded())
    assert "again" not in wrong.remedy


@pytest.mark.parametrize(
    ("subnet", "words", "way"),
    [
        ("10.20.16.0/20", "same address", "that begins at 10.20.0.0. To move the subnet, let the runs in it end"),
        ("10.20.0.0/19", "", ""),
        ("10.20.0.0/21", "removes addresses", "or keep its range: `subnetCidr: 10.20.0.0/20`"),
    ],
)
def test_a_subnet_keeps_its_first_address_and_those_in_use(subnet: str, words: str, way: str) -> None:
    said = found(network(subnet=subnet), recorded())
    assert len(said) == bool(words)
    for wrong in said:
        assert wrong.path[-1] == "subnetCidr"
        assert words in wrong.message
        assert RULES["subnet-range"]["rule"] in wrong.message
        assert way in wrong.remedy


def test_a_subnet_does_not_move_into_a_range_that_overlaps_it() -> None:
    (wrong,) = found(network(subnet="10.20.0.0/19"), recorded(subnet="10.20.16.0/20"))
    assert "Or choose one that does not overlap 10.20.16.0/20; then: to move the subnet" in wrong.remedy


@pytest.mark.parametrize(
    ("made", "before"),
    [
        (plan(network=OciNetwork(subnet=SUBNET)), recorded()),
        (plan(network=OciNetwork(vcn="ocid1.vcn.oc1.iad.company")), recorded()),
        (network(), recorded(vcn="ocid1.vcn.oc1.iad.company")),
    ],
    ids=["an existing subnet", "an existing VCN", "a VCN of its own"],
)
def test_a_network_that_is_given_up_goes_after_its_runs(made: OciPlan, before: Recorded) -> None:
    (wrong,) = found(made, before)
    assert wrong.message.startswith("the subnet `nodes` is deleted")
    assert RULES["network-in-use"]["rule"] in wrong.message


def test_versioning_is_suspended_and_never_turned_off() -> None:
    def bucket(versioning: Any, name: str = "vision-dt") -> OciPlan:
        return plan(bucket=Bucket(name=name, versioning=versioning))

    for before in ("Enabled", "Suspended"):
        row = {"name": "vision-dt", "versioning": before}
        (wrong,) = refused(bucket(False), state(bucket=row))
        assert RULES["bucket-versioning"]["rule"] in wrong.message
        assert "versioning: suspended" in wrong.remedy
        assert not found(bucket("suspended"), state(bucket=row))
        assert not found(bucket(False, "another"), state(bucket=row))
    (wrong,) = refused(bucket("suspended"), state())
    assert RULES["bucket-suspended"]["rule"] in wrong.message


def test_a_secret_keeps_its_key() -> None:
    def vault(key: str, place: str = "ocid1.vault.a", name: str = "token") -> OciPlan:
        return plan(vault=Vault(place, key, {name: Secret()}))

    row = {"keyId": "ocid1.key.a", "vaultId": "ocid1.vault.a", "secretName": "vision-dev-token"}
    before = state(secret=row)
    (wrong,) = refused(vault("ocid1.key.b"), before)
    assert "the secret `vision-dev-token` has the key ocid1.key.a" in wrong.message
    assert RULES["secret-key"]["rule"] in wrong.message
    for made in (vault("ocid1.key.a"), vault("ocid1.key.b", name="token-2"), vault("ocid1.key.b", "ocid1.vault.b")):
        assert not found(made, before)
