# SPDX-License-Identifier: Apache-2.0
"""The responses of a cloud for a program that runs with Pulumi's mocks: ids, and the results of lookups."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import pulumi

from catalog.platforms import require_capability
from components.platform.review import OfflineCloud
from tests.support.recorder import aws_answers

NAMESPACE = "axexamplens"
STACK_OUTPUTS = "pulumi:pulumi:readStackOutputs"
STACK_RESOURCES = "pulumi:pulumi:readStackResourceOutputs"
# After the name of a stack in `references`: marks the outputs of its resources, by their URNs.
RESOURCES = "#resources"
HOME_OF = "oci:Identity/getRegionSubscriptions:getRegionSubscriptions"
HOME_REGION = "eu-frankfurt-1"

OFFLINE = {"oci": require_capability("oci", OfflineCloud), "aws": require_capability("aws-dl1", OfflineCloud)}


def identify(token: str, name: str, inputs: Mapping[str, Any]) -> str:
    """A readable id for a resource of this type."""
    if token.startswith("trainyard:"):
        return f"run-{name}"
    if token.startswith("aws:secretsmanager/"):
        return f"arn:aws:secretsmanager:us-east-1:{aws_answers.ACCOUNT}:secret:{inputs.get('name') or name}-a1b2c3"
    return OFFLINE["aws" if token.startswith("aws:") else "oci"].identify(token, name, inputs)


def _services(_: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "services": [
            {
                "id": "ocid1.service.oc1.iad.all",
                "cidrBlock": "all-iad-services-in-oracle-services-network",
                "name": "All IAD Services In Oracle Services Network",
                "description": "All IAD Services In Oracle Services Network",
            }
        ]
    }


def _regions(arguments: Mapping[str, Any], home: str) -> dict[str, Any]:
    rows = [
        {"regionKey": key, "regionName": name, "isHomeRegion": name == home, "state": "READY", "status": "READY"}
        for key, name in (("IAD", "us-ashburn-1"), ("FRA", HOME_REGION))
    ]
    return {"tenancyId": arguments.get("tenancyId"), "regionSubscriptions": rows}


def _read(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """A resource by its OCID, or a bucket by its name. Every resource exists unless its name says that it does not."""
    if any("nowhere" in str(value) for value in arguments.values()):
        raise LookupError("404-NotAuthorizedOrNotFound, Authorization failed or requested resource not found.")
    return {**arguments, "state": "DELETED" if any("deleted" in str(one) for one in arguments.values()) else "ACTIVE"}


def _holding(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """A bucket or a log with its content. If its name has `theirs`, it is of another stack, otherwise of this one."""
    return {**_read(arguments), "approximateCount": "7", "displayName": "runs", "freeformTags": _marks(arguments)}


def _repositories(arguments: Mapping[str, Any]) -> dict[str, Any]:
    item = {"displayName": arguments["displayName"], "imageCount": 3, "freeformTags": _marks(arguments)}
    return {**arguments, "containerRepositoryCollections": [{"items": [item]}]}


def _marks(arguments: Mapping[str, Any]) -> dict[str, str]:
    theirs = any("theirs" in str(value) for value in arguments.values())
    return {"managed-by": "trainyard", "stack": "theirs" if theirs else pulumi.get_stack()}


def _listed(kind: str, plural: str) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """The content of every compartment: one resource of the company, two with the same name, and one that is being
    deleted."""
    names = {"a": "company", "b": "twice", "c": "twice", "d": "company"}

    def answer(arguments: Mapping[str, Any]) -> dict[str, Any]:
        rows = [
            {
                "id": f"ocid1.{kind}.oc1..{name}-{key}",
                "displayName": name,
                "state": "ACTIVE" if key < "d" else "DELETED",
            }
            for key, name in names.items()
        ]
        return {**arguments, plural: rows}

    return answer


FUNCTIONS: Mapping[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    "oci:ObjectStorage/getNamespace:getNamespace": lambda arguments: {**arguments, "namespace": NAMESPACE},
    "oci:Core/getServices:getServices": _services,
    "oci:Core/getVcn:getVcn": lambda arguments: {**_read(arguments), "cidrBlocks": ["10.0.0.0/16", "10.9.0.0/24"]},
    "oci:Core/getVcns:getVcns": _listed("vcn", "virtualNetworks"),
    "oci:Core/getSubnet:getSubnet": _read,
    "oci:Core/getSubnets:getSubnets": _listed("subnet", "subnets"),
    "oci:Core/getRouteTables:getRouteTables": _listed("routetable", "routeTables"),
    "oci:DataScience/getProject:getProject": _read,
    "oci:DataScience/getProjects:getProjects": _listed("datascienceproject", "projects"),
    "oci:DataScience/getComputeTarget:getComputeTarget": _read,
    "oci:DataScience/getComputeTargets:getComputeTargets": _listed("datasciencecomputetarget", "computeTargets"),
    "oci:Logging/getLogGroup:getLogGroup": _read,
    "oci:Logging/getLogGroups:getLogGroups": _listed("loggroup", "logGroups"),
    "oci:Logging/getLog:getLog": _holding,
    "oci:Logging/getLogs:getLogs": _listed("log", "logs"),
    "oci:ObjectStorage/getBucket:getBucket": _holding,
    "oci:Artifacts/getContainerRepositories:getContainerRepositories": _repositories,
}


class Cloud(pulumi.runtime.Mocks):
    """Responds for the clouds. In a preview, resources have no ids, as with the real engine."""

    def __init__(self, preview: bool, references: Mapping[str, Mapping[str, Any]], home: str = HOME_REGION) -> None:
        self.preview = preview
        self.references = references
        self._functions: Mapping[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
            **FUNCTIONS,
            **aws_answers.FUNCTIONS,
            STACK_OUTPUTS: self._outputs,
            STACK_RESOURCES: self._resources,
            HOME_OF: partial(_regions, home=home),
        }

    def call(self, args: pulumi.runtime.MockCallArgs) -> tuple[dict[str, Any], list[tuple[str, str]] | None]:
        answer = self._functions[args.token]
        try:
            return answer(args.args), []
        except LookupError as refused:
            return {}, [("", str(refused))]

    def _outputs(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        if arguments["name"] not in self.references:
            raise LookupError(f'unknown stack "{arguments["name"]}"')
        return {**arguments, "outputs": dict(self.references[arguments["name"]])}

    def _resources(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        rows = self.references.get(arguments["stackName"] + RESOURCES, {})
        return {"name": arguments["stackName"], "outputs": {urn: {"outputs": row} for urn, row in rows.items()}}

    def new_resource(self, args: pulumi.runtime.MockResourceArgs) -> tuple[str | None, dict[str, Any]]:
        if args.typ == "pulumi:pulumi:StackReference":
            outputs = dict(self.references[args.inputs["name"]])
            return args.inputs["name"], {**args.inputs, "outputs": outputs, "secretOutputNames": []}
        if self.preview or args.custom is False:
            return "", args.inputs
        outputs = {**args.inputs, **aws_answers.outputs(args.typ, args.name, args.inputs)}
        if args.typ.startswith("trainyard:"):
            outputs |= {"state": "IN_PROGRESS", "nodeRuns": [], "startedAt": "2026-01-01T00:00:00Z"}
        return identify(args.typ, args.name, args.inputs), outputs
