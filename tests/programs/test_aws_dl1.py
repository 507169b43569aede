# SPDX-License-Identifier: Apache-2.0
"""Stacks on AWS DL1: changes of examples, lookups in AWS, and a comparison with AWS's own models."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import botocore.session
import pytest
from botocore.model import OperationModel
from botocore.validate import ParamValidator

from components.aws.iam.decide import AwsPrincipal, InForce, Keys, Need, decide_aws_call
from components.aws.iam.documents import PolicyDocument, statements_of
from tests.programs.conftest import Record, Written
from tests.support.ec2_words import as_ec2
from tests.support.examples import AWS_EXAMPLES
from tests.support.recorder.client import ProgramError, Recording, Resource

Change = Callable[[dict[str, Any]], None]
LAST_UP = "organization/trainyard/aws-dl1-resnet"
LETTING_IN = [{"cidr": "203.0.113.0/24", "ports": 3022, "why": "SSH from the office"}]


def of_type(recording: Recording, kind: str) -> list[Resource]:
    return [one for one in recording.resources if one.type.rsplit(":", 1)[-1] == kind]


def cluster(**keys: Any) -> Change:
    def change(config: dict[str, Any]) -> None:
        config["trainyard:jobs"]["resnet"]["cluster"] |= keys

    return change


def network(keys: Mapping[str, Any], *others: Change) -> Change:
    def change(config: dict[str, Any]) -> None:
        config["trainyard:network"] = dict(keys)
        for other in others:
            other(config)

    return change


@cache
def operation(service: str, name: str) -> OperationModel:
    return botocore.session.Session().get_service_model(service).operation_model(name)


@pytest.mark.parametrize("name", AWS_EXAMPLES)
def test_a_launch_template_is_one_of_ec2_s_own_model(name: str, record: Record) -> None:
    for template in of_type(record(name), "LaunchTemplate"):
        data = {key: value for key, value in template.inputs.items() if key not in ("name", "description", "tags")}
        asked = {"LaunchTemplateName": template.inputs["name"], "LaunchTemplateData": as_ec2(data)}
        report = ParamValidator().validate(asked, operation("ec2", "CreateLaunchTemplate").input_shape)
        assert not report.has_errors(), report.generate_report()


@pytest.mark.parametrize("name", AWS_EXAMPLES)
def test_every_taggable_resource_names_its_owner(name: str, record: Record) -> None:
    for one in record(name).resources:
        if one.type.startswith("aws:") and "tags" in one.inputs:
            assert {"stack", "team", "environment", "managed-by"} <= set(one.inputs["tags"]), one.name
    instances = of_type(record(name), "Instance")
    # Threads register them in any order.
    assert sorted(one.inputs["tags"]["rank"] for one in instances) == [str(rank) for rank in range(len(instances))]
    for template in of_type(record(name), "LaunchTemplate"):
        kinds = {part["resourceType"]: part["tags"] for part in template.inputs["tagSpecifications"]}
        assert set(kinds) == {"volume", "network-interface"}
        assert all("stack" in tags for tags in kinds.values())


@pytest.mark.parametrize(("efa", "cards"), [(1, [0]), (2, [0, 1]), (3, [0, 1, 2]), (4, [0, 1, 2, 3])])
def test_each_efa_interface_has_a_network_card_of_its_own(efa: int, cards: list[int], changed: Written) -> None:
    (template,) = of_type(changed("aws-dl1-resnet", cluster(efa=efa)), "LaunchTemplate")
    interfaces = template.inputs["networkInterfaces"]
    assert [one["networkCardIndex"] for one in interfaces] == cards
    assert [one["deviceIndex"] for one in interfaces] == [0, *[1] * (efa - 1)]
    assert {one["interfaceType"] for one in interfaces} == {"efa"}
    # With several interfaces, AWS refuses the setting with any value.
    assert ["associatePublicIpAddress" in one for one in interfaces] == ([True] if efa == 1 else [False] * efa)


def test_an_elastic_address_is_the_first_node_s_by_its_interface(changed: Written) -> None:
    how = network({"ingress": LETTING_IN}, cluster(publicAddress="elastic"))
    made = changed("aws-dl1-resnet", how)
    (association,) = of_type(made, "EipAssociation")
    assert association.inputs["networkInterfaceId"] == "eni-resnet/main-0"
    assert "instanceId" not in association.inputs
    (route,) = of_type(made, "Route")
    assert route.inputs["gatewayId"] == "igw-internet"
    (rule,) = [one for one in of_type(made, "SecurityGroupIngressRule") if one.name.startswith("from-")]
    assert (rule.inputs["cidrIpv4"], rule.inputs["fromPort"]) == ("203.0.113.0/24", 3022)
    assert made.exports["jobs"]["resnet"]["address"] == "203.0.113.9"


@pytest.mark.parametrize(
    ("address", "mode", "ports"),
    [
        ({"publicAddress": "elastic"}, "least", (443, 443)),
        ({"publicAddress": "automatic", "efa": 1}, "least", (443, 443)),
        ({"publicAddress": "automatic", "efa": 1}, "proof-of-concept", (0, 65535)),
        ({"publicAddress": "none"}, "least", None),
    ],
)
def test_nodes_with_public_addresses_reach_the_planned_destinations(
    address: dict[str, Any], mode: str, ports: tuple[int, int] | None, changed: Written
) -> None:
    """A route to the internet is not enough: the nodes' security group has to allow it, too."""
    made = changed("aws-dl1-resnet", network({"ingress": LETTING_IN, "mode": mode}, cluster(**address)))
    out = [one.inputs for one in of_type(made, "SecurityGroupEgressRule") if one.inputs.get("cidrIpv4") == "0.0.0.0/0"]
    assert [(one["fromPort"], one["toPort"], one["ipProtocol"]) for one in out] == ([(*ports, "tcp")] if ports else [])
    assert len(of_type(made, "Route")) == len(out)


