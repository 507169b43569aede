# SPDX-License-Identifier: Apache-2.0
"""A call is judged by what is carried out: merged launches, whole names of principals, tags, other names of resources.

Every attack here once succeeded without a policy that allows it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote, unquote

import pytest
from botocore.exceptions import ClientError

from tests.support.aws_inside import AwsInside, Sender, aws_inside

ACCOUNT, OTHER = "123456789012", "210987654321"
IMAGE = "ami-0d11a1b2c3d4e5f60"
USER = f"arn:aws:iam::{ACCOUNT}:user/user"
FORM = {"content-type": "application/x-www-form-urlencoded"}
ONE: dict[str, Any] = {"MinCount": 1, "MaxCount": 1}


@pytest.fixture(scope="module")
def inside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AwsInside]:
    with aws_inside(tmp_path_factory.mktemp("aws")) as made:
        iam = made.client(made.deployer, "iam")
        for name in ("small", "boss"):
            iam.create_role(RoleName=name, AssumeRolePolicyDocument=document(
                {"Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"}))  # fmt: skip
            iam.create_instance_profile(InstanceProfileName=name)
            iam.add_role_to_instance_profile(InstanceProfileName=name, RoleName=name)
        yield made


def document(*statements: Mapping[str, Any]) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": [{"Effect": "Allow", **one} for one in statements]})


def grant(inside: AwsInside, *statements: Mapping[str, Any]) -> None:
    """Gives the user these permissions only."""
    rows = [{"Resource": "*", **one} for one in statements]
    inside.ask(inside.deployer, "iam", "PutGroupPolicy", GroupName="scientists", PolicyName="test",
               PolicyDocument=document(*rows))  # fmt: skip


def refusal(inside: AwsInside, service: str, operation: str, sender: Sender | None = None, **parameters: Any) -> str:
    """The code with which a call of the user is refused; "" if it succeeds."""
    try:
        inside.ask(sender or inside.user, service, operation, **parameters)
    except ClientError as error:
        return str(error.response["Error"]["Code"])
    return ""


def template(inside: AwsInside, name: str, **data: Any) -> dict[str, str]:
    data = {"ImageId": IMAGE, "InstanceType": "t3.micro", **data}
    inside.ask(inside.deployer, "ec2", "CreateLaunchTemplate", LaunchTemplateName=name, LaunchTemplateData=data)
    return {"LaunchTemplateName": name}


def instances() -> list[Any]:
    from moto.ec2.models import ec2_backends

    return list(ec2_backends[ACCOUNT]["us-east-1"].all_instances())


def test_a_launch_passes_the_role_that_it_launches_with(inside: AwsInside) -> None:
    passing = {"Action": "iam:PassRole", "Resource": f"arn:aws:iam::{ACCOUNT}:role/small"}
    grant(inside, {"Action": "ec2:*"}, passing)
    named = template(inside, "small", IamInstanceProfile={"Name": "small"})
    boss = {"Arn": f"arn:aws:iam::{ACCOUNT}:instance-profile/boss"}
    before = instances()
    for profile in (boss, {"Name": "boss"}, {**boss, "Name": "small"}):
        why = refusal(inside, "ec2", "RunInstances", **ONE, LaunchTemplate=named, IamInstanceProfile=profile)
        assert why == "UnauthorizedOperation", profile
    for operation in ("CreateFleet", "RequestSpotInstances"):
        body = f"Action={operation}&Version=2016-11-15&LaunchTemplateConfigs.1.LaunchTemplateSpecification.Version=1"
        assert inside.send(inside.deployer, "ec2", "POST", "/", FORM, body.encode()).status == 400, operation
    assert instances() == before
    assert refusal(inside, "ec2", "RunInstances", **ONE, LaunchTemplate=named) == ""
    assert [one.iam_instance_profile["Arn"].rpartition("/")[2] for one in instances()] == ["small"]


def test_a_launch_is_checked_with_its_merged_values(inside: AwsInside) -> None:
    versions = {"Effect": "Deny", "Action": "ec2:RunInstances",
                "Condition": {"StringNotEquals": {"ec2:MetadataHttpTokens": "required"}},
                "Resource": "arn:aws:ec2:*:*:instance/*"}  # fmt: skip
    grant(inside, {"Action": "ec2:*"}, versions)
    named = template(inside, "v2", MetadataOptions={"HttpTokens": "required"})
    ask: dict[str, Any] = {**ONE, "LaunchTemplate": named, "DryRun": True}
    assert refusal(inside, "ec2", "RunInstances", **ask) == "DryRunOperation"
    for options in ({"HttpEndpoint": "enabled"}, {"HttpTokens": "optional"}):
        assert refusal(inside, "ec2", "RunInstances", **ask, MetadataOptions=options) == "UnauthorizedOperation"
    default = {**versions, "Condition": {"StringEquals": {"ec2:MetadataHttpTokens": "optional"}}}
    grant(inside, {"Action": "ec2:*"}, default)
    launch: dict[str, Any] = {**ONE, "ImageId": IMAGE, "InstanceType": "t3.micro", "DryRun": True}
    assert refusal(inside, "ec2", "RunInstances", **launch) == "UnauthorizedOperation", "EC2's own default"


def test_a_launch_gets_the_tags_that_were_checked(inside: AwsInside) -> None:
    mine = {"Action": "ec2:*", "Condition": {"StringEquals": {"aws:RequestTag/stack": "mine"}},
            "Resource": "arn:aws:ec2:*:*:instance/*"}  # fmt: skip
    rest = {"Action": "ec2:*", "Resource": [f"arn:aws:ec2:*:*:{kind}/*" for kind in (
        "image", "launch-template", "network-interface", "volume", "subnet", "security-group")]}  # fmt: skip
    grant(inside, mine, rest)

    def tags(**pairs: str) -> list[dict[str, Any]]:
        return [{"ResourceType": "instance", "Tags": [{"Key": key, "Value": value} for key, value in pairs.items()]}]

    named = template(inside, "theirs", TagSpecifications=tags(stack="theirs", other="x"))
    ask: dict[str, Any] = {**ONE, "LaunchTemplate": named}
    for given in (tags(a="b"), tags(Stack="mine")):
        assert refusal(inside, "ec2", "RunInstances", **ask, TagSpecifications=given) == "UnauthorizedOperation"
    before = {one.id for one in instances()}
    assert refusal(inside, "ec2", "RunInstances", **ask, TagSpecifications=tags(stack="mine")) == ""
    (made,) = (one for one in instances() if one.id not in before)
    kept = {tag["key"]: tag["value"] for tag in made.get_tags() if not tag["key"].startswith("aws:")}
    assert kept == {"stack": "mine", "other": "x"}


def test_a_refused_launch_leaves_no_instance(inside: AwsInside) -> None:
    before = instances()
    both = {"Arn": f"arn:aws:iam::{ACCOUNT}:instance-profile/boss", "Name": "small"}
    launch: dict[str, Any] = {**ONE, "ImageId": IMAGE, "InstanceType": "t3.micro"}
    why = refusal(inside, "ec2", "RunInstances", inside.deployer, **launch, IamInstanceProfile=both)
    assert (why, instances()) == ("InvalidParameterCombination", before)
    missing = {"LaunchTemplateId": "lt-0123456789abcdef0"}
    assert refusal(inside, "ec2", "RunInstances", inside.deployer, **ONE, LaunchTemplate=missing) == (
        "InvalidLaunchTemplateId.NotFound"
    )
    made = inside.ask(inside.deployer, "ec2", "DescribeLaunchTemplates")["LaunchTemplates"][0]
    two = {name: made[name] for name in ("LaunchTemplateName", "LaunchTemplateId")}
    assert refusal(inside, "ec2", "RunInstances", inside.deployer, **ONE, LaunchTemplate=two) == (
        "InvalidParameterCombination"
    )
    for version in ("-1", "0", "x", "1.5"):
        named = {"LaunchTemplateName": "small", "Version": version}
        why = refusal(inside, "ec2", "RunInstances", inside.deployer, **ONE, LaunchTemplate=named)
        assert why == "InvalidLaunchTemplateId.VersionNotFound", version


def test_a_principal_is_compared_as_a_whole(inside: AwsInside) -> None:
    """Also its account, and the path of its role."""
    ask = inside.ask
    grant(inside, {"Action": "sts:AssumeRole"})
    trust = document({"Principal": {"AWS": USER}, "Action": "sts:AssumeRole"})
    ask(inside.deployer, "iam", "CreateRole", RoleName="mine", Path="/team/", AssumeRolePolicyDocument=trust)
    session = assume(inside, f"arn:aws:iam::{ACCOUNT}:role/team/mine")
    ask(inside.deployer, "s3", "CreateBucket", Bucket="principals")
    ask(inside.deployer, "s3", "PutObject", Bucket="principals", Key="a", Body=b"a")
    own = f"arn:aws:iam::{ACCOUNT}:role/team/mine"
    others = (f"arn:aws:iam::{OTHER}:role/team/mine", f"arn:aws:iam::{ACCOUNT}:role/mine",
              f"arn:aws:iam::{ACCOUNT}:role/other/mine")  # fmt: skip
    from moto.s3.models import s3_backends

    bucket = s3_backends[ACCOUNT]["aws"].buckets["principals"]
    read = {"Action": "s3:GetObject", "Resource": "arn:aws:s3:::principals/*"}
    for principal, allowed in ((own, True), *((one, False) for one in others)):
        # PutBucketPolicy would refuse those that do not exist.
        bucket.policy = document({**read, "Principal": {"AWS": principal}}).encode()
        why = refusal(inside, "s3", "GetObject", session, Bucket="principals", Key="a")
        assert why == ("" if allowed else "AccessDenied"), principal
    bucket.policy = document(
        {**read, "Principal": "*"}, {**read, "Effect": "Deny", "NotPrincipal": {"AWS": list(others)}}
    ).encode()
    assert refusal(inside, "s3", "GetObject", session, Bucket="principals", Key="a") == "AccessDenied"
    bucket.policy = None


def assume(inside: AwsInside, role: str) -> Sender:
    keys = inside.ask(inside.user, "sts", "AssumeRole", RoleArn=role, RoleSessionName="me")["Credentials"]
    return Sender(keys["AccessKeyId"], keys["SecretAccessKey"], keys["SessionToken"])


def test_a_denial_in_a_trust_policy_counts_when_the_account_is_trusted(inside: AwsInside) -> None:
    grant(inside, {"Action": "sts:AssumeRole"})
    trusted = {"Principal": {"AWS": f"arn:aws:iam::{ACCOUNT}:root"}, "Action": "sts:AssumeRole"}
    denied = {**trusted, "Effect": "Deny", "Principal": {"AWS": USER}}
    inside.ask(inside.deployer, "iam", "CreateRole", RoleName="denied", AssumeRolePolicyDocument=document(
        trusted, denied))  # fmt: skip
    role: dict[str, Any] = {"RoleArn": f"arn:aws:iam::{ACCOUNT}:role/denied", "RoleSessionName": "me"}
    assert refusal(inside, "sts", "AssumeRole", **role) == "AccessDenied"
    assert refusal(inside, "sts", "AssumeRole", inside.deployer, **role) == ""
    assert refusal(inside, "sts", "AssumeRole", inside.deployer, **role, Tags=[{"Key": "a", "Value": "b"}]) == (
        "InvalidAction"
    )


def test_a_session_ends_with_its_role(inside: AwsInside) -> None:
    """A new role of the same name is another one."""
    grant(inside, {"Action": "sts:AssumeRole"})
    trust = document({"Principal": {"AWS": USER}, "Action": "sts:AssumeRole"})

    def make() -> None:
        inside.ask(inside.deployer, "iam", "CreateRole", RoleName="again", AssumeRolePolicyDocument=trust)

    make()
    session = assume(inside, f"arn:aws:iam::{ACCOUNT}:role/again")
    assert refusal(inside, "sts", "GetCallerIdentity", session) == ""
    inside.ask(inside.deployer, "iam", "DeleteRole", RoleName="again")
    make()
    inside.ask(inside.deployer, "iam", "PutRolePolicy", RoleName="again", PolicyName="p",
               PolicyDocument=document({"Action": "*", "Resource": "*"}))  # fmt: skip
    assert refusal(inside, "s3", "ListBuckets", session) == "InvalidToken"


def test_a_denial_counts_by_every_key_that_is_known(inside: AwsInside) -> None:
    iam = inside.client(inside.deployer, "iam")
    iam.tag_user(UserName="user", Tags=[{"Key": "team", "Value": "red*"}])
    iam.tag_role(RoleName="small", Tags=[{"Key": "stack", "Value": "theirs"}])
    inside.ask(inside.deployer, "s3", "CreateBucket", Bucket="tagged")
    everything = {"Action": "*"}
    asked: Mapping[str, tuple[str, str, str, Mapping[str, Any]]] = {
        "aws:PrincipalTag/team": ("red*", "s3", "ListBuckets", {}),
        "s3:RequestObjectTag/owner": ("*", "s3", "PutObject", {"Bucket": "tagged", "Key": "a", "Tagging": "owner=x"}),
        "ec2:Region": ("us-east-1", "ec2", "DescribeVpcs", {}),
        "iam:ResourceTag/stack": ("theirs", "iam", "GetRole", {"RoleName": "small"}),
        "aws:ResourceTag/stack": ("theirs", "iam", "GetRole", {"RoleName": "small"}),
        "ec2:Vpc": ("no request has this key", "ec2", "DescribeVpcs", {}),
    }
    for key, (value, service, operation, parameters) in asked.items():
        operator = "StringLike" if value == "*" else "StringEquals"
        grant(inside, everything)
        assert refusal(inside, service, operation, **parameters) == "", key
        grant(inside, everything, {"Effect": "Deny", **everything, "Condition": {operator: {key: value}}})
        assert "Denied" in (why := refusal(inside, service, operation, **parameters)) or "Unauth" in why, key
    # The administrator revokes older sessions in this way.
    trust = document({"Principal": {"AWS": USER}, "Action": "sts:AssumeRole"})
    iam.create_role(RoleName="revoked", AssumeRolePolicyDocument=trust)
    grant(inside, everything)
    session = assume(inside, f"arn:aws:iam::{ACCOUNT}:role/revoked")
    revoked = {"Effect": "Deny", "Action": "*", "Resource": "*",
               "Condition": {"DateLessThan": {"aws:TokenIssueTime": "2999-01-01T00:00:00Z"}}}  # fmt: skip
    rights = {"RoleName": "revoked", "PolicyName": "p"}
    iam.put_role_policy(**rights, PolicyDocument=document({"Action": "*", "Resource": "*"}))
    assert refusal(inside, "s3", "ListBuckets", session) == ""
    iam.put_role_policy(**rights, PolicyDocument=document({"Action": "*", "Resource": "*"}, revoked))
    assert refusal(inside, "s3", "ListBuckets", session) == "AccessDenied"


def test_a_wildcard_in_a_tag_is_literal_in_a_variable(inside: AwsInside) -> None:
    inside.ask(inside.deployer, "iam", "TagUser", UserName="user", Tags=[{"Key": "home", "Value": "*"}])
    inside.ask(inside.deployer, "s3", "CreateBucket", Bucket="homes")
    grant(inside, {"Action": "s3:PutObject", "Resource": "arn:aws:s3:::homes/${aws:PrincipalTag/home}/a"})
    assert refusal(inside, "s3", "PutObject", Bucket="homes", Key="theirs/a") == "AccessDenied"
    assert refusal(inside, "s3", "PutObject", Bucket="homes", Key="*/a") == ""


def test_a_tag_that_is_given_twice_is_refused(inside: AwsInside) -> None:
    ec2 = inside.client(inside.deployer, "ec2")
    vpc = ec2.describe_vpcs()["Vpcs"][0]["VpcId"]
    group = ec2.create_security_group(GroupName="twice", Description="d", VpcId=vpc)["GroupId"]
    owned = {"StringEquals": {"aws:RequestTag/stack": "mine"}}
    grant(inside, {"Action": ["ec2:CreateTags", "ec2:CreateVpc", "ec2:CreateCapacityReservation"], "Condition": owned})
    for first, second in (("1", "2"), ("2", "1")):
        for head, tag in (
            (f"CreateTags&ResourceId.1={group}", "Tag"),
            ("CreateVpc&CidrBlock=10.9.0.0/16&TagSpecification.1.ResourceType=vpc", "TagSpecification.1.Tag"),
        ):
            pairs = ((first, "theirs"), (second, "mine"))
            given = "".join(f"&{tag}.{number}.Key=stack&{tag}.{number}.Value={value}" for number, value in pairs)
            reply = inside.send(inside.user, "ec2", "POST", "/", FORM,
                                f"Action={head}&Version=2016-11-15{given}".encode())  # fmt: skip
            assert reply.status >= 400, (head, first)
    assert ec2.describe_tags(Filters=[{"Name": "resource-id", "Values": [group]}])["Tags"] == []
    twice = [{"Key": "a", "Value": "1"}, {"Key": "a", "Value": "2"}]
    cases: list[tuple[str, str, dict[str, Any], str]] = [
        ("iam", "TagUser", {"UserName": "user", "Tags": [twice[0], {"Key": "A", "Value": "2"}]}, "InvalidInput"),
        ("secretsmanager", "CreateSecret", {"Name": "twice", "SecretString": "x", "Tags": twice},
         "ValidationException"),
        ("kms", "CreateKey", {"Tags": [{"TagKey": "a", "TagValue": "1"}, {"TagKey": "a", "TagValue": "2"}]},
         "ValidationException"),
        ("s3", "PutObject", {"Bucket": "homes", "Key": "t", "Tagging": "a=1&a=2"}, "InvalidArgument"),
        ("s3", "PutObjectTagging", {"Bucket": "homes", "Key": "*/a", "Tagging": {"TagSet": twice}}, "InvalidTag"),
        ("ec2", "CreateVpc", {"CidrBlock": "10.9.0.0/16", "TagSpecifications": [
            {"ResourceType": "vpc", "Tags": [one]} for one in twice]}, "InvalidParameterValue"),
    ]  # fmt: skip
    for service, operation, parameters, code in cases:
        assert refusal(inside, service, operation, inside.deployer, **parameters) == code, operation


def test_a_group_in_a_folder_has_a_whole_name(inside: AwsInside) -> None:
    iam = inside.client(inside.deployer, "iam")
    iam.create_group(GroupName="dev-bosses", Path="/ops/")
    mine = {"Action": "iam:*", "Resource": f"arn:aws:iam::{ACCOUNT}:group/dev-*"}
    grant(inside, mine, {"Action": "iam:CreateRole", "Resource": f"arn:aws:iam::{ACCOUNT}:role/dev-*"})
    member: dict[str, Any] = {"GroupName": "dev-bosses", "UserName": "user"}
    assert refusal(inside, "iam", "AddUserToGroup", **member) == "AccessDenied"
    assert refusal(inside, "iam", "CreateGroup", GroupName="dev-x", Path="/ops/") == "AccessDenied"
    assert refusal(inside, "iam", "CreateGroup", GroupName="dev-x") == ""
    assert refusal(inside, "iam", "UpdateGroup", GroupName="dev-x", NewPath="/ops/") == "AccessDenied"
    assert refusal(inside, "iam", "UpdateGroup", GroupName="dev-x", NewGroupName="ops") == "AccessDenied"
    trust = document({"Principal": {"AWS": USER}, "Action": "sts:AssumeRole"})
    assert refusal(inside, "iam", "CreateRole", RoleName="dev-r", Path="/ops/", AssumeRolePolicyDocument=trust) == (
        "AccessDenied"
    )


def test_the_policy_of_a_key_is_read(inside: AwsInside) -> None:
    kms = inside.client(inside.deployer, "kms")
    key = kms.create_key()["KeyMetadata"]["KeyId"]
    account = {"Principal": {"AWS": f"arn:aws:iam::{ACCOUNT}:root"}, "Action": "kms:*", "Resource": "*"}
    grant(inside, {"Action": "kms:*"})
    text = inside.ask(inside.user, "kms", "Encrypt", KeyId=key, Plaintext=b"x")["CiphertextBlob"]
    deployer = {**account, "Principal": {"AWS": f"arn:aws:iam::{ACCOUNT}:user/deployer"}}
    kms.put_key_policy(KeyId=key, PolicyName="default", Policy=document(deployer))
    for parameters in ({"KeyId": key}, {}):
        why = refusal(inside, "kms", "Decrypt", CiphertextBlob=text, **parameters)
        assert why == "AccessDeniedException", parameters
    assert kms.decrypt(CiphertextBlob=text)["Plaintext"] == b"x"
    grant(inside, {"Action": "s3:ListAllMyBuckets"})
    own = {**account, "Principal": {"AWS": USER}, "Action": "kms:Decrypt"}
    kms.put_key_policy(KeyId=key, PolicyName="default", Policy=document(account, own))
    assert refusal(inside, "kms", "Encrypt", KeyId=key, Plaintext=b"x") == "AccessDeniedException"
    assert refusal(inside, "kms", "Decrypt", KeyId=key, CiphertextBlob=text) == ""


def test_a_rule_that_no_firewall_could_read_is_refused(inside: AwsInside) -> None:
    ec2 = inside.client(inside.deployer, "ec2")
    vpc = ec2.describe_vpcs()["Vpcs"][0]["VpcId"]
    group = ec2.create_security_group(GroupName="rules", Description="d", VpcId=vpc)["GroupId"]
    fine = {"IpProtocol": "tcp", "FromPort": 1, "ToPort": 2, "IpRanges": [{"CidrIp": "10.0.0.1/8"}]}
    rules: list[dict[str, Any]] = [
        {"IpProtocol": "banana"}, {"IpProtocol": "256"}, {"IpProtocol": "-2"}, {"IpProtocol": "\u0666"},
        {"FromPort": 65_536, "ToPort": 65_537}, {"FromPort": 3}, {"FromPort": -5},
        {"IpProtocol": "icmp", "FromPort": 256}, {"IpProtocol": "icmpv6", "ToPort": 300},
        *({"IpRanges": [{"CidrIp": block}]} for block in (
            "10.0.0.0/08", "10.0.0.0/255.0.0.0", "10.0.0.0/33", "10.0.0.0", "", "010.0.0.0/8", "10.0.0.0/8 ", "x")),
        {"IpRanges": [], "Ipv6Ranges": [{"CidrIpv6": "::/0x"}]},
        {"IpRanges": [{"CidrIp": "10.0.0.0/8", "Description": "a\nb"}]},
        {"IpRanges": [{"CidrIp": "10.0.0.0/8", "Description": "é"}]},
    ]  # fmt: skip
    for direction in ("ingress", "egress"):
        author = getattr(ec2, f"authorize_security_group_{direction}")
        for change in rules:
            with pytest.raises(ClientError, match="InvalidParameterValue"):
                author(GroupId=group, IpPermissions=[{**fine, **change}])
        made = author(GroupId=group, IpPermissions=[fine])["SecurityGroupRules"][0]["SecurityGroupRuleId"]
        for odd in ({"IpProtocol": "banana"}, {"IpProtocol": "tcp", "FromPort": 1, "ToPort": 65_536},
                    {"FromPort": 99_999}, {"IpProtocol": "tcp", "CidrIpv4": "10.0.0.0/08"}):  # fmt: skip
            with pytest.raises(ClientError, match="InvalidParameterValue"):
                ec2.modify_security_group_rules(GroupId=group, SecurityGroupRules=[
                    {"SecurityGroupRuleId": made, "SecurityGroupRule": odd}])  # fmt: skip
    cases: list[tuple[str, dict[str, Any]]] = [
        ("CreateSecurityGroup", {"GroupName": "sg-0123456789abcdef0", "Description": "d", "VpcId": vpc}),
        ("CreateSecurityGroup", {"GroupName": "ok", "Description": "a|b", "VpcId": vpc}),
        ("CreateVpc", {"CidrBlock": "10.0.0.0/016"}),
        ("CreateRoute", {"RouteTableId": "rtb-0123456789abcdef0", "DestinationCidrBlock": "10.0.0.0/255.0.0.0"}),
        ("CreateNetworkAclEntry", {"NetworkAclId": "acl-0123456789abcdef0", "RuleNumber": 1, "Protocol": "banana",
                                   "RuleAction": "allow", "Egress": False, "CidrBlock": "10.0.0.0/8"}),
    ]  # fmt: skip
    for operation, parameters in cases:
        assert refusal(inside, "ec2", operation, inside.deployer, **parameters) == "InvalidParameterValue", operation


def test_a_bucket_with_odd_names_is_listed_and_emptied(inside: AwsInside) -> None:
    """A name with a control character once made every list of versions unreadable."""
    from components.aws.client.buckets import empty_bucket
    from localcloud.aws.border.xml_body import fits_xml

    s3 = inside.client(inside.deployer, "s3")
    s3.create_bucket(Bucket="odd-names")
    s3.put_bucket_versioning(Bucket="odd-names", VersioningConfiguration={"Status": "Enabled"})
    names = ["a/\x01", "a/\x1f b+%25&<>", "a/\r", "a/\ufffe", "é/ü", "plain"]
    assert [name for name in names if fits_xml(name)] == ["é/ü", "plain"]
    for name in names:
        s3.put_object(Bucket="odd-names", Key=name, Body=b"x")
        # Its response cannot be parsed for some names, also on AWS.
        inside.send(inside.deployer, "s3", "POST", f"/odd-names/{quote(name)}?uploads")
    s3.delete_object(Bucket="odd-names", Key=names[0])
    for operation in (s3.list_objects, s3.list_objects_v2):
        assert {row["Key"] for row in operation(Bucket="odd-names")["Contents"]} == set(names[1:])
        folders = operation(Bucket="odd-names", Delimiter="/")["CommonPrefixes"]
        assert {row["Prefix"] for row in folders} == {"a/", "é/"}
    versions = s3.list_object_versions(Bucket="odd-names")
    assert {row["Key"] for row in versions["Versions"]} == set(names)
    assert [row["Key"] for row in versions["DeleteMarkers"]] == names[:1]
    assert s3.list_object_versions(Bucket="odd-names", Prefix="a/", MaxKeys=1)["NextKeyMarker"] == names[0]
    uploads = s3.list_multipart_uploads(Bucket="odd-names", EncodingType="url")["Uploads"]
    assert {unquote(row["Key"]) for row in uploads} == set(names)
    assert empty_bucket(s3, lambda text: None, "odd-names") == len(names) + 1
    assert not s3.list_object_versions(Bucket="odd-names").keys() & {"Versions", "DeleteMarkers"}
