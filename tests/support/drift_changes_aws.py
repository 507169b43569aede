# SPDX-License-Identifier: Apache-2.0
"""Changes without Pulumi at AWS, with Amazon's own clients, for tests of `trainyard drift`."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

from tests.support.aws_clients import AwsClients
from tests.support.drifting import BehindTheBack, StackUp, Undo, turn

STACK, BUCKET, REPOSITORY = "aws-dl1-single-node", "vision-dev-gaudi", "vision/gaudi-dev"
ROLE = "vision-dev-nodes"
# moto fails on a configuration without anything in it.
NO_TARGET: dict[str, Any] = {"EventBridgeConfiguration": {}}


def trust(**who: str) -> str:
    one = {"Effect": "Allow", "Principal": who, "Action": "sts:AssumeRole"}
    return json.dumps({"Version": "2012-10-17", "Statement": [one]})


def statement(actions: str | list[str], resource: str | list[str], **more: Any) -> str:
    one = {"Effect": "Allow", "Action": actions, "Resource": resource, **more}
    return json.dumps({"Version": "2012-10-17", "Statement": [one]})


class Changes:
    def __init__(self, up: StackUp) -> None:
        self.up, self.clients = up, AwsClients(up.cloud, region="us-west-2")
        self.ec2, self.iam, self.s3 = self.clients["ec2"], self.clients["iam"], self.clients["s3"]

    def makers(self) -> list[Callable[[random.Random], BehindTheBack]]:
        return [
            self.port_opened, self.way_out_opened, self.role_trusted, self.policy_in_role, self.policy_on_role,
            self.policy_rewritten, self.user_granted, self.group_granted, self.role_granted, self.bucket_policy,
            self.bucket_opened, self.versions_off, self.registry_shared, self.secret_shared, self.group_of_machine,
            self.machine_added, self.logs_shortened, self.profile_changed, self.way_in, self.role_that_claims,
            self.another_key, self.owners_changed, self.notified, self.objects_expire,
            self.old_metadata, self.tags_removed, self.peering,
        ]  # fmt: skip

    @property
    def group(self) -> str:
        return self.up.id_of("SecurityGroup", "nodes")

    def port_opened(self, chance: random.Random) -> BehindTheBack:
        port, source = chance.choice([22, chance.randrange(1, 65535)]), chance.choice(["0.0.0.0/0", "198.51.100.0/24"])
        rule = {
            "IpProtocol": chance.choice(["tcp", "udp"]),
            "FromPort": port,
            "ToPort": port,
            "IpRanges": [{"CidrIp": source}],
        }

        def make() -> Undo:
            made = self.ec2.authorize_security_group_ingress(GroupId=self.group, IpPermissions=[rule])
            ids = [one["SecurityGroupRuleId"] for one in made["SecurityGroupRules"]]
            return lambda: self.ec2.revoke_security_group_ingress(GroupId=self.group, SecurityGroupRuleIds=ids)

        return BehindTheBack(f"port {port} from {source}", make, [str(port), source, "no stack declares"])

    def way_out_opened(self, chance: random.Random) -> BehindTheBack:
        rule = {"IpProtocol": "-1", "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}

        def make() -> Undo:
            made = self.ec2.authorize_security_group_egress(GroupId=self.group, IpPermissions=[rule])
            ids = [one["SecurityGroupRuleId"] for one in made["SecurityGroupRules"]]
            return lambda: self.ec2.revoke_security_group_egress(GroupId=self.group, SecurityGroupRuleIds=ids)

        return BehindTheBack("everything out", make, ["0.0.0.0/0"])

    def role_trusted(self, chance: random.Random) -> BehindTheBack:
        other = f"arn:aws:iam::{chance.randrange(10**11, 10**12)}:root"

        def make() -> Undo:
            before = self.iam.get_role(RoleName=ROLE)["Role"]["AssumeRolePolicyDocument"]

            def update(document: Any) -> Any:
                return self.iam.update_assume_role_policy(RoleName=ROLE, PolicyDocument=json.dumps(document))

            more = {"Effect": "Allow", "Principal": {"AWS": other}, "Action": "sts:AssumeRole"}
            return turn(update, {**before, "Statement": [*before["Statement"], more]}, before)

        return BehindTheBack(f"{other} may be the nodes", make, [other])

    def policy_in_role(self, chance: random.Random) -> BehindTheBack:
        text = statement(chance.choice(["s3:*", "*", "ec2:RunInstances"]), "*")

        def make() -> Undo:
            self.iam.put_role_policy(RoleName=ROLE, PolicyName="beside", PolicyDocument=text)
            return lambda: self.iam.delete_role_policy(RoleName=ROLE, PolicyName="beside")

        return BehindTheBack(f"the nodes may {text}", make, ["beside", ROLE])

    def _policy(self, text: str) -> tuple[str, Undo]:
        arn = self.iam.create_policy(PolicyName="beside", PolicyDocument=text)["Policy"]["Arn"]
        return arn, lambda: self.iam.delete_policy(PolicyArn=arn)

    def policy_on_role(self, chance: random.Random) -> BehindTheBack:
        def make() -> Undo:
            arn, delete = self._policy(statement("dynamodb:*", "*"))
            self.iam.attach_role_policy(RoleName=ROLE, PolicyArn=arn)
            return lambda: (self.iam.detach_role_policy(RoleName=ROLE, PolicyArn=arn), delete())

        return BehindTheBack("a policy on the nodes' role", make, ["beside", ROLE])

    def policy_rewritten(self, chance: random.Random) -> BehindTheBack:
        arn = chance.choice([row["id"] for row in self.up.state if row["type"] == "aws:iam/policy:Policy"])

        def make() -> Undo:
            policy = self.iam.get_policy(PolicyArn=arn)["Policy"]["DefaultVersionId"]
            text = statement(["s3:GetObject", "s3:DeleteBucket"], "*")
            made = self.iam.create_policy_version(PolicyArn=arn, PolicyDocument=text, SetAsDefault=True)
            version = made["PolicyVersion"]["VersionId"]

            def undo() -> None:
                self.iam.set_default_policy_version(PolicyArn=arn, VersionId=policy)
                self.iam.delete_policy_version(PolicyArn=arn, VersionId=version)

            return undo

        return BehindTheBack(f"{arn} rewritten", make, [])

    def user_granted(self, chance: random.Random) -> BehindTheBack:
        action = chance.choice(["s3:GetObject", "s3:*", "*"])
        resource = chance.choice([f"arn:aws:s3:::{BUCKET}/*", "arn:aws:s3:::vision-*/*", "*"])

        def make() -> Undo:
            self.iam.create_user(UserName="mallory")
            self.iam.put_user_policy(
                UserName="mallory", PolicyName="beside", PolicyDocument=statement(action, resource)
            )

            def undo() -> None:
                self.iam.delete_user_policy(UserName="mallory", PolicyName="beside")
                self.iam.delete_user(UserName="mallory")

            return undo

        return BehindTheBack(f"mallory may {action} on {resource}", make, ["mallory"])

    def group_granted(self, chance: random.Random) -> BehindTheBack:
        resource = f"arn:aws:s3:::{BUCKET}"

        def make() -> Undo:
            arn, delete = self._policy(statement(["s3:ListBucket", "s3:PutBucketPolicy"], resource))
            self.iam.create_group(GroupName="others")
            self.iam.attach_group_policy(GroupName="others", PolicyArn=arn)

            def undo() -> None:
                self.iam.detach_group_policy(GroupName="others", PolicyArn=arn)
                self.iam.delete_group(GroupName="others")
                delete()

            return undo

        return BehindTheBack("a group gets the bucket", make, ["group others", "beside"])

    def role_granted(self, chance: random.Random) -> BehindTheBack:
        on = chance.choice([f"arn:aws:ecr:us-west-2:123456789012:repository/{REPOSITORY}", "*"])

        def make() -> Undo:
            self.iam.create_role(RoleName="beside", AssumeRolePolicyDocument=trust(Service="lambda.amazonaws.com"))
            text = statement("ecr:*", on)
            self.iam.put_role_policy(RoleName="beside", PolicyName="images", PolicyDocument=text)

            def undo() -> None:
                self.iam.delete_role_policy(RoleName="beside", PolicyName="images")
                self.iam.delete_role(RoleName="beside")

            return undo

        return BehindTheBack(f"a role gets images of {on}", make, ["role beside", "images"])

    def bucket_policy(self, chance: random.Random) -> BehindTheBack:
        other = f"arn:aws:iam::{chance.randrange(10**11, 10**12)}:root"

        def make() -> Undo:
            before = self.s3.get_bucket_policy(Bucket=BUCKET)["Policy"]
            rows = json.loads(before)
            more = {"Effect": "Allow", "Principal": {"AWS": other}, "Action": "s3:GetObject",
                    "Resource": f"arn:aws:s3:::{BUCKET}/*"}  # fmt: skip

            def put(text: Any) -> Any:
                return self.s3.put_bucket_policy(Bucket=BUCKET, Policy=text)

            return turn(put, json.dumps({**rows, "Statement": [*rows["Statement"], more]}), before)

        return BehindTheBack(f"the bucket for {other}", make, [other])

    def bucket_opened(self, chance: random.Random) -> BehindTheBack:
        def make() -> Undo:
            before = self.s3.get_public_access_block(Bucket=BUCKET)["PublicAccessBlockConfiguration"]

            def put(rows: Any) -> Any:
                return self.s3.put_public_access_block(Bucket=BUCKET, PublicAccessBlockConfiguration=rows)

            return turn(put, {**before, chance.choice(sorted(before)): False}, before)

        return BehindTheBack("public access is no longer blocked", make, [BUCKET, "true, now false"])

    def versions_off(self, chance: random.Random) -> BehindTheBack:
        def make() -> Undo:
            before = self.s3.get_bucket_versioning(Bucket=BUCKET).get("Status", "Suspended")

            def put(status: Any) -> Any:
                return self.s3.put_bucket_versioning(Bucket=BUCKET, VersioningConfiguration={"Status": status})

            return turn(put, "Suspended" if before == "Enabled" else "Enabled", before)

        return BehindTheBack("versions on or off", make, [BUCKET, "status"])

    def registry_shared(self, chance: random.Random) -> BehindTheBack:
        ecr, other = self.clients["ecr"], f"arn:aws:iam::{chance.randrange(10**11, 10**12)}:root"
        text = {"Version": "2012-10-17", "Statement": [
            {"Effect": "Allow", "Principal": {"AWS": other}, "Action": "ecr:BatchGetImage"}]}  # fmt: skip

        def make() -> Undo:
            ecr.set_repository_policy(repositoryName=REPOSITORY, policyText=json.dumps(text))
            return lambda: ecr.delete_repository_policy(repositoryName=REPOSITORY)

        return BehindTheBack(f"images for {other}", make, [REPOSITORY, other])

    def secret_shared(self, chance: random.Random) -> BehindTheBack:
        client, secret = self.clients["secretsmanager"], self.up.id_of("Secret", "resnet/ssh")
        text = statement("secretsmanager:GetSecretValue", "*", Principal="*")

        def make() -> Undo:
            client.put_resource_policy(SecretId=secret, ResourcePolicy=text)
            return lambda: client.delete_resource_policy(SecretId=secret)

        return BehindTheBack("the SSH key for everybody", make, ["secret", "*"])

    def group_of_machine(self, chance: random.Random) -> BehindTheBack:
        machine = self.up.id_of("Instance", "resnet/main-0")

        def make() -> Undo:
            vpc = self.up.id_of("Vpc", "vpc")
            made = self.ec2.create_security_group(VpcId=vpc, GroupName="beside", Description="by hand")["GroupId"]
            rule = {"IpProtocol": "tcp", "FromPort": 22, "ToPort": 22, "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}
            self.ec2.authorize_security_group_ingress(GroupId=made, IpPermissions=[rule])

            def put(groups: Any) -> Any:
                return self.ec2.modify_instance_attribute(InstanceId=machine, Groups=groups)

            put([self.group, made])

            def undo() -> None:
                put([self.group])
                self.ec2.delete_security_group(GroupId=made)

            return undo

        seen = [
            "securityGroups",
            "opens    TCP 22 into the nodes of resnet, from anywhere",
            "in which resnet/main-0 is",
        ]
        return BehindTheBack("another group on the machine", make, seen)

    def machine_added(self, chance: random.Random) -> BehindTheBack:
        def make() -> Undo:
            tags = [{"Key": "stack", "Value": STACK}, {"Key": "managed-by", "Value": "trainyard"}]
            subnet = self.up.id_of("Subnet", "subnet")
            made = self.ec2.run_instances(
                ImageId=self._image(), InstanceType="m5.large", MinCount=1, MaxCount=1, SubnetId=subnet,
                TagSpecifications=[{"ResourceType": "instance", "Tags": tags}],
            )["Instances"][0]["InstanceId"]  # fmt: skip
            return lambda: self.ec2.terminate_instances(InstanceIds=[made])

        return BehindTheBack("a machine more", make, ["m5.large", "no stack declares"])

    def _image(self) -> str:
        return str(self.up.row("LaunchTemplate", "resnet")["inputs"]["imageId"])

    def logs_shortened(self, chance: random.Random) -> BehindTheBack:
        logs, group = self.clients["logs"], self.up.id_of("LogGroup", "log-group")

        def make() -> Undo:
            def put(days: Any) -> Any:
                return logs.put_retention_policy(logGroupName=group, retentionInDays=days)

            return turn(put, chance.choice([1, 3, 5]), 30)

        return BehindTheBack("logs end sooner", make, ["retentionInDays"])

    def profile_changed(self, chance: random.Random) -> BehindTheBack:
        def make() -> Undo:
            self.iam.create_role(RoleName="stronger", AssumeRolePolicyDocument=trust(Service="ec2.amazonaws.com"))
            self.iam.remove_role_from_instance_profile(InstanceProfileName=ROLE, RoleName=ROLE)
            self.iam.add_role_to_instance_profile(InstanceProfileName=ROLE, RoleName="stronger")

            def undo() -> None:
                self.iam.remove_role_from_instance_profile(InstanceProfileName=ROLE, RoleName="stronger")
                self.iam.add_role_to_instance_profile(InstanceProfileName=ROLE, RoleName=ROLE)
                self.iam.delete_role(RoleName="stronger")

            return undo

        return BehindTheBack("another role in the nodes' profile", make, ["stronger"])

    def way_in(self, chance: random.Random) -> BehindTheBack:
        table = self.up.id_of("RouteTable", "routes")

        def make() -> Undo:
            gateway = self.up.id_of("InternetGateway", "internet")
            where = {"RouteTableId": table, "DestinationCidrBlock": "203.0.113.0/24"}
            self.ec2.create_route(GatewayId=gateway, **where)
            return lambda: self.ec2.delete_route(**where)

        return BehindTheBack("a route to the internet", make, ["203.0.113.0/24", "no stack declares"])

    def role_that_claims(self, chance: random.Random) -> BehindTheBack:
        """Its tags say that another stack made it."""
        tags = [{"Key": "managed-by", "Value": "trainyard"}, {"Key": "stack", "Value": "no-such-stack"}]

        def make() -> Undo:
            self.iam.create_role(RoleName="claims", AssumeRolePolicyDocument=trust(AWS="*"), Tags=tags)
            text = statement("s3:*", [f"arn:aws:s3:::{BUCKET}", f"arn:aws:s3:::{BUCKET}/*"])
            self.iam.put_role_policy(RoleName="claims", PolicyName="data", PolicyDocument=text)

            def undo() -> None:
                self.iam.delete_role_policy(RoleName="claims", PolicyName="data")
                self.iam.delete_role(RoleName="claims")

            return undo

        claim = "it says that it is of the stack no-such-stack, which is not known here"
        return BehindTheBack("a role that claims", make, ["gains", f"policy data of the role claims: {claim}"])

    def another_key(self, chance: random.Random) -> BehindTheBack:
        key = f"arn:aws:kms:us-west-2:{chance.randrange(10**11, 10**12)}:key/theirs"

        def make() -> Undo:
            def put(rule: Any) -> Any:
                rules = {"Rules": [{"ApplyServerSideEncryptionByDefault": rule}]}
                return self.s3.put_bucket_encryption(Bucket=BUCKET, ServerSideEncryptionConfiguration=rules)

            return turn(put, {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": key}, {"SSEAlgorithm": "AES256"})

        return BehindTheBack("another account's key", make, ["rules: now without", key])

    def owners_changed(self, chance: random.Random) -> BehindTheBack:
        def make() -> Undo:
            def put(owner: Any) -> Any:
                rules = {"Rules": [{"ObjectOwnership": owner}]}
                return self.s3.put_bucket_ownership_controls(Bucket=BUCKET, OwnershipControls=rules)

            return turn(put, "ObjectWriter", "BucketOwnerEnforced")

        return BehindTheBack("others own objects", make, ["objectOwnership: BucketOwnerEnforced, now ObjectWriter"])

    def notified(self, chance: random.Random) -> BehindTheBack:
        queue = f"arn:aws:sqs:us-west-2:{chance.randrange(10**11, 10**12)}:theirs"

        def make() -> Undo:
            def put(targets: Any) -> Any:
                return self.s3.put_bucket_notification_configuration(
                    Bucket=BUCKET, NotificationConfiguration=targets, SkipDestinationValidation=True
                )

            return turn(
                put, {"QueueConfigurations": [{"QueueArn": queue, "Events": ["s3:ObjectCreated:*"]}]}, NO_TARGET
            )

        return BehindTheBack(
            "notifications", make, [f"notifications of the bucket {BUCKET} to {queue}: no stack declares"]
        )

    def objects_expire(self, chance: random.Random) -> BehindTheBack:
        days = chance.randrange(1, 90)

        def make() -> Undo:
            before = self.s3.get_bucket_lifecycle_configuration(Bucket=BUCKET)["Rules"]
            more = {"ID": "clean", "Status": "Enabled", "Filter": {"Prefix": ""}, "Expiration": {"Days": days}}

            def put(rules: Any) -> Any:
                return self.s3.put_bucket_lifecycle_configuration(
                    Bucket=BUCKET, LifecycleConfiguration={"Rules": rules}
                )

            return turn(put, [*before, more], before)

        return BehindTheBack(
            "objects end", make, ["lifecycle configuration", f'now with {{"expiration": {{"days": {days}}}']
        )

    def old_metadata(self, chance: random.Random) -> BehindTheBack:
        machine = self.up.id_of("Instance", "resnet/main-0")

        def make() -> Undo:
            def put(tokens: Any) -> Any:
                return self.ec2.modify_instance_metadata_options(InstanceId=machine, HttpTokens=tokens)

            return turn(put, "optional", "required")

        return BehindTheBack("IMDSv1", make, ["metadataService: IMDSv2 only, now IMDSv1 too"])

    def tags_removed(self, chance: random.Random) -> BehindTheBack:
        thing = self.up.id_of(*chance.choice([("Vpc", "vpc"), ("Instance", "resnet/main-0"), ("RouteTable", "routes")]))
        tag = {"Key": "managed-by", "Value": "trainyard"}

        def make() -> Undo:
            self.ec2.delete_tags(Resources=[thing], Tags=[tag])
            return lambda: self.ec2.create_tags(Resources=[thing], Tags=[tag])

        return BehindTheBack(f"a tag less on {thing}", make, ["tags.managed-by: trainyard, now nothing"])

    def peering(self, chance: random.Random) -> BehindTheBack:
        def make() -> Undo:
            theirs = self.ec2.create_vpc(CidrBlock="10.99.0.0/16")["Vpc"]["VpcId"]
            ours = self.up.id_of("Vpc", "vpc")
            made = self.ec2.create_vpc_peering_connection(VpcId=theirs, PeerVpcId=ours)
            identity = made["VpcPeeringConnection"]["VpcPeeringConnectionId"]

            def undo() -> None:
                self.ec2.delete_vpc_peering_connection(VpcPeeringConnectionId=identity)
                self.ec2.delete_vpc(VpcId=theirs)

            return undo

        return BehindTheBack(
            "a peering", make, ["1 difference", "of the stack's VPC with vpc-", "of the account 123456789012"]
        )
