# SPDX-License-Identifier: Apache-2.0
"""Adds instance types, images and quotas that moto lacks, from catalog/aws_local.toml."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from typing import Any

from catalog.tables import table
from localcloud.aws.account import ACCOUNT
from localcloud.aws.additions.outside import Operations, attached_outside

_KINDS = ("region", "availability-zone", "availability-zone-id")


def install_instance_types() -> None:
    from moto.ec2.models import amis, instance_types
    from moto.ec2.models.availability_zones_and_regions import RegionsAndZonesBackend

    for name, row in _instance_type_rows().items():
        kind: dict[str, Any] = copy.deepcopy(dict(instance_types.INSTANCE_TYPES[row["like"]]))
        kind.pop("GpuInfo", None)
        kind["InstanceType"] = name
        kind["MemoryInfo"] = {"SizeInMiB": row["memory_mib"]}
        disks = [{"Count": row["disks"], "SizeInGB": row["disk_gb"], "Type": "ssd"}]
        kind["InstanceStorageInfo"] |= {"Disks": disks, "TotalSizeInGB": row["disks"] * row["disk_gb"]}
        network = kind["NetworkInfo"]
        network["NetworkCards"] = network["NetworkCards"][: row["network_cards"]]
        network["MaximumNetworkCards"] = row["network_cards"]
        network["MaximumNetworkInterfaces"] = row["network_cards"] * row["interfaces_per_card"]
        network["EfaInfo"] = {"MaximumEfaInterfaces": row["efa_interfaces"]}
        kind["SupportedUsageClasses"] = ["on-demand", "spot"]
        instance_types.INSTANCE_TYPES[name] = kind
        instance_types.InstanceTypeBackend.instance_types.append(instance_types.InstanceType(name))
        for region, zones in table("aws_local")["zones"].items():
            ids = {zone.name: zone.zone_id for zone in RegionsAndZonesBackend.zones[region]}
            named = ([region], zones, [str(ids[zone]) for zone in zones])
            for kind_of_place, places in zip(_KINDS, named, strict=True):
                instance_types.INSTANCE_TYPE_OFFERINGS[kind_of_place][region].extend(
                    {"InstanceType": name, "LocationType": kind_of_place, "Location": place} for place in places
                )
    amis.AmiBackend._load_amis = _load_images


class Offerings(Operations):
    """Operations of EC2."""

    def describe_instance_type_offerings(self) -> Any:
        answer = self._by_moto("describe_instance_type_offerings")
        answer.result["InstanceTypeOfferings"] = _without_removed(answer.result["InstanceTypeOfferings"])
        return answer


def is_offered(backend: Any, kind: str, zone: str) -> bool:
    filters = {"instance-type": [kind], "location": [zone]}
    return bool(_without_removed(backend.describe_instance_type_offerings("availability-zone", filters)))


def _without_removed(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows without instance types that a fault removes by a limit of 0."""
    gone = {name for name in _instance_type_rows() if attached_outside().limit(name) == 0}
    return [row for row in rows if row["InstanceType"] not in gone]


def _instance_type_rows() -> Mapping[str, Mapping[str, Any]]:
    rows: Mapping[str, Mapping[str, Any]] = table("aws_local")["instance_type"]
    return rows


def _load_images(backend: Any) -> None:
    from moto.ec2.models.amis import Ami

    if backend.region_name not in table("aws_local")["zones"]:
        return
    for row in table("aws_local")["image"]:
        backend.amis[row["id"]] = Ami(
            backend, row["id"], name=row["name"], description=row["name"], public=True, architecture="x86_64",
            virtualization_type="hvm", hypervisor="xen", root_device_type="ebs", root_device_name="/dev/sda1",
            owner_id=ACCOUNT, region_name=f"{backend.region_name}a",
        )  # fmt: skip


class Quotas(Operations):
    """Operations of Service Quotas. moto has only the quotas of VPCs."""

    def list_service_quotas(self) -> str:
        service = str(json.loads(self.body).get("ServiceCode"))
        quotas = all_quotas() if service == "ec2" else self.backend.list_aws_default_service_quotas(service)
        return json.dumps({"Quotas": quotas})

    list_aws_default_service_quotas = list_service_quotas

    def get_service_quota(self) -> str:
        from moto.servicequotas.exceptions import NoSuchResource

        wanted = json.loads(self.body)
        service, code = wanted.get("ServiceCode"), wanted.get("QuotaCode")
        quotas = all_quotas() if service == "ec2" else self.backend.list_aws_default_service_quotas(service)
        for quota in quotas:
            if quota["QuotaCode"] == code:
                return json.dumps({"Quota": quota})
        raise NoSuchResource


def all_quotas() -> list[dict[str, Any]]:
    """The quotas of EC2, with values that faults may set."""
    return [
        {
            "ServiceCode": "ec2", "ServiceName": "Amazon Elastic Compute Cloud (Amazon EC2)", "QuotaCode": row["code"],
            "QuotaName": row["name"], "Value": float(quota_value(row["code"])), "Unit": "None", "Adjustable": True,
            "GlobalQuota": False,
        }
        for row in table("aws_local")["quota"]
    ]  # fmt: skip


def quota_value(code: str) -> int:
    value = attached_outside().limit(code)
    row = next(row for row in table("aws_local")["quota"] if row["code"] == code)
    return int(row["value"]) if value is None else value
