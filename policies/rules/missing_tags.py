# SPDX-License-Identifier: Apache-2.0
"""Bills, people and clean-up scripts see only in the tags who owns a resource."""

from typing import Any

from policies.rule import PASS, JudgedResource, PolicyRule, PolicyVerdict, Unknown, fail

WANTED = ("stack", "team", "environment")
TAGGED = (
    "aws:cloudwatch/logGroup:LogGroup",
    "aws:ebs/volume:Volume",
    "aws:ec2/capacityReservation:CapacityReservation",
    "aws:ec2/eip:Eip",
    "aws:ec2/instance:Instance",
    "aws:ec2/internetGateway:InternetGateway",
    "aws:ec2/launchTemplate:LaunchTemplate",
    "aws:ec2/natGateway:NatGateway",
    "aws:ec2/placementGroup:PlacementGroup",
    "aws:ec2/routeTable:RouteTable",
    "aws:ec2/securityGroup:SecurityGroup",
    "aws:ec2/subnet:Subnet",
    "aws:ec2/vpc:Vpc",
    "aws:ec2/vpcEndpoint:VpcEndpoint",
    "aws:ecr/repository:Repository",
    "aws:iam/instanceProfile:InstanceProfile",
    "aws:iam/policy:Policy",
    "aws:iam/role:Role",
    "aws:s3/bucket:Bucket",
    "aws:secretsmanager/secret:Secret",
    "oci:Artifacts/containerRepository:ContainerRepository",
    "oci:Core/internetGateway:InternetGateway",
    "oci:Core/natGateway:NatGateway",
    "oci:Core/networkSecurityGroup:NetworkSecurityGroup",
    "oci:Core/routeTable:RouteTable",
    "oci:Core/securityList:SecurityList",
    "oci:Core/serviceGateway:ServiceGateway",
    "oci:Core/subnet:Subnet",
    "oci:Core/vcn:Vcn",
    "oci:DataScience/computeTarget:ComputeTarget",
    "oci:DataScience/job:Job",
    "oci:DataScience/jobRun:JobRun",
    "oci:DataScience/notebookSession:NotebookSession",
    "oci:DataScience/project:Project",
    "oci:Identity/compartment:Compartment",
    "oci:Identity/dynamicGroup:DynamicGroup",
    "oci:Identity/policy:Policy",
    "oci:Logging/log:Log",
    "oci:Logging/logGroup:LogGroup",
    "oci:ObjectStorage/bucket:Bucket",
    "oci:Vault/secret:Secret",
    "trainyard:index:Run",
)


def judge(resource: JudgedResource) -> PolicyVerdict:
    missing = [name for name in WANTED if not resource.tags.get(name)]
    return fail(f"has no tag {', '.join(f'`{name}`' for name in missing)}") if missing else PASS


def _bucket(**tags: Any) -> JudgedResource:
    return JudgedResource("oci:ObjectStorage/bucket:Bucket", {"freeformTags": tags})


RULE = PolicyRule(
    id="missing-tags",
    level="mandatory",
    asks=f"Everything that can be tagged says its {', '.join(WANTED[:-1])} and {WANTED[-1]}.",
    remedy="add them to freeformTags (to tags, for a run or a resource of AWS)",
    types=TAGGED,
    judge=judge,
    passes={
        "all three": _bucket(stack="vision-dev", team="vision", environment="dev", owner="ann"),
        "a run": JudgedResource(
            "trainyard:index:Run", {"tags": {"stack": "vision-dev", "team": "vision", "environment": "dev"}}
        ),
    },
    fails={
        "none at all on AWS": JudgedResource("aws:ec2/instance:Instance", {"launchTemplate": {"id": "lt-0a1b2c3d"}}),
        "none at all": JudgedResource("oci:Core/vcn:Vcn", {}),
        "one is missing": _bucket(stack="vision-dev", team="vision"),
        "one is empty": _bucket(stack="vision-dev", team="", environment="dev"),
    },
    unknown={
        "a tag of another resource": _bucket(stack="vision-dev", team=Unknown("freeformTags.team"), environment="dev"),
        "all decided elsewhere": JudgedResource("oci:Core/vcn:Vcn", {"freeformTags": Unknown("freeformTags")}),
    },
)
