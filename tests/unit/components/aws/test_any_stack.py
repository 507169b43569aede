# SPDX-License-Identifier: Apache-2.0
"""The plans of random valid stacks on AWS DL1 are valid by botocore's models of AWS's calls."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import botocore.session
import yaml
from botocore.model import ListShape, MapShape, Shape, StructureShape
from botocore.validate import ParamValidator
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from components.aws.machines import MachineImage, MachinePlace, launch_template
from components.aws.plan import AwsDl1Plan, aws_dl1_plan
from components.aws.resources.cluster import launch_template_name, ssh_secret
from components.aws.statements import CHARACTERS_PER_POLICY, TRUST, aws_policies, policy_size
from components.plan.build import plan_of
from schemas.judge import Judged, judge_config
from tests.support.ec2_words import as_ec2
from tests.support.stack_strategies import texts, variables

# Names of the minimum and maximum length of a stack file, and longer ones.
_names = st.from_regex(r"[a-z]([a-z0-9-]{0,8}[a-z0-9])?", fullmatch=True) | st.integers(20, 42).map("n".__mul__)
_env = st.dictionaries(variables.filter(lambda name: not name.startswith("AWS_")), texts, max_size=2)
_runs = st.dictionaries(
    _names, st.fixed_dictionaries({"args": st.lists(texts, max_size=2), "env": _env}), min_size=1, max_size=2
)
_clusters = st.fixed_dictionaries(
    {"ami": st.just("ami-0d11a1b2c3d4e5f60"), "efa": st.integers(1, 4), "sshPort": st.integers(1024, 29000)},
    optional={
        "hostNic": st.sampled_from(["auto", "libfabric", "host-memory", "sockets"]),
        "stopWhenIdle": st.integers(0, 600),
        "spot": st.booleans(),
        "keyRotation": st.integers(1, 9),
        "reservation": st.just("cr-0c0a1b2c3d4e5f603"),
        "placementGroup": st.just("company-gaudi"),
    },
)
_jobs = st.fixed_dictionaries(
    {
        "framework": st.just("pytorch"),
        "image": st.just("${registry}:1.15.1"),
        "shape": st.just("dl1.24xlarge"),
        "roles": st.fixed_dictionaries({"main": st.just(1)}, optional={"worker": st.integers(1, 8)}),
        "options": st.fixed_dictionaries({"processes": st.integers(1, 8)}),
        "command": st.just("train.py"),
        "cluster": _clusters,
        "runs": _runs,
    }
)
_stacks = st.fixed_dictionaries(
    {
        "team": _names,
        "environment": _names,
        "access": st.fixed_dictionaries(
            {"mode": st.sampled_from(["least-privilege", "documented"]), "users": st.just({"group": "scientists"})}
        ),
        "network": st.sampled_from([{"cidr": "10.40.0.0/16"}, {"cidr": "10.40.0.0/16", "nat": True}]),
        "jobs": st.dictionaries(_names, _jobs, min_size=1, max_size=3),
    },
    optional={"tags": st.dictionaries(texts, texts, max_size=3)},
)


def _judged(folder: Path, keys: Mapping[str, Any]) -> Judged:
    own = {"platform": "aws-dl1", "account": "123456789012", **keys}
    config = {"aws:region": "us-east-1", **{f"trainyard:{key}": value for key, value in own.items()}}
    file = folder / "Pulumi.own.yaml"
    file.write_text(yaml.safe_dump({"config": config}))
    opened = {key: value if isinstance(value, str) else json.dumps(value) for key, value in config.items()}
    return judge_config(opened, [], "own", file)


@cache
def _operation(service: str, name: str) -> Shape:
    shape: Shape = botocore.session.Session().get_service_model(service).operation_model(name).input_shape
    return shape


def _too_long(value: Any, shape: Shape, path: str) -> Iterator[str]:
    """Texts that break the length or pattern in AWS's model. botocore itself checks neither."""
    if isinstance(shape, StructureShape):
        for key, item in value.items():
            yield from _too_long(item, shape.members[key], f"{path}.{key}")
    elif isinstance(shape, ListShape):
        for item in value:
            yield from _too_long(item, shape.member, f"{path}[]")
    elif isinstance(shape, MapShape):
        for item in value.values():
            yield from _too_long(item, shape.value, f"{path}.*")
    elif isinstance(value, str):
        pattern = shape.metadata.get("pattern", "")
        # Python's regular expressions have no Unicode classes.
        is_wrong = pattern and r"\p" not in pattern and not re.fullmatch(pattern, value)
        if is_wrong or len(value) > shape.metadata.get("max", len(value)):
            yield f"{path}: {value!r}"


