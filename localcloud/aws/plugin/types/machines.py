# SPDX-License-Identifier: Apache-2.0
"""Machines: placement groups, launch templates, instances and reserved capacity."""

from collections.abc import Mapping

from localcloud.aws.plugin.rows import AwsRow, Change, Read, arn, by_field, read_by_id, tagged, unused_read

# The data of a launch template. A change of it creates a version.
TEMPLATE_DATA = (
    "blockDeviceMappings capacityReservationSpecification cpuOptions creditSpecification disableApiStop "
    "disableApiTermination ebsOptimized enclaveOptions hibernationOptions iamInstanceProfile imageId "
    "instanceInitiatedShutdownBehavior instanceMarketOptions instanceType kernelId keyName licenseSpecifications "
    "maintenanceOptions metadataOptions monitoring networkInterfaces networkPerformanceOptions placement "
    "privateDnsNameOptions ramDiskId securityGroupNames tagSpecifications userData vpcSecurityGroupIds"
)
_INSTANCE = {"InstanceId": "{id}"}
_METADATA = "metadataOptions"
# Fields of an instance for the parameters of the other reads.
_ASKED_BY = (
    "{volumes: BlockDeviceMappings[].Ebs.VolumeId, template: Tags[?Key=='aws:ec2launchtemplate:id'].Value | [0], "
    "version: Tags[?Key=='aws:ec2launchtemplate:version'].Value | [0], burstable: starts_with(InstanceType, 't')}"
)
_NO_TEMPLATE = "InvalidLaunchTemplateId.NotFound"