OWN, BUCKET = {"aws:ResourceAccount": ("123456789012",)}, "arn:aws:s3:::vision-prod-gaudi"
OTHERS = {"aws:ResourceAccount": ("210987654321",)}


@pytest.mark.parametrize(
    ("service", "action", "on", "account", "may"),
    [
        ("s3", "s3:PutObject", f"{BUCKET}/a", OTHERS, True),
        ("s3", "s3:ListBucketMultipartUploads", BUCKET, OTHERS, True),
        ("s3", "s3:PutObject", "arn:aws:s3:::company-data/a", OWN, True),
        ("s3", "s3:PutObject", "arn:aws:s3:::somebody-elses/a", OTHERS, False),
        ("s3", "s3:DeleteObject", "arn:aws:s3:::somebody-elses/a", OTHERS, False),
        ("s3", "s3:GetObject", "arn:aws:s3:::prod-us-east-1-starport-layer-bucket/a", OTHERS, True),
        ("s3", "s3:GetObject", "arn:aws:s3:::amazon-ssm-packages-us-east-1/a", OTHERS, True),
        ("ecr.api", "ecr:GetAuthorizationToken", "*", {}, True),
        ("ecr.dkr", "ecr:BatchGetImage", "arn:aws:ecr:us-east-1:210987654321:repository/base", OTHERS, True),
        ("ecr.dkr", "ecr:PutImage", "arn:aws:ecr:us-east-1:123456789012:repository/vision/gaudi", OWN, True),
        ("ecr.dkr", "ecr:UploadLayerPart", "arn:aws:ecr:us-east-1:210987654321:repository/theirs", OTHERS, False),
    ],
)  # fmt: skip
def test_endpoints_of_a_closed_network_allow_writes_only_in_the_account(
    service: str, action: str, on: str, account: Keys, may: bool, record: Record
) -> None:
    """Asks the policy evaluation of the local AWS, which has only one account."""
    (endpoint,) = [one for one in of_type(record("aws-dl1-resnet"), "VpcEndpoint") if one.name == service]
    document = PolicyDocument(service, statements_of(endpoint.inputs["policy"]))
    anybody = AwsPrincipal("arn:aws:iam::210987654321:user/somebody", user="somebody")
    assert decide_aws_call(Need(action, on, account), anybody, InForce((document,))).allowed is may


