# SPDX-License-Identifier: Apache-2.0
"""Attempts to get past the policy pack, as a careless or hostile colleague would make them: what a stack declares, and
the rule that has to refuse it. Each was written from what the clouds do, before the rule knew of it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from policies.rule import JudgedResource

BUCKET_POLICY, REPOSITORY_POLICY = "aws:s3/bucketPolicy:BucketPolicy", "aws:ecr/repositoryPolicy:RepositoryPolicy"
ROLE, POLICY = "aws:iam/role:Role", "aws:iam/policy:Policy"
INGRESS_RULE, GROUP = "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule", "aws:ec2/securityGroup:SecurityGroup"
LIST, OCI_POLICY = "oci:Core/securityList:SecurityList", "oci:Identity/policy:Policy"
RUN, JOB = "trainyard:index:Run", "oci:DataScience/job:Job"
ALL_USERS = "http://acs.amazonaws.com/groups/global/AllUsers"
SIGNED_IN = "http://acs.amazonaws.com/groups/global/AuthenticatedUsers"
GITHUB = "arn:aws:iam::123456789012:oidc-provider/token.actions.githubusercontent.com"


@dataclass(frozen=True)
class PolicyAttempt:
    """`rule`: the id of one that has to fail. `environment`: of the stack. `settings`: of the pack, by rule."""

    title: str
    rule: str
    resources: tuple[JudgedResource, ...]
    environment: str = "dev"
    settings: Mapping[str, Any] = field(default_factory=dict)


def policy_attempts() -> Iterator[PolicyAttempt]:
    for attempts in (_identity_attempts, _trust_attempts, _bucket_attempts, _network_attempts, _job_attempts):
        yield from attempts()


def _one(token: str, title: str, rule: str, **properties: Any) -> PolicyAttempt:
    return PolicyAttempt(title, rule, (JudgedResource(token, properties, "attempt"),))


def _document(*statements: Mapping[str, Any]) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": list(statements)})


def _allow(action: Any, resource: Any) -> str:
    return _document({"Effect": "Allow", "Action": action, "Resource": resource})


def _identity_attempts() -> Iterator[PolicyAttempt]:
    """What people and nodes may do."""
    administrator = "arn:aws:iam::aws:policy/AdministratorAccess"
    for holder in ("role", "group", "user"):
        token = f"aws:iam/{holder}PolicyAttachment:{holder.title()}PolicyAttachment"
        yield _one(token, f"administrator by an attachment to a {holder}", "attached-policies",
                   policyArn=administrator, **{holder: "vision"})  # fmt: skip
    yield _one("aws:iam/policyAttachment:PolicyAttachment", "administrator by an attachment to many",
               "attached-policies", policyArn=administrator, users=["mallory"])  # fmt: skip
    yield _one("aws:iam/rolePolicyAttachmentsExclusive:RolePolicyAttachmentsExclusive", "administrator by a whole list",
               "attached-policies", roleName="nodes", policyArns=[administrator])  # fmt: skip
    yield _one("aws:ssoadmin/managedPolicyAttachment:ManagedPolicyAttachment", "administrator by a permission set",
               "attached-policies", managedPolicyArn=administrator)  # fmt: skip
    for name in ("AdministratorAccess", "IAMFullAccess", "PowerUserAccess", "job-function/SystemAdministrator"):
        arn = f"arn:aws:iam::aws:policy/{name}"
        yield _one(ROLE, f"{name} in the role's own list", "attached-policies", managedPolicyArns=[arn])
    yield _one(ROLE, "administrator in China", "attached-policies",
               managedPolicyArns=["arn:aws-cn:iam::aws:policy/AdministratorAccess"])  # fmt: skip
    inline = [{"name": "more", "policy": _allow("*", "*")}]
    yield _one(ROLE, "everything by a policy inside the role", "wildcard-policies", inlinePolicies=inline)
    inline = [{"name": "more", "policy": _allow("s3:GetObject", "arn:aws:s3:::*")}]
    yield _one(ROLE, "every bucket by a policy inside the role", "unnarrowed-statements", inlinePolicies=inline)
    yield _one("aws:ssoadmin/permissionSetInlinePolicy:PermissionSetInlinePolicy", "everything by a permission set",
               "wildcard-policies", inlinePolicy=_allow("*", "*"))  # fmt: skip
    own = "arn:aws:s3:::vision-dev-training/*"
    for action in ("s3:?*", "s3:**", "*:?*", "?*:*", "**", "*:*", "S3:*", "iam:Put*", "iam:*Policy", "iam:P?t*"):
        yield _one(POLICY, f"the action {action}", "wildcard-policies", policy=_allow(action, own))
    for resource in ("**", "?*", "arn:*", "arn:aws:*", "*:*"):
        yield _one(POLICY, f"the resource {resource}", "wildcard-policies", policy=_allow("s3:GetObject", resource))
    for bucket in ("arn:aws:s3:::?*", "arn:*:s3:::*", "arn:aws:s3:::**/*", "arn:aws:s3:::?*/*", "arn:aws:s3:::a*/*",
                   "arn:aws:s?:::*/*", "arn:aws:s3:*:*:*"):  # fmt: skip
        yield _one(POLICY, f"the buckets {bucket}", "unnarrowed-statements", policy=_allow("s3:GetObject", bucket))
    for resource in ("arn:aws:iam::*:*", "arn:aws:iam::123456789012:role/*", "arn:aws:iam::123456789012:?*"):
        yield _one(POLICY, f"the roles {resource}", "unnarrowed-statements", policy=_allow("iam:PassRole", resource))
    for resource in ("arn:aws:ecr:*:*:repository/?*", "arn:aws:ecr:us-east-1:123456789012:*"):
        action = "ecr:BatchGetImage"
        yield _one(POLICY, f"the repositories {resource}", "unnarrowed-statements", policy=_allow(action, resource))
    secrets = "arn:aws:secretsmanager:us-east-1:123456789012:secret:*"
    yield _one(POLICY, "every secret", "unnarrowed-statements", policy=_allow("secretsmanager:GetSecretValue", secrets))
    objects = "Allow dynamic-group runs to manage objects in compartment training where"
    for pattern in ("/a*/", "/?*/", "/*a/", "/**/"):
        yield _one(OCI_POLICY, f"the buckets {pattern}", "unnarrowed-statements",
                   statements=[f"{objects} target.bucket.name = {pattern}"])  # fmt: skip
    yield _one(OCI_POLICY, "a reason of AWS on a policy of OCI", "unnarrowed-statements",
               statements=["Allow group scientists to manage objects in compartment training"],
               freeformTags={"wildcard-policies": "proof-of-concept"})  # fmt: skip
    anybody = "Allow any-user to read objects in compartment training where target.bucket.name = 'vision'"
    yield _one(OCI_POLICY, "anybody in the tenancy", "trusted-strangers", statements=[anybody])


# Conditions that anybody meets: who writes one seems to narrow the statement.
ALWAYS: Sequence[Mapping[str, Any]] = (
    {"StringLike": {"aws:PrincipalArn": "*"}},
    {"ArnLike": {"aws:PrincipalArn": "arn:aws:iam::*:role/*"}},
    {"Bool": {"aws:SecureTransport": "true"}},
    {"IpAddress": {"aws:SourceIp": "0.0.0.0/0"}},
    {"IpAddress": {"aws:SourceIp": ["0.0.0.0/1", "128.0.0.0/1"]}},
    {"IpAddress": {"aws:SourceIp": "2600::/12"}},
    {"NotIpAddress": {"aws:SourceIp": "203.0.113.7/32"}},
    {"StringNotEquals": {"aws:PrincipalAccount": "123456789012"}},
    {"StringEqualsIfExists": {"aws:PrincipalOrgID": "o-0a1b2c3d4e"}},
    {"ForAllValues:StringEquals": {"aws:PrincipalOrgID": "o-0a1b2c3d4e"}},
    {"StringLike": {"aws:PrincipalOrgID": "o-*"}},
    {"StringLike": {"aws:UserAgent": "trainyard*"}},
    {"StringEquals": {"aws:PrincipalTag/team": "vision"}},
    {"DateGreaterThan": {"aws:CurrentTime": "2020-01-01T00:00:00Z"}},
    {"Null": {"aws:PrincipalArn": "false"}},
)


# Conditions that no stranger meets.
NARROW: Sequence[Mapping[str, Any]] = (
    {"StringEquals": {"aws:PrincipalOrgID": "o-0a1b2c3d4e"}},
    {"StringEqualsIgnoreCase": {"aws:principalorgid": "o-0a1b2c3d4e"}},
    {"ForAnyValue:StringLike": {"aws:PrincipalOrgPaths": "o-0a1b2c3d4e/r-ab12/*"}},
    {"StringLike": {"aws:PrincipalArn": "arn:aws:iam::123456789012:role/*"}},
    {"StringEquals": {"aws:PrincipalAccount": "${aws:ResourceAccount}"}},
    {"StringEquals": {"aws:ResourceAccount": "${aws:PrincipalAccount}"}},
    {"ArnEquals": {"aws:SourceArn": "arn:aws:cloudfront::123456789012:distribution/E1"}},
    {"StringEquals": {"aws:SourceVpce": "vpce-0a1b2c3d"}},
    {"IpAddress": {"aws:SourceIp": ["203.0.113.0/24", "2001:db8::/48"]}},
    {"StringEquals": {"kms:CallerAccount": "123456789012", "kms:ViaService": "s3.us-east-1.amazonaws.com"}},
    {"Bool": {"aws:PrincipalIsAWSService": "true"}},
)


def _trust_attempts() -> Iterator[PolicyAttempt]:
    """Whom buckets, repositories, keys and roles let in."""
    for condition in ALWAYS:
        title = f"anybody who meets {json.dumps(condition)}"
        opened = {"Effect": "Allow", "Principal": "*", "Condition": condition}
        get = _document({**opened, "Action": "s3:GetObject", "Resource": "arn:aws:s3:::vision-dev-training/*"})
        yield _one(BUCKET_POLICY, f"a bucket for {title}", "public-bucket", bucket="vision-dev-training", policy=get)
    condition = ALWAYS[0]
    pull = _document({"Effect": "Allow", "Principal": "*", "Action": "ecr:BatchGetImage", "Condition": condition})
    yield _one(REPOSITORY_POLICY, "a repository for anybody", "public-repository", repository="vision/dt", policy=pull)
    assume = {"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": "sts:AssumeRole", "Condition": condition}
    yield _one(ROLE, "a role for anybody", "trusted-strangers", assumeRolePolicy=_document(assume))
    external = {**assume, "Condition": {"StringEquals": {"sts:ExternalId": "vision"}}}
    yield _one(ROLE, "a role for anybody who says a word", "trusted-strangers", assumeRolePolicy=_document(external))
    for title, condition in (
        ("no condition", {}),
        ("the audience alone", {"StringEquals": {"token.actions.githubusercontent.com:aud": "sts.amazonaws.com"}}),
        ("every repository", {"StringLike": {"token.actions.githubusercontent.com:sub": "repo:*"}}),
        ("a repository of any owner", {"StringLike": {"token.actions.githubusercontent.com:sub": "repo:*/train:*"}}),
        ("owners of a beginning", {"StringLike": {"token.actions.githubusercontent.com:sub": "repo:vision*"}}),
    ):
        federated = {"Effect": "Allow", "Principal": {"Federated": GITHUB}, "Action": "sts:AssumeRoleWithWebIdentity"}
        trust = _document({**federated, "Condition": condition})
        yield _one(ROLE, f"GitHub's tokens with {title}", "trusted-strangers", assumeRolePolicy=trust)
    everybody = {"Effect": "Allow", "Principal": "*", "Action": "*", "Resource": "*"}
    for token in ("aws:kms/keyPolicy:KeyPolicy", "aws:sqs/queuePolicy:QueuePolicy", "aws:sns/topicPolicy:TopicPolicy",
                  "aws:ecr/registryPolicy:RegistryPolicy", "aws:efs/fileSystemPolicy:FileSystemPolicy",
                  "aws:s3/vectorsVectorBucketPolicy:VectorsVectorBucketPolicy"):  # fmt: skip
        yield _one(token, f"anybody by {token}", "trusted-strangers", policy=_document(everybody))
    yield _one("aws:lambda/permission:Permission", "anybody calls a function", "trusted-strangers", principal="*",
               action="lambda:InvokeFunction", function="drain")  # fmt: skip


def _bucket_attempts() -> Iterator[PolicyAttempt]:
    """Objects and images for the public, and images that change under their names."""
    for uri in (ALL_USERS, SIGNED_IN):
        grants = [{"permission": "READ", "grantee": {"type": "Group", "uri": uri}}]
        yield _one("aws:s3/bucketAcl:BucketAcl", f"a bucket's list of grants for {uri}", "public-bucket",
                   bucket="vision", accessControlPolicy={"owner": {"id": "a"}, "grants": grants})  # fmt: skip
    yield _one("aws:s3/bucketAclV2:BucketAclV2", "a bucket's list by its former type", "public-bucket",
               bucket="vision", acl="public-read")  # fmt: skip
    for token in ("aws:s3/bucket:Bucket", "aws:s3/bucketV2:BucketV2", "aws:s3/objectCopy:ObjectCopy"):
        grants = [{"type": "Group", "uri": ALL_USERS, "permissions": ["READ"]}]
        yield _one(token, f"grants of {token}", "public-bucket", bucket="vision", grants=grants)
    for token in ("aws:s3/bucketObject:BucketObject", "aws:s3/bucketObjectv2:BucketObjectv2"):
        yield _one(token, f"an object's list of {token}", "public-bucket", bucket="vision", key="k", acl="public-read")
    point = "aws:s3/accessPoint:AccessPoint"
    yield _one(point, "an access point without its block", "public-bucket", bucket="vision",
               publicAccessBlockConfiguration={"blockPublicPolicy": False})  # fmt: skip
    everybody = _document({"Effect": "Allow", "Principal": "*", "Action": "s3:GetObject", "Resource": "*"})
    yield _one(point, "an access point for anybody", "public-bucket", bucket="vision", policy=everybody)
    yield _one("aws:s3control/accessPointPolicy:AccessPointPolicy", "anybody by the policy of an access point",
               "public-bucket", policy=everybody)  # fmt: skip
    link = "oci:ObjectStorage/preauthrequest:Preauthrequest"
    for access in ("AnyObjectRead", "AnyObjectReadWrite", "AnyObjectWrite"):
        yield _one(link, f"a link for {access}", "public-bucket", bucket="vision", name="share", accessType=access)
    mutable = {"imageTagMutability": "IMMUTABLE_WITH_EXCLUSION", "name": "vision/dt"}
    for pattern in ("*", "1.*", "?.?"):
        filters = [{"filter": pattern, "filterType": "WILDCARD"}]
        yield _one("aws:ecr/repository:Repository", f"immutable but for {pattern}", "mutable-repository",
                   **mutable, imageTagMutabilityExclusionFilters=filters)  # fmt: skip


def _addresses(*blocks: str, **ports: Any) -> JudgedResource:
    rule = {"protocol": "tcp", "fromPort": 22, "toPort": 22, "cidrBlocks": list(blocks), **ports}
    return JudgedResource(GROUP, {"ingress": [rule]}, "group")


def _ingress(**rule: Any) -> JudgedResource:
    defaults = {"ipProtocol": "tcp", "fromPort": 22, "toPort": 22, "securityGroupId": "sg-0a1b2c3d"}
    return JudgedResource(INGRESS_RULE, {**defaults, **rule}, "in")


def _network_attempts() -> Iterator[PolicyAttempt]:
    """Ways in."""
    world = [f"{number}.0.0.0/8" for number in range(256)]
    yield PolicyAttempt("the world in 256 parts", "ingress-from-anywhere", (_addresses(*world),))
    listed = [{"source": block, "protocol": "6"} for block in world]
    yield PolicyAttempt("the world in 256 rules of a list", "ingress-from-anywhere",
                        (JudgedResource(LIST, {"ingressSecurityRules": listed}, "list"),))  # fmt: skip
    rules = tuple(_ingress(cidrIpv4=block) for block in world)
    yield PolicyAttempt("the world in 256 rules of a group", "opened-in-parts", rules)
    yield PolicyAttempt("a continent by IPv6", "ingress-from-anywhere", (_ingress(cidrIpv6="2600::/12"),))
    prefixes = JudgedResource("aws:ec2/managedPrefixList:ManagedPrefixList",
                              {"entries": [{"cidr": "0.0.0.0/1"}, {"cidr": "128.0.0.0/1"}]}, "office")  # fmt: skip
    yield PolicyAttempt(
        "the world by a prefix list", "ingress-from-anywhere", (prefixes, _ingress(prefixListId="pl-0"))
    )
    halves = [{"protocol": "tcp", "fromPort": first, "toPort": last, "cidrBlocks": ["10.20.0.0/16"]}
              for first, last in ((0, 32767), (32768, 65535))]  # fmt: skip
    yield PolicyAttempt("every port in two halves", "all-tcp", (JudgedResource(GROUP, {"ingress": halves}, "group"),))
    parts = tuple(_ingress(cidrIpv4="10.20.0.0/16", fromPort=first, toPort=first + 16383)
                  for first in range(0, 65536, 16384))  # fmt: skip
    yield PolicyAttempt("every port by four rules of a group", "opened-in-parts", parts)
    yield PolicyAttempt("every port of UDP", "all-tcp",
                        (_ingress(cidrIpv4="10.20.0.0/16", ipProtocol="udp", fromPort=0, toPort=65535),))  # fmt: skip
    listed = [{"source": "10.20.0.0/16", "protocol": "17"}]
    yield PolicyAttempt("every port of UDP by a list", "all-tcp",
                        (JudgedResource(LIST, {"ingressSecurityRules": listed}, "list"),))  # fmt: skip


def _run(job: str, nodes: int = 4, image: Any = "iad.ocir.io/axexamplens/vision/dt:1.4", **more: Any) -> JudgedResource:
    launch = {"TRAINYARD_LAUNCH": json.dumps({"retry": {"count": 0}, "ports": {}})}
    listed = [{"name": f"worker-{number}", "environment": launch} for number in range(nodes)]
    inputs = {"platform": "oci", "image": image, "nodes": listed, "maximumRuntimeMinutes": 60, "tags": {"job": job}}
    return JudgedResource(RUN, {**inputs, **more}, f"{job}/base")


def _job_attempts() -> Iterator[PolicyAttempt]:
    """What runs, for how much and how long, and on whose machines."""
    repository = JudgedResource("oci:Artifacts/containerRepository:ContainerRepository",
                                {"displayName": "vision/dt", "isImmutable": True}, "repository")  # fmt: skip
    for image in ("docker.io/evil/vision/dt:1.4", "evil.example.com/vision/dt:1.4", "vision/dt:1.4",
                  "iad.ocir.io.evil.example.com/axexamplens/vision/dt:1.4"):  # fmt: skip
        yield PolicyAttempt(f"the image {image}", "mutable-tags", (repository, _run("resnet", image=image)))
    bucket = JudgedResource("oci:ObjectStorage/bucket:Bucket", {"namespace": "axexamplens", "name": "vision"}, "bucket")
    image = "iad.ocir.io/mallory/vision/dt:1.4"
    yield PolicyAttempt("an image of another tenancy", "mutable-tags", (repository, bucket, _run("r", image=image)))
    named = JudgedResource(
        POLICY,
        {"policy": _allow("ecr:BatchGetImage", "arn:aws:ecr:us-east-1:123456789012:repository/vision/dt")},
        "runs",
    )
    kept = JudgedResource(
        "aws:ecr/repository:Repository", {"name": "vision/dt", "imageTagMutability": "IMMUTABLE"}, "ecr"
    )
    image = "666666666666.dkr.ecr.us-east-1.amazonaws.com/vision/dt:1.4"
    yield PolicyAttempt("an image of another account", "mutable-tags", (kept, named, _run("r", image=image)))
    excluded = [{"filter": "nightly*", "filterType": "WILDCARD"}]
    ecr = JudgedResource("aws:ecr/repository:Repository",
                         {"name": "vision/dt", "imageTagMutability": "IMMUTABLE_WITH_EXCLUSION",
                          "imageTagMutabilityExclusionFilters": excluded}, "repository")  # fmt: skip
    image = "123456789012.dkr.ecr.us-east-1.amazonaws.com/vision/dt:nightly-3"
    yield PolicyAttempt("a tag that is excluded", "mutable-tags", (ecr, _run("resnet", image=image)))
    ceilings = {"budget": {"ceilings": {"dev": {"nodes": 4}}}}
    yield PolicyAttempt("another environment's name", "budget", (_run("resnet", 400),), "dev2", ceilings)
    whole = {"budget": {"ceilings": {"dev": {"nodes": 4}}, "stackCeilings": {"dev": {"nodes": 8}}}}
    jobs = tuple(_run(f"job-{number}") for number in range(10))
    yield PolicyAttempt("ten jobs", "budget", jobs, "dev", whole)
    opened = JudgedResource(LIST, {"freeformTags": {"all-tcp": "proof-of-concept"}}, "rules")
    for environment in ("prod1", "main", "PROD", "eu2-prod3", "Production"):
        yield PolicyAttempt(f"a trial in {environment}", "proof-of-concept-in-production", (opened,), environment)
    years = 100 * 365 * 24 * 60
    yield PolicyAttempt("a run of a hundred years", "maximum-runtime", (_run("resnet", maximumRuntimeMinutes=years),))
    details = {"maximumRuntimeInMinutes": str(years)}
    yield _one(JOB, "a job of a hundred years", "maximum-runtime", jobConfigurationDetails=details)
    instance = JudgedResource("aws:ec2/instance:Instance", {"launchTemplate": {"id": "lt-0a1b2c3d"}}, "miner")
    yield PolicyAttempt("a machine from a foreign template", "foreign-templates", (instance,))
    template = JudgedResource("aws:ec2/launchTemplate:LaunchTemplate", {"name": "vision-dev-resnet"}, "resnet")
    named = JudgedResource("aws:ec2/instance:Instance", {"launchTemplate": {"name": "somebodys"}}, "miner")
    yield PolicyAttempt("a machine from a foreign template by its name", "foreign-templates", (template, named))
    own = JudgedResource("aws:ec2/instance:Instance", {"launchTemplate": {"id": "lt-00000000"}}, "resnet/main-0")
    yield PolicyAttempt("a foreign template beside the stack's own", "foreign-templates", (template, own, instance))
    yield _one("aws:ec2/vpcPeeringConnection:VpcPeeringConnection", "a type that no rule knows", "unjudged-types",
               peerOwnerId="666666666666")  # fmt: skip
