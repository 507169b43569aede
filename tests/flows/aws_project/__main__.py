# SPDX-License-Identifier: Apache-2.0
"""A small cluster, written with pulumi_aws as people write it. `settings.json` has what the test changes."""

import json
from pathlib import Path

import pulumi
import pulumi_aws as aws

SETTINGS = json.loads(Path("settings.json").read_text())
TRUST = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"}],
}

zones = aws.ec2.get_instance_type_offerings(
    location_type="availability-zone", filters=[{"name": "instance-type", "values": ["dl1.24xlarge"]}]
)
image = aws.ec2.get_ami(owners=["self"], most_recent=True)

vpc = aws.ec2.Vpc("net", cidr_block="10.0.0.0/16", enable_dns_hostnames=True, tags={"Name": "net"})
gateway = aws.ec2.InternetGateway("out", vpc_id=vpc.id)
table = aws.ec2.RouteTable("routes", vpc_id=vpc.id)
aws.ec2.Route("default", route_table_id=table.id, destination_cidr_block="0.0.0.0/0", gateway_id=gateway.id)
subnet = aws.ec2.Subnet(
    "nodes", vpc_id=vpc.id, cidr_block="10.0.1.0/24", availability_zone=sorted(zones.locations)[0],
    map_public_ip_on_launch=True,
)  # fmt: skip
aws.ec2.RouteTableAssociation("nodes", route_table_id=table.id, subnet_id=subnet.id)
aws.ec2.VpcEndpoint(
    "s3", vpc_id=vpc.id, service_name=f"com.amazonaws.{aws.get_region().region}.s3", route_table_ids=[table.id]
)
group = aws.ec2.SecurityGroup("nodes", vpc_id=vpc.id, description="the nodes")
for kind in (aws.vpc.SecurityGroupIngressRule, aws.vpc.SecurityGroupEgressRule):
    kind("itself", security_group_id=group.id, referenced_security_group_id=group.id, ip_protocol="-1")
aws.vpc.SecurityGroupIngressRule(
    "ssh", security_group_id=group.id, cidr_ipv4="10.0.0.0/8", ip_protocol="tcp", from_port=SETTINGS["port"],
    to_port=SETTINGS["port"],
)  # fmt: skip

bucket = aws.s3.Bucket("data", force_destroy=True, tags={"team": "vision"})
aws.s3.BucketPublicAccessBlock(
    "data", bucket=bucket.id, block_public_acls=True, block_public_policy=True, ignore_public_acls=True,
    restrict_public_buckets=True,
)  # fmt: skip
# Its name is its own, so it goes before the new one is made, and what is set for it goes with it.
named = aws.s3.Bucket(
    "named", bucket="vision-named", force_destroy=True, opts=pulumi.ResourceOptions(delete_before_replace=True)
)
aws.s3.BucketVersioning("named", bucket=named.id, versioning_configuration={"status": "Enabled"})
aws.s3.BucketObjectv2(
    "code", bucket=bucket.id, key="code/train.py", source=pulumi.FileAsset("train.py"),
    source_hash=SETTINGS["digest"],
)  # fmt: skip
logs = aws.cloudwatch.LogGroup("logs", retention_in_days=SETTINGS["days"])
repository = aws.ecr.Repository("images", force_delete=True)
role = aws.iam.Role("nodes", assume_role_policy=json.dumps(TRUST))
may = {"Effect": "Allow", "Action": "s3:GetObject", "Resource": pulumi.Output.format("{}/*", bucket.arn)}
policy = pulumi.Output.json_dumps({"Version": "2012-10-17", "Statement": [may]})
aws.iam.RolePolicy("nodes", role=role.id, policy=policy)
profile = aws.iam.InstanceProfile("nodes", role=role.name)
secret = aws.secretsmanager.Secret("key", recovery_window_in_days=0)
aws.secretsmanager.SecretVersion("key", secret_id=secret.id, secret_string=pulumi.Output.secret("hush-hush-hush"))
close = aws.ec2.PlacementGroup("close", strategy="cluster")
template = aws.ec2.LaunchTemplate(
    "nodes", image_id=image.id, instance_type="dl1.24xlarge", update_default_version=True,
    iam_instance_profile={"arn": profile.arn}, placement={"group_name": close.name},
    metadata_options={"http_tokens": "required", "http_endpoint": "enabled"}, user_data=SETTINGS["userData"],
    network_interfaces=[{
        "device_index": 0, "subnet_id": subnet.id, "security_groups": [group.id], "interface_type": "efa",
        "delete_on_termination": "true",
    }],
)  # fmt: skip
for name in SETTINGS["nodes"]:
    node = aws.ec2.Instance(
        name, launch_template={"id": template.id, "version": "$Latest"}, tags={"Name": name},
        volume_tags={"Name": name},
    )  # fmt: skip
    pulumi.export(name, node.private_ip)
pulumi.export("account", aws.get_caller_identity().account_id)
pulumi.export("bucket", bucket.id)
pulumi.export("version", template.latest_version)