def test_endpoints_allow_everything_if_there_is_another_way_out(record: Record, changed: Written) -> None:
    public = changed("aws-dl1-resnet", network({"ingress": LETTING_IN}, cluster(publicAddress="elastic")))
    anybody, others = AwsPrincipal("arn:aws:iam::210987654321:user/somebody", user="somebody"), {**OTHERS}
    for made in (public, record("aws-dl1-single-node")):
        policies = {one.name: one.inputs.get("policy") for one in of_type(made, "VpcEndpoint")}
        # Without a policy, the provider would leave that of a closed network in force.
        assert policies["s3"], "written out"
        for service, policy in policies.items():
            document = PolicyDocument(service, statements_of(policy)) if policy else None
            need = Need("s3:PutObject", "arn:aws:s3:::somebody-elses/a", others)
            assert document is None or decide_aws_call(need, anybody, InForce((document,))).allowed, service


def test_only_the_nodes_role_gets_the_boundary_of_the_stack(record: Record, changed: Written) -> None:
    boundary = "arn:aws:iam::123456789012:policy/company-boundary"

    def change(config: dict[str, Any]) -> None:
        config["trainyard:access"]["permissionsBoundary"] = boundary

    [role] = of_type(changed("aws-dl1-resnet", change), "Role")
    assert role.inputs["permissionsBoundary"] == boundary
    [role] = of_type(record("aws-dl1-resnet"), "Role")
    assert "permissionsBoundary" not in role.inputs


def test_with_a_reservation_there_is_no_placement_group(changed: Written) -> None:
    made = changed("aws-dl1-resnet", cluster(reservation="cr-0a1b2c3d"))
    (template,) = of_type(made, "LaunchTemplate")
    assert not of_type(made, "PlacementGroup")
    assert "placement" not in template.inputs


