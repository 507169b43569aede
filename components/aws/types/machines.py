# SPDX-License-Identifier: Apache-2.0
"""Machines: placement groups, launch templates, instances, reserved capacity and disks."""

from components.aws.types.aws_resource_type import (
    Change,
    Creation,
    Deletion,
    LiveState,
    Read,
    RealProvider,
    ec2_arn,
    ec2_type,
    read_by_id,
    tagging_by_field,
    unused_read,
)
from components.values.resource_types import LostWith, ResourceType, StandingCost, inputs_in_reviews

# The data of a launch template. A change of it creates a version.
TEMPLATE_DATA = (
    "blockDeviceMappings capacityReservationSpecification cpuOptions creditSpecification disableApiStop "
    "disableApiTermination ebsOptimized enclaveOptions hibernationOptions iamInstanceProfile imageId "
    "instanceInitiatedShutdownBehavior instanceMarketOptions instanceType kernelId keyName licenseSpecifications "
    "maintenanceOptions metadataOptions monitoring networkInterfaces networkPerformanceOptions placement "
    "privateDnsNameOptions ramDiskId securityGroupNames tagSpecifications userData vpcSecurityGroupIds"
)
_INSTANCE = {"InstanceId": "{id}"}
# Fields of an instance for the parameters of the other reads.
_ASKED_BY = (
    "{volumes: BlockDeviceMappings[].Ebs.VolumeId, template: Tags[?Key=='aws:ec2launchtemplate:id'].Value | [0], "
    "version: Tags[?Key=='aws:ec2launchtemplate:version'].Value | [0], burstable: starts_with(InstanceType, 't')}"
)
_NO_TEMPLATE = "InvalidLaunchTemplateId.NotFound"
# Tags that EC2 sets say which template and version it is from.
_OF_TEMPLATE = {"when": "template", "only_for": "launchTemplate"}


