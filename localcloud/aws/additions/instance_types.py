# SPDX-License-Identifier: Apache-2.0
"""Adds instance types, images, their public parameters and quotas that moto lacks, from catalog/aws_machines.toml,
catalog/aws_accelerators.toml and catalog/aws_local.toml."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from catalog.aws import accelerators
from catalog.tables import table
from localcloud.aws.account import ACCOUNT
from localcloud.aws.additions.outside import Operations, attached_outside
from localcloud.aws.aws_errors import aws_refusal

_KINDS = ("region", "availability-zone", "availability-zone-id")
_PUBLISHED = datetime(2026, 11, 1)


def install_instance_types() -> None:
    """Adds the machines of catalog/aws_machines.toml that moto's list lacks, offers all of them in the zones of
    catalog/aws_local.toml, and adds their images with the public parameters that name them."""
    from moto.ec2.models import amis, instance_types
    from moto.ec2.models.availability_zones_and_regions import RegionsAndZonesBackend
    from moto.ssm.models import ParameterDict

    for name, like in table("aws_local")["like"].items():
        instance_types.INSTANCE_TYPES[name] = _listed_machine(name, instance_types.INSTANCE_TYPES[like])
        instance_types.InstanceTypeBackend.instance_types.append(instance_types.InstanceType(name))
    for region, zones in table("aws_local")["zones"].items():
        ids = {zone.name: zone.zone_id for zone in RegionsAndZonesBackend.zones[region]}
        named = ([region], zones, [str(ids[zone]) for zone in zones])
        for kind_of_place, places in zip(_KINDS, named, strict=True):
            offered = instance_types.INSTANCE_TYPE_OFFERINGS[kind_of_place][region]
            there = {(offering["InstanceType"], offering["Location"]) for offering in offered}
            offered.extend(
                {"InstanceType": name, "LocationType": kind_of_place, "Location": place}
                for name in table("aws_machines")["machines"] for place in places if (name, place) not in there
            )  # fmt: skip
    amis.AmiBackend._load_amis = _load_images
    _add_image_parameters(ParameterDict)


def _listed_machine(name: str, like: Mapping[str, Any]) -> dict[str, Any]:
    """A machine as AWS's list would have it: as another one, but for memory, disks, GPUs and how it is bought."""
    machine = table("aws_machines")["machines"][name]
    listed: dict[str, Any] = copy.deepcopy(dict(like))
    listed.pop("GpuInfo", None)
    listed |= {
        "InstanceType": name, "MemoryInfo": {"SizeInMiB": machine["memory_gb"] * 1024},
        "SupportedUsageClasses": ["on-demand", "spot"],
    }  # fmt: skip
    disks = [{"Count": machine["disks"], "SizeInGB": machine["disk_gb"], "Type": "ssd"}]
    listed["InstanceStorageInfo"] |= {"Disks": disks, "TotalSizeInGB": machine["disks"] * machine["disk_gb"]}
    return listed


class Offerings(Operations):
    """Operations of EC2."""

    def describe_instance_type_offerings(self) -> Any:
        answer = self._by_moto("describe_instance_type_offerings")
        answer.result["InstanceTypeOfferings"] = _without_removed(answer.result["InstanceTypeOfferings"])
        return answer


def is_offered(backend: Any, kind: str, zone: str) -> bool:
    filters = {"instance-type": [kind], "location": [zone]}
    return bool(_without_removed(backend.describe_instance_type_offerings("availability-zone", filters)))


def _without_removed(offerings: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The offerings without instance types that a fault removes by a limit of 0."""
    named = {offering["InstanceType"] for offering in offerings} & table("aws_machines")["machines"].keys()
    gone = {name for name in named if attached_outside().limit(name) == 0}
    return [offering for offering in offerings if offering["InstanceType"] not in gone]


def _load_images(backend: Any) -> None:
    from moto.ec2.models.amis import Ami

    if backend.region_name not in table("aws_local")["zones"]:
        return
    images = {row["id"]: row["name"] for row in table("aws_local")["image"]}
    for parameter in _image_parameters():
        images |= {_newest_image(parameter, newer): "-".join(parameter.split("/")[3:-2]) for newer in (0, 1)}
    for identifier, name in images.items():
        backend.amis[identifier] = Ami(
            backend, identifier, name=name, description=name, public=True, architecture="x86_64",
            virtualization_type="hvm", hypervisor="xen", root_device_type="ebs", root_device_name="/dev/sda1",
            owner_id=ACCOUNT, region_name=f"{backend.region_name}a",
        )  # fmt: skip


def _image_parameters() -> set[str]:
    """The public parameters of AWS that name the newest image for an accelerator."""
    return {accelerator.ami for accelerator in accelerators().values() if accelerator.ami}


def _newest_image(parameter: str, newer: int) -> str:
    """The id of the image that a parameter names. `newer`: 1 after AWS has published another one."""
    return f"ami-{hashlib.sha256(f'{parameter} {newer}'.encode()).hexdigest()[:17]}"


def _add_image_parameters(kept_by_moto: Any) -> None:
    """Adds the parameters where moto looks for a key. A fault that limits one to 1 has it name a newer image."""
    from moto.ssm.models import Parameter

    load_by_moto = kept_by_moto._check_loading_status

    def load(parameters: Any, key: str) -> None:
        load_by_moto(parameters, key)
        if parameters.region_name not in table("aws_local")["zones"] or not str(key).startswith("/aws/"):
            return
        for name in (name for name in _image_parameters() if name.startswith(key)):
            newer = min(attached_outside().limit(name) or 0, 1)
            image, kept = _newest_image(name, newer), dict.get(parameters, name)
            if kept is None or kept[-1].value != image:
                dict.__setitem__(parameters, name, [Parameter(
                    account_id=parameters.account_id, name=name, value=image, parameter_type="String",
                    description=None, allowed_pattern=None, keyid=None, last_modified_date=_PUBLISHED,
                    version=1 + newer, data_type="aws:ec2:image",
                )])  # fmt: skip

    kept_by_moto._check_loading_status = load


class Quotas(Operations):
    """Operations of Service Quotas. moto has only the quotas of VPCs."""

    def list_service_quotas(self) -> str:
        service = str(json.loads(self.body).get("ServiceCode"))
        quotas = all_quotas() if service == "ec2" else self.backend.list_aws_default_service_quotas(service)
        return json.dumps({"Quotas": quotas})

    list_aws_default_service_quotas = list_service_quotas

    def get_service_quota(self) -> str:
        for quota in json.loads(self.list_service_quotas())["Quotas"]:
            if quota["QuotaCode"] == json.loads(self.body).get("QuotaCode"):
                return json.dumps({"Quota": quota})
        raise aws_refusal("quota")


def all_quotas() -> list[dict[str, Any]]:
    """The quotas of EC2, with values that faults may set. Families may share one."""
    names = {}
    for family, quota in table("aws_machines")["quotas"].items():
        names[quota["on_demand"]] = f"Running On-Demand {quota['words']}"
        if "spot" in quota:
            names[quota["spot"]] = f"All {family} Spot Instance Requests"
    return [
        {
            "ServiceCode": "ec2", "ServiceName": "Amazon Elastic Compute Cloud (Amazon EC2)", "QuotaCode": code,
            "QuotaName": name, "Value": float(quota_value(code)), "Unit": "None", "Adjustable": True,
            "GlobalQuota": False,
        }
        for code, name in names.items()
    ]  # fmt: skip


def quota_value(code: str) -> int:
    value = attached_outside().limit(code)
    return int(table("aws_local")["quota_vcpus"]) if value is None else value