def _calls(plan: AwsDl1Plan) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """The calls for resources whose names contain the stack's name."""
    tags = [{"Key": key, "Value": value} for key, value in plan.tags.items()]
    role = plan.access.runs_role
    yield "iam", "CreateRole", {"RoleName": role, "AssumeRolePolicyDocument": json.dumps(TRUST), "Tags": tags}
    yield "iam", "CreateInstanceProfile", {"InstanceProfileName": role, "Tags": tags}
    for policy in aws_policies(plan):
        if policy.document:
            document = json.dumps(policy.document)
            yield "iam", "CreatePolicy", {"PolicyName": policy.name, "PolicyDocument": document, "Tags": tags}
    yield "s3", "CreateBucket", {"Bucket": plan.bucket.name}
    yield "ecr", "CreateRepository", {"repositoryName": plan.registry.repository, "tags": tags}
    yield "logs", "CreateLogGroup", {"logGroupName": plan.logs.group_name, "tags": dict(plan.tags)}
    group = {"GroupName": plan.network.security_group, "Description": "nodes"}
    yield "ec2", "CreateSecurityGroup", group
    image = MachineImage("ami-0d11a1b2c3d4e5f60", "/dev/sda1", "ami")
    for job in plan.jobs.values():
        cluster = job.cluster
        data = launch_template(cluster, image, MachinePlace("subnet-1", "sg-1", role), "", dict(plan.tags))
        named = {"LaunchTemplateName": launch_template_name(cluster, "us-east-1", image)}
        yield "ec2", "CreateLaunchTemplate", {**named, "LaunchTemplateData": as_ec2(_camel(data))}
        yield "ec2", "CreatePlacementGroup", {"GroupName": cluster.name, "Strategy": "cluster"}
        yield "secretsmanager", "CreateSecret", {"Name": ssh_secret(cluster), "Tags": tags}
        for run in job.runs:
            yield "secretsmanager", "CreateSecret", {"Name": f"{cluster.name}/runs/{run}", "Tags": tags}


def _camel(value: Any) -> Any:
    """The inputs in Pulumi's spelling."""
    if isinstance(value, list):
        return [_camel(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        re.sub(r"_(.)", lambda found: found[1].upper(), key): item if key == "tags" else _camel(item)
        for key, item in value.items()
    }


@given(_stacks)
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
def test_what_any_stack_makes_is_taken_by_aws(keys: dict[str, Any]) -> None:
    with TemporaryDirectory() as folder:
        read = _judged(Path(folder), keys)
    assume(not read.errors)
    plan = aws_dl1_plan(plan_of(read))
    for service, name, parameters in _calls(plan):
        shape = _operation(service, name)
        report = ParamValidator().validate(parameters, shape)
        assert not report.has_errors(), f"{service} {name}: {report.generate_report()}"
        assert list(_too_long(parameters, shape, f"{service}.{name}")) == []
    assert re.fullmatch(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]", plan.bucket.name)
    assert len(plan.network.security_group) <= 255
    assert all(
        policy_size(policy.document) <= CHARACTERS_PER_POLICY for policy in aws_policies(plan) if policy.document
    )