def _state(recording: Recording, **others: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The resources of a program, as in the state of its stack. `others`: by kind."""
    rows: dict[str, Mapping[str, Any]] = {}
    for one in recording.made():
        outputs = dict(one.inputs)
        if one.kind == "Instance":
            outputs["arn"] = f"arn:aws:ec2:us-east-1:123456789012:instance/i-{one.name.rpartition('/')[2]}"
        rows[one.urn] = outputs | dict(others.get(one.kind, {}))
    return rows


# Changes that replace a machine, and changes that do not.
REPLACES = {
    "ami": cluster(ami="ami-0b2b2c2d2e2f2a2b2"),
    "efa": cluster(efa=2),
    "sshPort": cluster(sshPort=4022),
    "hostNic": cluster(hostNic="sockets"),
    "spot": cluster(spot=True),
    "stopWhenIdle": cluster(stopWhenIdle=60),
}


def _job(**keys: Any) -> Change:
    def change(config: dict[str, Any]) -> None:
        config["trainyard:jobs"]["resnet"] |= keys

    return change


STAYS = {
    "image": _job(image="${registry}:1.15.2"),
    "command": _job(command="train.py --epochs 2"),
    "code": _job(code="./examples/pytorch-ddp"),
    "runs": _job(runs={"other": {"args": ["--lr", "0.3"]}}),
    "nodes": _job(roles={"main": 1, "worker": 2}),
    "keyRotation": cluster(keyRotation=2),
    "runtime": _job(maximumRuntimeMinutes=60),
    "hostNic": cluster(hostNic="host-memory"),
    "auto": cluster(hostNic="auto"),
}


def template_name(recording: Recording) -> str:
    (template,) = of_type(recording, "LaunchTemplate")
    return str(template.inputs["name"])


@pytest.mark.parametrize("key", REPLACES)
def test_a_changed_machine_is_a_new_launch_template(key: str, record: Record, changed: Written) -> None:
    assert template_name(changed("aws-dl1-resnet", REPLACES[key])) != template_name(record("aws-dl1-resnet"))


@pytest.mark.parametrize("key", STAYS)
def test_changes_of_runs_replace_no_machine(key: str, record: Record, changed: Written) -> None:
    def quota(config: dict[str, Any]) -> None:
        config.pop("trainyard:quota")
        STAYS[key](config)

    last = record("aws-dl1-resnet")
    references = {LAST_UP: last.exports, f"{LAST_UP}#resources": _state(last)}
    made = changed("aws-dl1-resnet", quota, references=references)
    # The other code is for CUDA, and `check` says so.
    assert [warning for warning in made.warnings if "TY8200" not in warning] == []
    assert template_name(made) == template_name(last)
    before = {one.name: one.inputs for one in of_type(record("aws-dl1-resnet"), "Instance")}
    after = {one.name: one.inputs for one in of_type(made, "Instance")}
    assert before.items() <= after.items()


def _after(last: Recording, changed: Written, *changes: Change) -> Recording:
    def change(config: dict[str, Any]) -> None:
        config.pop("trainyard:quota")
        for one in changes:
            one(config)

    references = {LAST_UP: last.exports, f"{LAST_UP}#resources": _state(last)}
    return changed("aws-dl1-resnet", change, references=references)


def _groups(recording: Recording) -> tuple[int, Any]:
    """How many placement groups are made, and the one that the template names."""
    return len(of_type(recording, "PlacementGroup")), recording.one("LaunchTemplate").inputs.get("placement")


ALONE = _job(roles={"main": 1})
GROUPED, APART = (1, {"groupName": "vision-prod-resnet"}), (0, None)


def test_a_shrinking_cluster_keeps_its_placement_group(record: Record, changed: Written) -> None:
    """AWS does not delete a placement group that contains a machine. If all machines are replaced, the group is decided
    anew.
    """
    both = record("aws-dl1-resnet")
    assert _groups(_after(both, changed, ALONE)) == GROUPED
    assert _groups(_after(both, changed, ALONE, cluster(efa=2))) == APART
    assert _groups(changed("aws-dl1-resnet", ALONE)) == APART


def test_a_cluster_that_grows_from_one_machine_gets_a_warning(record: Record, changed: Written) -> None:
    """All start from version 1 of the template, which names no group."""
    alone = changed("aws-dl1-resnet", ALONE)
    grown = _after(alone, changed)
    assert _groups(grown) == APART
    (told,) = grown.warnings
    assert "jobs.resnet.cluster: the machines of the job `resnet` start anywhere in their zone" in told
    assert not _after(grown, changed).warnings, "it is said once"
    assert _groups(_after(alone, changed, cluster(efa=2))) == GROUPED


def test_machines_and_endpoints_are_removed_before_the_network(record: Record) -> None:
    """AWS deletes no subnet and no group while a machine or an endpoint is in it."""
    made = record("aws-dl1-resnet")
    template, subnet = made.one("LaunchTemplate"), made.one("Subnet")
    assert template.delete_first
    assert template.replaced_for == ("iamInstanceProfile", "networkInterfaces")
    assert {"subnet", "nodes"} <= set(template.needs)
    assert subnet.delete_first, "two subnets cannot have one block"
    interfaces = [one for one in made.of("VpcEndpoint").values() if one.inputs["vpcEndpointType"] == "Interface"]
    assert interfaces
    for one in interfaces:
        assert (one.delete_first, one.replaced_for) == (True, ("securityGroupIds", "subnetIds")), one.name
    for machine in made.of("Instance").values():
        assert machine.delete_first
        assert "resnet" in machine.needs


def test_another_bucket_or_log_group_replaces_the_template_and_another_release_does_not(changed: Written) -> None:
    """User data has their names, and each release has other user data."""

    assert changed("aws-dl1-resnet", lambda _: None).one("LaunchTemplate").trigger == [
        "vision-prod-gaudi", "vision-prod-training",
    ]  # fmt: skip
    assert changed("aws-dl1-resnet", _named_otherwise).one("LaunchTemplate").trigger == ["vision-other", None]


def test_each_vpc_has_an_internet_gateway_of_its_own(changed: Written) -> None:
    made = changed("aws-dl1-single-node", lambda _: None)
    assert made.one("InternetGateway").replaced_for == ("vpcId",)


def test_nodes_get_the_transport_between_machines(changed: Written, record: Record) -> None:
    for made, wanted in (
        (record("aws-dl1-resnet"), None),
        (changed("aws-dl1-resnet", cluster(hostNic="libfabric")), None),
        (changed("aws-dl1-resnet", cluster(hostNic="host-memory")), "host-memory"),
    ):
        nodes = [node for run in of_type(made, "Run") for node in run.inputs["nodes"]]
        assert {node["environment"].get("TRAINYARD_HOST_NIC") for node in nodes} == {wanted}


def test_secret_variables_are_in_a_secret_of_their_run(changed: Written) -> None:
    def change(config: dict[str, Any]) -> None:
        config["trainyard:jobs"]["resnet"]["env"] = {"HF_TOKEN": {"secure": "hf-not-to-be-seen"}}

    made = changed("aws-dl1-resnet", change)
    secrets = {one.name: one for one in of_type(made, "Secret")}
    assert set(secrets) == {"resnet/ssh", "resnet/base", "resnet/warm"}
    versions = {one.name: one.inputs["secretString"] for one in of_type(made, "SecretVersion")}
    assert json.loads(versions["resnet/base"]["(secret)"])["HF_TOKEN"]
    for run in of_type(made, "Run"):
        assert run.inputs["cluster"]["secret"].startswith(f"vision-prod-resnet/runs/{run.name.partition('/')[2]}")
        assert run.inputs["secretVersion"] == f"version-{run.name}"
        assert "secretVersion" not in run.inputs["cluster"], "another value of a secret ends no tries"
        assert all("HF_TOKEN" not in node["environment"] for node in run.inputs["nodes"])
        assert "hf-not-to-be-seen" not in json.dumps({**run.inputs, "nodes": run.inputs["nodes"]})


def test_a_secret_of_one_role_is_only_in_its_nodes_environment(changed: Written) -> None:
    """Other nodes may have another value of that name, or a plain one."""

    def change(config: dict[str, Any]) -> None:
        job = config["trainyard:jobs"]["resnet"]
        job["env"] = {"SHARED": {"secure": "of-all"}}
        job["roles"] = {
            "main": {"replicas": 1, "env": {"TOKEN": {"secure": "of-main"}, "PLAIN": "open"}},
            "worker": {"replicas": 1, "env": {"TOKEN": {"secure": "of-worker"}, "PLAIN": {"secure": "hidden"}}},
        }

    made = changed("aws-dl1-resnet", change)
    (version,) = [one for one in of_type(made, "SecretVersion") if one.name == "resnet/base"]
    names = {"SHARED", "main-0/TOKEN", "worker-0/TOKEN", "worker-0/PLAIN"}
    assert set(json.loads(version.inputs["secretString"]["(secret)"])) == names
    (run,) = [one for one in of_type(made, "Run") if one.name == "resnet/base"]
    assert [node["environment"].get("PLAIN") for node in run.inputs["nodes"]] == ["open", None]


def test_a_stack_without_jobs_has_no_statement_without_resources(changed: Written) -> None:
    """Such a stack makes the network for other stacks. AWS refuses a statement without resources."""

    def change(config: dict[str, Any]) -> None:
        config["trainyard:jobs"] = {}

    made = of_type(changed("aws-dl1-resnet", change), "Policy")
    statements = [one for policy in made for one in json.loads(policy.inputs["policy"])["Statement"]]
    assert {policy.name for policy in made} == {"vision-prod-users", "vision-prod-nodes"}
    assert all(one["Resource"] for one in statements)


REFUSED = {
    "us-east-1f does not offer `dl1.24xlarge`": network({"zone": "us-east-1f"}),
    "ami-0dead: ": cluster(ami="ami-0dead"),
    "needs a disk of 100 GB, but the nodes get 60": _job(blockStorageGb=60),
}


@pytest.mark.parametrize("words", REFUSED)
def test_facts_that_only_aws_knows_are_refused_with_their_line(words: str, changed: Written) -> None:
    with pytest.raises(ProgramError) as refused:
        changed("aws-dl1-resnet", REFUSED[words])
    assert words in str(refused.value)
    assert re.search(r"Pulumi\.aws-dl1-resnet\.yaml:\d+: (?:trainyard|aws):", str(refused.value))


def test_machines_keep_the_image_that_a_parameter_named_when_they_were_made(record: Record, changed: Written) -> None:
    """A newer one is said, and changes nothing. Who names it by its id moves to it."""
    published = "ami-0f0e0d0c0b0a09080"

    def by_parameter(config: dict[str, Any]) -> None:
        cluster(amiParameter="/vision/{release}/ami-id")(config)
        del config["trainyard:jobs"]["resnet"]["cluster"]["ami"]

    made = changed("aws-dl1-resnet", by_parameter)
    assert made.one("LaunchTemplate").inputs["imageId"] == published
    for older in (published, "ami-0old"):
        references = {LAST_UP: made.exports, f"{LAST_UP}#resources": _state(made, LaunchTemplate={"imageId": older})}
        again = changed("aws-dl1-resnet", by_parameter, references=references)
        assert again.one("LaunchTemplate").inputs["imageId"] == older
        said = [one for one in again.warnings if "newer image" in one]
        assert len(said) == (older != published)
        assert all(f"{published}; the machines of the job `resnet` keep ami-0old" in one for one in said)
        assert not [one for one in again.warnings if "are replaced" in one]


WRONG_NETWORKS = {
    "lies in us-east-1f, which does not offer `dl1.24xlarge`": {"subnet": "subnet-0c0f", "securityGroup": "sg-0c0a"},
    "is of vpc-other, but the subnet is of vpc-company": {"subnet": "subnet-0c0a", "securityGroup": "sg-0c0f"},
    "has no rule that lets everything to the group itself": {"subnet": "subnet-0c0a", "securityGroup": "sg-0c0e"},
}


@pytest.mark.parametrize("words", WRONG_NETWORKS)
def test_an_existing_network_that_cannot_carry_efa_is_refused(words: str, changed: Written) -> None:
    with pytest.raises(ProgramError) as refused:
        changed("aws-dl1-existing-vpc", network(WRONG_NETWORKS[words]))
    assert words in str(refused.value)


def test_another_account_than_the_stack_s_is_refused(changed: Written) -> None:
    def change(config: dict[str, Any]) -> None:
        config["trainyard:account"] = "210987654321"

    with pytest.raises(ProgramError) as refused:
        changed("aws-dl1-resnet", change)
    assert "the credentials are of the account 123456789012" in str(refused.value)


def test_losses_of_a_change_are_announced(changed: Written) -> None:
    before = {
        "bucket": "vision-prod-old", "imagePushAddress": "123456789012.dkr.ecr.us-east-1.amazonaws.com/vision/old",
        "logGroup": "vision-prod-old", "region": "us-east-1", "made": ["bucket", "registry", "logs"],
        "jobs": {
            "gone": {"instances": {"main-0": "i-1"}},
            "resnet": {"instances": {"main-0": "i-2", "worker-1": "i-3"}},
        },
    }  # fmt: skip
    made = changed("aws-dl1-resnet", lambda _: None, references={LAST_UP: before})
    told = "\n".join(made.warnings)
    for words in (
        "the objects of the bucket `vision-prod-old`", "the images of the repository `vision/old`",
        "the log group `vision-prod-old` is deleted", "`main-0` of the job `gone`", "`worker-1` of the job `resnet`",
    ):  # fmt: skip
        assert words in told, told


def _warned(changed: Written, before: Recording, change: Change) -> tuple[str, ...]:
    references = {LAST_UP: before.exports, f"{LAST_UP}#resources": _state(before)}
    return changed("aws-dl1-resnet", change, references=references).warnings


def _named_otherwise(config: dict[str, Any]) -> None:
    config["trainyard:access"] = {"existing": True, "runs": "company-nodes"}
    config["trainyard:bucket"] = {"name": "vision-other"}
    config["trainyard:logs"] = {"enabled": False}


def _other_machines(config: dict[str, Any]) -> None:
    cluster(ami="ami-0b2b2c2d2e2f2a2b2", efa=2, stopWhenIdle=60, spot=True)(config)
    _job(blockStorageGb=600)(config)


# Changes that replace machines, and the warnings about them.
TAKES = {
    "another block and zone": (
        network({"cidr": "10.50.0.0/16", "zone": "us-east-1b"}),
        ["`network.cidr` (10.40.0.0/16 -> 10.50.0.0/16)", "`network.zone` (us-east-1a -> us-east-1b)"],
    ),
    "an existing subnet": (
        network({"subnet": "subnet-0c0a", "securityGroup": "sg-0c0a"}),
        ["`network.subnet` (none -> subnet-0c0a)", "`network.securityGroup` (none -> sg-0c0a)"],
    ),
    "other names": (
        _named_otherwise,
        [
            "`access.runs` (vision-prod-nodes -> company-nodes)", "`bucket` (vision-prod-gaudi -> vision-other)",
            "`logs` (vision-prod-training -> none)", "all runs start again",
        ],
    ),
    "other machines": (
        _other_machines,
        [
            "Because of `ami` (ami-0d11a1b2c3d4e5f60 -> ami-0b2b2c2d2e2f2a2b2), `blockStorageGb` (500 -> 600), "
            "`market` (on-demand -> spot), `efa` (4 -> 2), `stopWhenIdle` (30 -> 60). What lies only on their disks is "
            "lost; runs in the queue continue",
        ],
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", TAKES)
def test_a_change_that_replaces_machines_says_which_and_why(what: str, record: Record, changed: Written) -> None:
    change, words = TAKES[what]
    (told,) = [one for one in _warned(changed, record("aws-dl1-resnet"), change) if "are replaced" in one]
    assert "the machines of the job `resnet` are replaced, and what trains on them ends as FAILED" in told
    assert "`main-0` (i-main-0), `worker-0` (i-worker-0)" in told
    for one in words:
        assert one in told


def test_a_network_of_an_earlier_release_needs_an_up_before_it_changes(record: Record, changed: Written) -> None:
    """Pulumi uses the order in the state, which that release did not write."""
    before = record("aws-dl1-resnet")
    last = {name: value for name, value in before.exports.items() if name != "machinesReplacedWith"}
    references = {LAST_UP: last, f"{LAST_UP}#resources": _state(before)}
    with pytest.raises(ProgramError) as refused:
        changed("aws-dl1-resnet", network({"cidr": "10.50.0.0/16"}), references=references)
    assert "`network.cidr` (10.40.0.0/16 -> 10.50.0.0/16) replaces the machines" in str(refused.value)
    assert "first bring the stack up without this change" in str(refused.value)
    told = changed("aws-dl1-resnet", cluster(efa=2), references=references).warnings
    assert any("`efa` (4 -> 2)" in one for one in told), "a template of another name replaces them in every state"


def test_a_subnet_stays_in_its_zone_when_offers_change(record: Record, changed: Written) -> None:
    before = record("aws-dl1-resnet")
    rows = _state(before, Subnet={"availabilityZone": "us-east-1b"})
    references = {LAST_UP: before.exports, f"{LAST_UP}#resources": rows}
    made = changed("aws-dl1-resnet", network({"cidr": "10.40.0.0/16"}), references=references)
    assert made.one("Subnet").inputs["availabilityZone"] == "us-east-1b"
    assert not made.warnings


def test_resources_of_another_stack_are_refused_before_anything_is_made(changed: Written) -> None:
    """Both would make the same role, policies and templates, and `up` would fail half-way."""

    def change(config: dict[str, Any]) -> None:
        config["trainyard:environment"] = "theirs"

    with pytest.raises(ProgramError) as refused:
        changed("aws-dl1-resnet", change)
    for what in (
        "role `vision-theirs-nodes`",
        "policy `vision-theirs-users`",
        "launch template `vision-theirs-resnet-",
    ):
        assert re.search(rf"environment: the {what}\S* is of the stack `theirs`", str(refused.value)), refused.value


def test_another_region_is_refused(changed: Written) -> None:
    with pytest.raises(ProgramError) as refused:
        changed(
            "aws-dl1-resnet",
            lambda _: None,
            references={"organization/trainyard/aws-dl1-resnet": {"region": "us-west-2"}},
        )
    assert "the stack is in us-west-2, and AWS cannot move it" in str(refused.value)


def test_other_stacks_of_the_team_import_nothing_of_aws(tmp_path: Path, record: Record) -> None:
    """The program of an OCI stack never calls a function of AWS."""
    assert not [one for one in record("oci-pytorch-ddp").invokes if one["function"].startswith("aws:")]


def test_only_resources_that_the_stack_made_and_loses_are_a_loss(record: Record, changed: Written) -> None:
    before = {"bucket": "company-training", "logGroup": "company", "region": "us-east-1", "made": ["network"]}
    before["jobs"] = record("aws-dl1-resnet").exports["jobs"]
    assert not changed("aws-dl1-resnet", lambda _: None, references={LAST_UP: before}).warnings