MACHINES_TYPES = (
    ec2_type(
        "aws:ec2/placementGroup:PlacementGroup", "placement-group", "name strategy partitionCount spreadLevel",
        "arn placementGroupId", named="name", longest_name=255, renamed={"name": "GroupName"},
        model_paths={"arn": "GroupArn", "placementGroupId": "GroupId"},
        replaced_by="name partitionCount spreadLevel strategy", computed="partitionCount spreadLevel",
        create=Creation("CreatePlacementGroup", "{name}", "PlacementGroup"),
        reads=(
            read_by_id(
                "DescribePlacementGroups", "GroupNames", "PlacementGroups[0]", missing="InvalidPlacementGroup.Unknown",
            ),
        ),
        delete=Deletion("DeletePlacementGroup", {"GroupName": "{id}"}), tagging=tagging_by_field("GroupId"),
        state="State", ready="available", gone="deleted", taken_codes="InvalidPlacementGroup.Duplicate",
        in_use_codes="InvalidPlacementGroup.InUse", behaviour="access.NamedResource",
        provider=RealProvider("ec2/ec2_placement_group.go"),
        in_reviews=inputs_in_reviews(placed="name partitionCount spreadLevel strategy"),
        harmless="it only says how close machines stand",
    ),
    ec2_type(
        "aws:ec2/launchTemplate:LaunchTemplate", "launch-template",
        f"name namePrefix description defaultVersion updateDefaultVersion {TEMPLATE_DATA}", "latestVersion",
        extra="defaultVersion updateDefaultVersion", named="name", longest_name=125,
        renamed={
            "name": "LaunchTemplateName", "description": "VersionDescription",
            "vpcSecurityGroupIds": "SecurityGroupIds", "securityGroupNames": "SecurityGroups",
            "networkInterfaces.securityGroups": "Groups", "networkInterfaces.ipv4Addresses": "PrivateIpAddresses",
            "networkInterfaces.ipv4AddressCount": "SecondaryPrivateIpAddressCount",
            "hibernationOptions.configured": "Configured",
        },
        model_paths={"latestVersion": "LatestVersionNumber", "defaultVersion": "DefaultVersionNumber"},
        computed_outputs=ec2_arn("launch-template"),
        replaced_by="name namePrefix",
        computed="defaultVersion metadataOptions.httpEndpoint metadataOptions.httpPutResponseHopLimit",
        unordered="networkInterfaces.securityGroups securityGroupNames vpcSecurityGroupIds",
        create=Creation("CreateLaunchTemplate", "{LaunchTemplateId}", "LaunchTemplate", body="LaunchTemplateData"),
        reads=(
            read_by_id("DescribeLaunchTemplates", "LaunchTemplateIds", "LaunchTemplates[0]"),
            Read(
                "DescribeLaunchTemplateVersions", {"LaunchTemplateId": "{id}", "Versions": ["$Latest"]},
                "LaunchTemplateVersions[].merge(LaunchTemplateData, {description: VersionDescription}) | [0]",
            ),
        ),
        delete=Deletion("DeleteLaunchTemplate", {"LaunchTemplateId": "{id}"}),
        taken_codes="InvalidLaunchTemplateName.AlreadyExistsException", behaviour="machines.LaunchTemplateResource",
        # Whatever it holds makes another version.
        provider=RealProvider(
            "ec2/ec2_launch_template.go",
            calls={
                "data": "CreateLaunchTemplateVersion", "updateDefaultVersion": "ModifyLaunchTemplate",
                "defaultVersion": "ModifyLaunchTemplate",
            },
            unreached={"credits of burstable machines": "DescribeInstanceTypes"},
        ),
        lost=LostWith(
            "another launch template than {name} replaces every machine of the job, with what lies on their disks",
            "let its runs end first, or leave what its machines are made with", ("name",),
        ),
        live=LiveState(filter="launch-template-name"), part="template",
        public_by="networkInterfaces.associatePublicIpAddress",
        in_reviews=inputs_in_reviews(
            planned=(
                "blockDeviceMappings capacityReservationSpecification iamInstanceProfile imageId "
                "instanceInitiatedShutdownBehavior instanceMarketOptions instanceType metadataOptions monitoring name "
                "namePrefix networkInterfaces placement tagSpecifications userData"
            ),
        ),
    ),
    ec2_type(
        "aws:ec2/instance:Instance", "instance",
        "ami instanceType launchTemplate subnetId vpcSecurityGroupIds securityGroups networkInterfaces privateIp "
        "associatePublicIpAddress keyName iamInstanceProfile userData userDataBase64 userDataReplaceOnChange "
        "availabilityZone placementGroup placementPartitionNumber tenancy hostId monitoring ebsOptimized "
        "metadataOptions instanceMarketOptions capacityReservationSpecification disableApiTermination disableApiStop "
        "instanceInitiatedShutdownBehavior sourceDestCheck rootBlockDevice ebsBlockDevices volumeTags forceDestroy "
        "cpuOptions creditSpecification enclaveOptions maintenanceOptions privateDnsNameOptions",
        "arn instanceState instanceLifecycle spotInstanceRequestId primaryNetworkInterfaceId privateDns publicDns "
        "publicIp",
        part="machine", public_by="associatePublicIpAddress",
        extra="associatePublicIpAddress ebsBlockDevices forceDestroy rootBlockDevice userDataBase64 "
        "userDataReplaceOnChange volumeTags",
        renamed={
            "ami": "ImageId", "privateIp": "PrivateIpAddress", "vpcSecurityGroupIds": "SecurityGroupIds",
            "launchTemplate.id": "LaunchTemplateId", "launchTemplate.name": "LaunchTemplateName",
            "networkInterfaces.securityGroups": "Groups",
        },
        inside={
            "availabilityZone": "Placement.AvailabilityZone", "hostId": "Placement.HostId",
            "iamInstanceProfile": "IamInstanceProfile.Name", "monitoring": "Monitoring.Enabled",
            "placementGroup": "Placement.GroupName", "placementPartitionNumber": "Placement.PartitionNumber",
            "tenancy": "Placement.Tenancy",
        },
        model_paths={
            "availabilityZone": "Placement.AvailabilityZone", "hostId": "Placement.HostId",
            "instanceState": "State.Name", "monitoring": "Monitoring.State == 'enabled'",
            "placementGroup": "Placement.GroupName", "placementPartitionNumber": "Placement.PartitionNumber",
            "primaryNetworkInterfaceId": "NetworkInterfaces[0].NetworkInterfaceId", "privateDns": "PrivateDnsName",
            "publicDns": "PublicDnsName", "publicIp": "PublicIpAddress", "tenancy": "Placement.Tenancy",
            "vpcSecurityGroupIds": "SecurityGroups[].GroupId",
        },
        unset={"sourceDestCheck": True, "disableApiTermination": False, "disableApiStop": False, "monitoring": False},
        computed_outputs=ec2_arn("instance"),
        replaced_by="ami associatePublicIpAddress availabilityZone cpuOptions ebsBlockDevices enclaveOptions hostId "
        "instanceMarketOptions keyName launchTemplate networkInterfaces placementGroup placementPartitionNumber "
        "privateIp rootBlockDevice.encrypted rootBlockDevice.kmsKeyId securityGroups subnetId tenancy",
        computed="ami associatePublicIpAddress availabilityZone capacityReservationSpecification cpuOptions "
        "disableApiStop disableApiTermination ebsBlockDevices ebsOptimized enclaveOptions hostId iamInstanceProfile "
        "instanceInitiatedShutdownBehavior instanceMarketOptions instanceType keyName maintenanceOptions "
        "metadataOptions monitoring networkInterfaces placementGroup placementPartitionNumber privateDnsNameOptions "
        "privateIp rootBlockDevice securityGroups subnetId tenancy userData userDataBase64 vpcSecurityGroupIds",
        unordered="ebsBlockDevices networkInterfaces securityGroups vpcSecurityGroupIds",
        create=Creation("RunInstances", "{InstanceId}", "Instances[0]", fixed={"MinCount": 1, "MaxCount": 1}),
        reads=(
            read_by_id("DescribeInstances", "InstanceIds", f"Reservations[].Instances[].merge(@, {_ASKED_BY}) | [0]"),
            unused_read("DescribeInstanceTypes", {"InstanceTypes": ["{InstanceType}"]}),
            *(
                unused_read("DescribeInstanceAttribute", {**_INSTANCE, "Attribute": name})
                for name in ("instanceInitiatedShutdownBehavior", "disableApiTermination", "disableApiStop", "userData")
            ),
            unused_read("DescribeVpcs", {"VpcIds": ["{VpcId}"]}, when="VpcId"),
            unused_read("DescribeVolumes", {"VolumeIds": "{volumes}"}, when="volumes"),
            unused_read("DescribeTags", {"Filters": [{"Name": "resource-id", "Values": ["{id}"]}]}),
            unused_read(
                "DescribeLaunchTemplates", {"LaunchTemplateIds": ["{template}"]}, _NO_TEMPLATE, **_OF_TEMPLATE,
            ),
            unused_read(
                "DescribeLaunchTemplateVersions", {"LaunchTemplateId": "{template}", "Versions": ["{version}"]},
                f"{_NO_TEMPLATE} InvalidLaunchTemplateId.VersionNotFound", **_OF_TEMPLATE,
            ),
            unused_read(
                "DescribeInstanceCreditSpecifications", {"InstanceIds": ["{id}"]}, when="burstable",
                only_for="burstable",
            ),
            unused_read(
                "DescribeSpotInstanceRequests", {"SpotInstanceRequestIds": ["{SpotInstanceRequestId}"]},
                "InvalidSpotInstanceRequestID.NotFound", when="SpotInstanceRequestId", only_for="spot",
            ),
        ),
        changes=(
            Change(
                "ModifyInstanceAttribute", ("sourceDestCheck", "disableApiTermination", "disableApiStop"), _INSTANCE,
                value="Value",
            ),
            Change("ModifyInstanceAttribute", ("instanceInitiatedShutdownBehavior",), _INSTANCE, value="Value"),
            Change(
                "ModifyNetworkInterfaceAttribute", ("vpcSecurityGroupIds",),
                {"NetworkInterfaceId": "{primaryNetworkInterfaceId}"}, names={"vpcSecurityGroupIds": "Groups"},
            ),
            Change("ModifyInstanceMetadataOptions", ("metadataOptions",), _INSTANCE),
            Change("MonitorInstances", ("monitoring",), {"InstanceIds": ["{id}"]}),
        ),
        delete=Deletion("TerminateInstances", {"InstanceIds": ["{id}"]}),
        state="State.Name", state_reason="StateReason.Message", ready="running stopped stopping",
        failed="shutting-down", gone="terminated", behaviour="machines.InstanceResource",
        # The protection from termination is taken away first, whether it is there or not.
        provider=RealProvider(
            "ec2/ec2_instance.go",
            calls={
                "delete": "ModifyInstanceAttribute", "volumeTags": "DescribeVolumes CreateTags DeleteTags",
                "rootBlockDevice": "DescribeImages ModifyVolume DescribeVolumesModifications ModifyInstanceAttribute",
                "ebsBlockDevices": "DescribeImages",
                "iamInstanceProfile": "DescribeIamInstanceProfileAssociations AssociateIamInstanceProfile "
                "ReplaceIamInstanceProfileAssociation DisassociateIamInstanceProfile",
                "instanceType": "StopInstances ModifyInstanceAttribute StartInstances",
                "userData": "StopInstances ModifyInstanceAttribute StartInstances",
                "userDataBase64": "StopInstances ModifyInstanceAttribute StartInstances",
                "maintenanceOptions": "ModifyInstanceMaintenanceOptions", "monitoring": "UnmonitorInstances",
                "creditSpecification": "ModifyInstanceCreditSpecification",
                "capacityReservationSpecification": "ModifyInstanceCapacityReservationAttributes",
                "privateDnsNameOptions": "ModifyPrivateDnsNameOptions", "spot": "CancelSpotInstanceRequests",
            },
            actions={
                "launchTemplate": "iam:PassRole", "iamInstanceProfile": "iam:PassRole",
                # EC2 makes the role in the caller's name.
                "spot": "iam:CreateServiceLinkedRole",
            },
            unreached={
                "further addresses and IPv6": "AssignPrivateIpAddresses UnassignPrivateIpAddresses "
                "AssignIpv6Addresses UnassignIpv6Addresses",
                "Windows": "GetPasswordData",
            },
        ),
        lost=LostWith(
            "the machine {name} goes with its disks: checkpoints and images that lie only there, and the run that "
            "trains on it ends as FAILED",
            "let its runs end first. Raising their `attempt` starts them again on the new machines; what is in the "
            "bucket stays",
        ),
        arns=ec2_arn("instance", "ec2", "ssm"),
        in_reviews=inputs_in_reviews(planned="launchTemplate"),
    ),
)  # fmt: skip
# What machines are made of, which stands without them.
CAPACITY_TYPES = (
    ec2_type(
        "aws:ec2/capacityReservation:CapacityReservation", "capacity-reservation",
        "availabilityZone instanceType instancePlatform instanceCount tenancy ebsOptimized ephemeralStorage endDate "
        "endDateType instanceMatchCriteria placementGroupArn outpostArn",
        "arn ownerId", model_paths={"arn": "CapacityReservationArn", "instanceCount": "TotalInstanceCount"},
        unset={"endDateType": "unlimited"},
        replaced_by="availabilityZone ebsOptimized ephemeralStorage instanceMatchCriteria instancePlatform "
        "instanceType outpostArn placementGroupArn tenancy",
        create=Creation("CreateCapacityReservation", "{CapacityReservationId}", "CapacityReservation"),
        reads=(read_by_id("DescribeCapacityReservations", "CapacityReservationIds", "CapacityReservations[0]"),),
        changes=(
            Change(
                "ModifyCapacityReservation", ("instanceCount", "endDate", "endDateType"),
                {"CapacityReservationId": "{id}"}, together=True,
            ),
        ),
        delete=Deletion("CancelCapacityReservation", {"CapacityReservationId": "{id}"}),
        state="State", ready="active scheduled", failed="failed unsupported", gone="cancelled expired",
        provider=RealProvider("ec2/ec2_capacity_reservation.go"),
        standing=StandingCost("capacity reservation"),
    ),
    ResourceType(token="aws:ebs/volume:Volume", tags="tags"),
)  # fmt: skip