ROWS: Mapping[str, AwsRow] = {
    "aws:ec2/placementGroup:PlacementGroup": tagged(
        "placement-group",
        "name strategy partitionCount spreadLevel",
        "arn placementGroupId",
        create="CreatePlacementGroup",
        created="PlacementGroup",
        id="{name}",
        reads=(
            read_by_id(
                "DescribePlacementGroups",
                "GroupNames",
                "PlacementGroups[0]",
                missing=frozenset({"InvalidPlacementGroup.Unknown"}),
            ),
        ),
        delete="DeletePlacementGroup",
        delete_with={"GroupName": "{id}"},
        named="name",
        longest_name=255,
        renamed={"name": "GroupName"},
        model_paths={"arn": "GroupArn", "placementGroupId": "GroupId"},
        state="State",
        ready=frozenset({"available"}),
        gone=frozenset({"deleted"}),
        tagging=by_field("GroupId"),
        taken_codes=frozenset({"InvalidPlacementGroup.Duplicate"}),
        in_use_codes=frozenset({"InvalidPlacementGroup.InUse"}),
        behaviour="access.NamedResource",
    ),
    "aws:ec2/launchTemplate:LaunchTemplate": tagged(
        "launch-template",
        f"name namePrefix description defaultVersion updateDefaultVersion {TEMPLATE_DATA}",
        "latestVersion",
        create="CreateLaunchTemplate",
        created="LaunchTemplate",
        body="LaunchTemplateData",
        id="{LaunchTemplateId}",
        reads=(
            read_by_id("DescribeLaunchTemplates", "LaunchTemplateIds", "LaunchTemplates[0]"),
            Read(
                "DescribeLaunchTemplateVersions",
                {"LaunchTemplateId": "{id}", "Versions": ["$Latest"]},
                "LaunchTemplateVersions[].merge(LaunchTemplateData, {description: VersionDescription}) | [0]",
            ),
        ),
        delete="DeleteLaunchTemplate",
        delete_with={"LaunchTemplateId": "{id}"},
        named="name",
        longest_name=125,
        extra=frozenset({"defaultVersion", "updateDefaultVersion"}),
        renamed={
            "name": "LaunchTemplateName",
            "description": "VersionDescription",
            "vpcSecurityGroupIds": "SecurityGroupIds",
            "securityGroupNames": "SecurityGroups",
            "networkInterfaces.securityGroups": "Groups",
            "networkInterfaces.ipv4Addresses": "PrivateIpAddresses",
            "networkInterfaces.ipv4AddressCount": "SecondaryPrivateIpAddressCount",
            "hibernationOptions.configured": "Configured",
        },
        model_paths={"latestVersion": "LatestVersionNumber", "defaultVersion": "DefaultVersionNumber"},
        computed=arn("launch-template"),
        taken_codes=frozenset({"InvalidLaunchTemplateName.AlreadyExistsException"}),
        behaviour="machines.LaunchTemplateResource",
    ),
    "aws:ec2/instance:Instance": tagged(
        "instance",
        "ami instanceType launchTemplate subnetId vpcSecurityGroupIds securityGroups networkInterfaces privateIp "
        "associatePublicIpAddress keyName iamInstanceProfile userData userDataBase64 userDataReplaceOnChange "
        "availabilityZone placementGroup placementPartitionNumber tenancy hostId monitoring ebsOptimized "
        "metadataOptions instanceMarketOptions capacityReservationSpecification disableApiTermination disableApiStop "
        "instanceInitiatedShutdownBehavior sourceDestCheck rootBlockDevice ebsBlockDevices volumeTags forceDestroy "
        "cpuOptions creditSpecification enclaveOptions maintenanceOptions privateDnsNameOptions",
        "arn instanceState instanceLifecycle spotInstanceRequestId primaryNetworkInterfaceId privateDns publicDns "
        "publicIp",
        create="RunInstances",
        created="Instances[0]",
        fixed={"MinCount": 1, "MaxCount": 1},
        id="{InstanceId}",
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
            unused_read("DescribeLaunchTemplates", {"LaunchTemplateIds": ["{template}"]}, _NO_TEMPLATE, "template"),
            unused_read(
                "DescribeLaunchTemplateVersions",
                {"LaunchTemplateId": "{template}", "Versions": ["{version}"]},
                f"{_NO_TEMPLATE} InvalidLaunchTemplateId.VersionNotFound",
                "template",
            ),
            unused_read("DescribeInstanceCreditSpecifications", {"InstanceIds": ["{id}"]}, when="burstable"),
            unused_read(
                "DescribeSpotInstanceRequests",
                {"SpotInstanceRequestIds": ["{SpotInstanceRequestId}"]},
                "InvalidSpotInstanceRequestID.NotFound",
                "SpotInstanceRequestId",
            ),
        ),
        delete="TerminateInstances",
        delete_with={"InstanceIds": ["{id}"]},
        extra=frozenset(
            {
                "associatePublicIpAddress",
                "ebsBlockDevices",
                "forceDestroy",
                "rootBlockDevice",
                "userDataBase64",
                "userDataReplaceOnChange",
                "volumeTags",
            }
        ),
        changes=(
            Change(
                "ModifyInstanceAttribute",
                ("sourceDestCheck", "disableApiTermination", "disableApiStop"),
                _INSTANCE,
                value="Value",
            ),
            Change("ModifyInstanceAttribute", ("instanceInitiatedShutdownBehavior",), _INSTANCE, value="Value"),
            Change(
                "ModifyNetworkInterfaceAttribute",
                ("vpcSecurityGroupIds",),
                {"NetworkInterfaceId": "{primaryNetworkInterfaceId}"},
                names={"vpcSecurityGroupIds": "Groups"},
            ),
            Change("ModifyInstanceMetadataOptions", (_METADATA,), _INSTANCE),
            Change("MonitorInstances", ("monitoring",), {"InstanceIds": ["{id}"]}),
        ),
        inside={
            "availabilityZone": "Placement.AvailabilityZone",
            "hostId": "Placement.HostId",
            "iamInstanceProfile": "IamInstanceProfile.Name",
            "monitoring": "Monitoring.Enabled",
            "placementGroup": "Placement.GroupName",
            "placementPartitionNumber": "Placement.PartitionNumber",
            "tenancy": "Placement.Tenancy",
        },
        renamed={
            "ami": "ImageId",
            "privateIp": "PrivateIpAddress",
            "vpcSecurityGroupIds": "SecurityGroupIds",
            "launchTemplate.id": "LaunchTemplateId",
            "launchTemplate.name": "LaunchTemplateName",
            "networkInterfaces.securityGroups": "Groups",
        },
        model_paths={
            "availabilityZone": "Placement.AvailabilityZone",
            "hostId": "Placement.HostId",
            "instanceState": "State.Name",
            "monitoring": "Monitoring.State == 'enabled'",
            "placementGroup": "Placement.GroupName",
            "placementPartitionNumber": "Placement.PartitionNumber",
            "primaryNetworkInterfaceId": "NetworkInterfaces[0].NetworkInterfaceId",
            "privateDns": "PrivateDnsName",
            "publicDns": "PublicDnsName",
            "publicIp": "PublicIpAddress",
            "tenancy": "Placement.Tenancy",
            "vpcSecurityGroupIds": "SecurityGroups[].GroupId",
        },
        unset={"sourceDestCheck": True, "disableApiTermination": False, "disableApiStop": False, "monitoring": False},
        computed=arn("instance"),
        state="State.Name",
        state_reason="StateReason.Message",
        ready=frozenset({"running", "stopped", "stopping"}),
        failed=frozenset({"shutting-down"}),
        gone=frozenset({"terminated"}),
        behaviour="machines.InstanceResource",
    ),
    "aws:ec2/capacityReservation:CapacityReservation": tagged(
        "capacity-reservation",
        "availabilityZone instanceType instancePlatform instanceCount tenancy ebsOptimized ephemeralStorage endDate "
        "endDateType instanceMatchCriteria placementGroupArn outpostArn",
        "arn ownerId",
        create="CreateCapacityReservation",
        created="CapacityReservation",
        id="{CapacityReservationId}",
        reads=(read_by_id("DescribeCapacityReservations", "CapacityReservationIds", "CapacityReservations[0]"),),
        delete="CancelCapacityReservation",
        delete_with={"CapacityReservationId": "{id}"},
        changes=(
            Change(
                "ModifyCapacityReservation",
                ("instanceCount", "endDate", "endDateType"),
                {"CapacityReservationId": "{id}"},
                together=True,
            ),
        ),
        model_paths={"arn": "CapacityReservationArn", "instanceCount": "TotalInstanceCount"},
        unset={"endDateType": "unlimited"},
        state="State",
        ready=frozenset({"active", "scheduled"}),
        failed=frozenset({"failed", "unsupported"}),
        gone=frozenset({"cancelled", "expired"}),
    ),
}
