# SPDX-License-Identifier: Apache-2.0
"""OCI's responses to a program, as far as they can be known from the stack file. Other values are marked as unknown."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from components.oci.plan import TAKEN
from components.oci.types import SERVED_TYPES
from components.platform.review import OfflineCloud, OfflineStack, unknown_value

SERVICES = "All Services In Oracle Services Network"
_Answer = Callable[[Mapping[str, Any], OfflineStack], Mapping[str, Any]]


class OciOffline(OfflineCloud):
    def prepare(self) -> None:
        import components.oci.resources.deploy  # noqa: F401
        from components.oci.resources.context import make_oci_sdk_lazy

        make_oci_sdk_lazy()

    def identify(self, token: str, name: str, inputs: Mapping[str, Any]) -> str:
        row, kind = SERVED_TYPES.get(token), token.rpartition(":")[2]
        if kind == "Bucket":
            return f"n/{inputs['namespace']}/b/{inputs['name']}"
        return f"ocid1.{row.ocid_kind if row else kind.lower()}.oc1..{name}"

    def answer(self, function: str, arguments: Mapping[str, Any], stack: OfflineStack) -> Mapping[str, Any]:
        if function in _ANSWERS:
            return _ANSWERS[function](arguments, stack)
        return super().answer(function, arguments, stack)

    def borrowed(self) -> tuple[str, ...]:
        return tuple(output for outputs in TAKEN.values() for output in outputs)


def _assumed_resource(arguments: Mapping[str, Any], stack: OfflineStack) -> Mapping[str, Any]:
    """Resources that the file names are assumed to exist. For others, this is unknown."""
    if not stack.texts() & {str(value) for value in arguments.values()}:
        raise LookupError("whether it exists cannot be known without a cloud")
    return dict(arguments)


def _assumed_list(plural: str) -> _Answer:
    def answer(arguments: Mapping[str, Any], stack: OfflineStack) -> Mapping[str, Any]:
        if "vcnId" in arguments:
            raise LookupError("other contents of a network cannot be known without a cloud")
        rows = [
            {"id": unknown_value(f"OCID of {name}"), "displayName": name, "state": "ACTIVE"}
            for name in sorted(stack.texts())
        ]
        return {**arguments, plural: rows}

    return answer


def _assumed_services(arguments: Mapping[str, Any], stack: OfflineStack) -> Mapping[str, Any]:
    name = f"all services of {stack.config.get('oci:region', 'the region')}"
    row = {"id": unknown_value("id of the services"), "cidrBlock": name, "name": SERVICES, "description": SERVICES}
    return {**arguments, "services": [row]}


def _assumed_regions(arguments: Mapping[str, Any], stack: OfflineStack) -> Mapping[str, Any]:
    home = {
        "regionName": unknown_value("home region"),
        "regionKey": "",
        "isHomeRegion": True,
        "state": "READY",
        "status": "",
    }
    return {**arguments, "regionSubscriptions": [home]}


_ANSWERS: Mapping[str, _Answer] = {
    "oci:ObjectStorage/getNamespace:getNamespace": lambda arguments, _: {
        **arguments,
        "namespace": unknown_value("namespace"),
    },
    "oci:Core/getServices:getServices": _assumed_services,
    "oci:Core/getVcn:getVcn": _assumed_resource,
    "oci:Core/getVcns:getVcns": _assumed_list("virtualNetworks"),
    "oci:Core/getSubnet:getSubnet": _assumed_resource,
    "oci:Core/getSubnets:getSubnets": _assumed_list("subnets"),
    "oci:Core/getRouteTables:getRouteTables": _assumed_list("routeTables"),
    "oci:DataScience/getProject:getProject": _assumed_resource,
    "oci:DataScience/getProjects:getProjects": _assumed_list("projects"),
    "oci:DataScience/getComputeTarget:getComputeTarget": _assumed_resource,
    "oci:DataScience/getComputeTargets:getComputeTargets": _assumed_list("computeTargets"),
    "oci:Logging/getLogGroup:getLogGroup": _assumed_resource,
    "oci:Logging/getLogGroups:getLogGroups": _assumed_list("logGroups"),
    "oci:Logging/getLog:getLog": _assumed_resource,
    "oci:Logging/getLogs:getLogs": _assumed_list("logs"),
    "oci:ObjectStorage/getBucket:getBucket": _assumed_resource,
    "oci:Identity/getRegionSubscriptions:getRegionSubscriptions": _assumed_regions,
}


OFFLINE = OciOffline()
