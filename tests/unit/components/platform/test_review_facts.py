# SPDX-License-Identifier: Apache-2.0
"""Losses and costs of every platform: by rows, a team's own prices first, and unknown where none is known."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from catalog.platforms import OWN_PROVIDER, platforms, require_capability
from components.plan.model import RUN_TYPE as RUN
from components.platform.review import UNREAD, Machines, ReviewPlatform, Snapshot, Standing
from components.values.resource_types import resource_types_of_provider
from tests.support.reviews import resource, sentences


def roles(**replicas: int) -> list[dict[str, Any]]:
    return [{"name": name, "called": name, "replicas": number} for name, number in replicas.items()]


@pytest.mark.parametrize("name", platforms())
def test_every_loss_says_what_goes_and_how_to_keep_it(name: str) -> None:
    review = require_capability(name, ReviewPlatform)
    types = {**resource_types_of_provider(platforms()[name].provider), **resource_types_of_provider(OWN_PROVIDER)}
    for token, lost in [(token, row.lost) for token, row in types.items() if row.lost]:
        inputs = dict.fromkeys(lost.named_by[:1], "vision-{thing}")
        loss = review.loss(resource(token, "logical", **inputs))
        assert loss is not None
        assert "{name}" not in loss.words + loss.avoid
        assert ("`vision-{thing}`" if inputs else "`logical`") in loss.words
        assert review.loss(replace(resource(token, **inputs), retain=True)) is None
    assert review.loss(resource("pulumi:providers:any")) is None
    run = review.loss(resource(RUN, displayName="resnet"))
    assert run is not None
    assert "attempt" in run.avoid


def oci(shape: dict[str, Any], **more: Any) -> Snapshot:
    plan = {"jobs": {"resnet": {"roles": roles(main=1, worker=3), "shape": shape, **more}}, "computeTargets": TARGETS}
    return Snapshot("vision-dev", "oci", plan, ())


TARGETS = {
    "pool": {"name": "p", "shape": {"name": "VM.GPU.A10.1"}, "instances": 2, "existing": None},
    "theirs": {"name": "t", "shape": None, "instances": 0, "existing": "ocid1.x"},
}
LISTED = "list prices of shapes.toml, 2026"


@pytest.mark.parametrize(
    ("shape", "prices", "expected"),
    [
        ({"name": "VM.GPU.A10.1"}, {}, Machines("VM.GPU.A10.1", 4, 1, 2.0, LISTED)),
        (
            {"name": "VM.Standard.E5.Flex", "ocpus": 2, "memoryGb": 16},
            {},
            Machines("VM.Standard.E5.Flex", 4, 0, 2 * 0.03 + 16 * 0.002, LISTED),
        ),
        ({"name": "VM.Standard.E5.Flex"}, {}, Machines("VM.Standard.E5.Flex", 4)),
        ({"name": "VM.Standard2.1"}, {}, Machines("VM.Standard2.1", 4)),
        ({"name": "Nobodys"}, {}, Machines("Nobodys", 4, None)),
        ({"name": "VM.Standard.E5.Flex", "ocpus": 2}, {}, Machines("VM.Standard.E5.Flex", 4)),
        (
            {"name": "VM.GPU.A10.1"},
            {"VM.GPU.A10.1": {"usd_per_hour": 1.5, "source": "contract, 2026-03"}},
            Machines("VM.GPU.A10.1", 4, 1, 1.5, "contract, 2026-03"),
        ),
        (
            {"name": "VM.Standard3.Flex", "ocpus": 1, "memoryGb": 10},
            {"VM.Standard3.Flex": {"usd_per_ocpu_hour": 0.1, "usd_per_gib_hour": 0.01}},
            Machines("VM.Standard3.Flex", 4, 0, 0.2, "the team's own prices"),
        ),
    ],
)
def test_what_a_node_costs_on_oci(shape: dict[str, Any], prices: dict[str, Any], expected: Machines) -> None:
    found = require_capability("oci", ReviewPlatform).costs(oci(shape), prices)
    assert found.jobs["resnet"] == expected
    price = prices.get("VM.GPU.A10.1", {}).get("usd_per_hour", 2.0)
    source = prices.get("VM.GPU.A10.1", {}).get("source", LISTED)
    assert found.standing == (Standing("compute target pool: 2 machines of VM.GPU.A10.1", 2 * price, source),)


def test_a_job_on_a_compute_target_costs_nothing_of_its_own() -> None:
    on = {"computeTarget": "pool", "share": [15.0, 240, 1]}
    own = require_capability("oci", ReviewPlatform).costs(oci({"name": "VM.GPU.A10.1"}, **on), {}).jobs["resnet"]
    assert (own.usd_per_hour, own.accelerators, own.stays) == (0.0, 1, True)
    theirs = (
        require_capability("oci", ReviewPlatform)
        .costs(oci({"name": "x"}, **{**on, "computeTarget": "theirs"}), {})
        .jobs["resnet"]
    )
    assert theirs.usd_per_hour is None
    priced = require_capability("oci", ReviewPlatform).costs(
        oci({"name": "x"}, **{**on, "computeTarget": "theirs"}), {"compute target": {"usd_per_hour": 3}}
    )
    assert priced.jobs["resnet"].usd_per_hour == 3


CLUSTER = {"instanceType": "dl1.24xlarge", "nodes": ["main-0", "worker-0"], "stopWhenIdleMinutes": 30, "diskGb": 500}


def test_machines_of_aws_stay_and_have_no_price_but_a_teams_own() -> None:
    made = (
        resource("aws:ec2/natGateway:NatGateway", "nat"),
        resource("aws:ec2/vpcEndpoint:VpcEndpoint", "ssm", vpcEndpointType="Interface"),
        resource("aws:ec2/vpcEndpoint:VpcEndpoint", "logs", vpcEndpointType="Interface"),
        resource("aws:ec2/vpcEndpoint:VpcEndpoint", "s3", vpcEndpointType="Gateway"),
    )
    side = Snapshot("vision-dev", "aws-dl1", {"jobs": {"resnet": {"cluster": CLUSTER}}}, made)
    answers = require_capability("aws-dl1", ReviewPlatform)
    found = answers.costs(side, {})
    assert found.jobs == {"resnet": Machines("dl1.24xlarge", 2, 8, stays=True, idle_minutes=30)}
    assert [(one.what, one.usd_per_hour) for one in found.standing] == [
        ("1 NAT gateway", None),
        ("2 interface endpoints", None),
        ("disks of the machines: 1000 GB, also while they are stopped", None),
    ]
    prices = {"dl1.24xlarge": {"usd_per_hour": 13.0}, "NAT gateway": {"usd_per_hour": 0.05, "source": "bill"}}
    priced = answers.costs(side, prices)
    assert priced.jobs["resnet"].usd_per_hour == 13.0
    assert priced.standing[0] == Standing("1 NAT gateway", 0.05, "bill")


def openpai(*plugins: str, grants: Any = (), protocol: Any = None, **roles_of: Any) -> Snapshot:
    extras = {"com.microsoft.pai.runtimeplugin": [{"plugin": plugin} for plugin in plugins]}
    sku = {"sku": {"gpus": 2}}
    tasks = {"main": sku, "worker": sku, **roles_of}
    job = {"roles": roles(main=1, worker=3), "shape": {"name": "gpu2"}, "taskRoles": tasks}
    plan = {
        "cluster": {"uri": "https://pai.example.com", "user": "bot"},
        "access": {"grants": list(grants)},
        "jobs": {"resnet": job},
    }
    run = resource(RUN, "resnet/base", platform="openpai", protocol=protocol or {"extras": extras})
    return Snapshot("vision-dev", "openpai", plan, (run,))


def test_openpai_has_no_rules_and_no_prices() -> None:
    answers = require_capability("openpai", ReviewPlatform)
    assert answers.network(openpai()).unjudged == "OpenPAI has no API for networks: nodes share the cluster's"
    assert answers.costs(openpai(), {}).jobs == {"resnet": Machines("gpu2", 4, 2)}
    assert answers.costs(openpai(), {"gpu2": {"usd_per_hour": 3}}).jobs["resnet"].usd_per_hour == 3
    assert answers.costs(openpai(), {"openpai": {"usd_per_hour": 2}}).jobs["resnet"].usd_per_hour == 2


def test_tasks_of_openpai_that_are_not_alike_and_are_tried_again() -> None:
    mixed = openpai(worker={"sku": {"gpus": 4}, "retryCount": 3})
    found = require_capability("openpai", ReviewPlatform).costs(mixed, {"gpu2": {"usd_per_hour": 3}}).jobs["resnet"]
    # Two accelerators on one node and four on three: 14. Whose SKU has which price, the plan does not say.
    assert (found.accelerators, found.usd_per_hour, found.retries) == (14 / 4, None, 3)


def test_what_openpai_lets_people_and_tasks_do() -> None:
    grant = {"who": "users", "does": "submit", "what": "jobs", "target": "prod"}
    assert sentences(openpai(), openpai("ssh", grants=[grant])) == [
        "tasks of the job resnet may have the plugin ssh",
        "user bot at https://pai.example.com may submit jobs: job prod",
    ]
    assert sentences(openpai(), openpai(protocol="(unknown) protocol")) == [
        f"{UNREAD} may do what cannot be read here: the protocol of the run resnet/base"
    ]
