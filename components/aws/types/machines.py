# SPDX-License-Identifier: Apache-2.0
"""Machines, their templates, disks and capacity."""

from components.values.resource_types import LostWith, ResourceType, input_names

MACHINES_TYPES = (
    ResourceType(
        token="aws:ec2/placementGroup:PlacementGroup",
        tags="tags",
        replaced_by=input_names("name partitionCount spreadLevel strategy"),
        computed=input_names("partitionCount spreadLevel"),
    ),
    ResourceType(
        token="aws:ec2/launchTemplate:LaunchTemplate",
        tags="tags",
        replaced_by=input_names("name namePrefix"),
        computed=input_names("defaultVersion metadataOptions.httpEndpoint metadataOptions.httpPutResponseHopLimit"),
        unordered=input_names("networkInterfaces.securityGroups securityGroupNames vpcSecurityGroupIds"),
        lost=LostWith(
            "another launch template than {name} replaces every machine of the job, with what lies on their disks",
            "let its runs end first, or leave what its machines are made with",
            ("name",),
        ),
    ),
    ResourceType(
        token="aws:ec2/instance:Instance",
        tags="tags",
        replaced_by=input_names(
            "ami associatePublicIpAddress availabilityZone cpuOptions ebsBlockDevices enclaveOptions hostId "
            "instanceMarketOptions keyName launchTemplate networkInterfaces placementGroup "
            "placementPartitionNumber privateIp rootBlockDevice.encrypted rootBlockDevice.kmsKeyId securityGroups "
            "subnetId tenancy"
        ),
        computed=input_names(
            "ami associatePublicIpAddress availabilityZone capacityReservationSpecification cpuOptions "
            "disableApiStop disableApiTermination ebsBlockDevices ebsOptimized enclaveOptions hostId "
            "iamInstanceProfile instanceInitiatedShutdownBehavior instanceMarketOptions instanceType keyName "
            "maintenanceOptions metadataOptions monitoring networkInterfaces placementGroup "
            "placementPartitionNumber privateDnsNameOptions privateIp rootBlockDevice securityGroups subnetId "
            "tenancy userData userDataBase64 vpcSecurityGroupIds"
        ),
        unordered=input_names("ebsBlockDevices networkInterfaces securityGroups vpcSecurityGroupIds"),
        lost=LostWith(
            "the machine {name} goes with its disks: checkpoints and images that lie only there, and the run "
            "that trains on it ends as FAILED",
            "let its runs end first. Raising their `attempt` starts them again on the new machines; what is in "
            "the bucket stays",
        ),
    ),
    ResourceType(
        token="aws:ec2/capacityReservation:CapacityReservation",
        tags="tags",
        replaced_by=input_names(
            "availabilityZone ebsOptimized ephemeralStorage instanceMatchCriteria instancePlatform instanceType "
            "outpostArn placementGroupArn tenancy"
        ),
    ),
    ResourceType(
        token="aws:ebs/volume:Volume",
        tags="tags",
    ),
)
