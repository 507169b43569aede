# SPDX-License-Identifier: Apache-2.0
"""Two teams in one tenancy. Each has one resource of every kind in its own compartment. All names contain the team's
name, so that a leak can be seen."""

import base64
import configparser
import http.client
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from localcloud.control import Cloud
from localcloud.oci.authentication import sign_request
from localcloud.oci.tenancy import load_private_key
from tests.support.waiting import LONGEST_SECONDS, eventually

OURS, THEIRS = "ours", "theirs"
_WAITS = "import time\ntime.sleep(3600)\n"


@dataclass(frozen=True)
class Answer:
    status: int
    text: str
    work_request: str = ""

    @property
    def body(self) -> Any:
        return json.loads(self.text) if self.text else None

    @property
    def code(self) -> str:
        return str(self.body.get("code", "")) if self.status >= 400 and self.text else ""


class Caller:
    """A user with an API key, on one connection."""

    def __init__(self, cloud: Cloud, profile: str = "deployer") -> None:
        profiles = configparser.ConfigParser()
        profiles.read(cloud.config_file)
        found = profiles[profile]
        self.cloud, self.id = cloud, str(found["user"])
        self._key_id = f"{found['tenancy']}/{found['user']}/{found['fingerprint']}"
        self._key = load_private_key(Path(found["key_file"]))
        self._host = urlsplit(cloud.endpoint).netloc

    @cached_property
    def _connection(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(self._host, timeout=LONGEST_SECONDS)

    def close(self) -> None:
        self._connection.close()

    def ask(
        self, method: str, target: str, body: Any = None, headers: Mapping[str, str] | None = None, raw: bytes = b""
    ) -> Answer:
        content = raw or (b"" if body is None else json.dumps(body).encode())
        signed = sign_request(method, target, self._host, content, self._key_id, self._key)
        self._connection.request(method, target, content or None, {**signed, **(headers or {})})
        response = self._connection.getresponse()
        text = response.read().decode(errors="replace")
        return Answer(response.status, text, response.headers.get("opc-work-request-id", ""))

    def made(self, target: str, body: Any, method: str = "POST") -> Any:
        answer = self.ask(method, target, body)
        assert answer.status < 300, (target, body, answer)
        return answer.body


@dataclass(frozen=True)
class Team:
    """A team's resources by kind: OCIDs, or names such as those of a bucket and an object."""

    mark: str
    compartment: str
    things: Mapping[str, str]

    def __getitem__(self, kind: str) -> str:
        return self.things[kind]


def team(admin: Caller, mark: str, network: int, runs: bool = True) -> Team:
    """Makes a team in a compartment. All names contain the team's name. Without `runs`, it has no job."""
    tenancy = admin.cloud.tenancy
    named = {"name": mark, "description": mark}
    compartment = admin.made("/20160918/compartments", {**named, "compartmentId": tenancy})["id"]
    things = {"compartment": compartment, "tenancy": tenancy, **_people(admin, mark, named)}
    details = {
        **named,
        "compartmentId": compartment,
        "statements": [f"allow group {mark} to read vcns in compartment id {compartment}"],
    }
    things["policy"] = admin.made("/20160918/policies", details)["id"]
    things["tag-namespace"] = admin.made("/20160918/tagNamespaces", {**named, "compartmentId": compartment})["id"]
    things |= _network(admin, mark, compartment, network)
    things |= _storage(admin, mark, compartment)
    things |= _logging(admin, mark, compartment)
    if runs:
        things |= _science(admin, mark, compartment, things)
    return Team(mark, compartment, things)


def _people(admin: Caller, mark: str, named: Mapping[str, str]) -> dict[str, str]:
    place = {**named, "compartmentId": admin.cloud.tenancy}
    user = admin.made("/20160918/users", place)["id"]
    group = admin.made("/20160918/groups", place)["id"]
    rule = {"matchingRule": f"all {{resource.id = '{mark}'}}"}
    joined = admin.made("/20160918/userGroupMemberships", {"userId": user, "groupId": group})["id"]
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048).public_key()
    form = serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    uploaded = admin.made(f"/20160918/users/{user}/apiKeys", {"key": key.public_bytes(*form).decode()})
    return {
        "user": user, "group": group, "user-group-membership": joined, "fingerprint": uploaded["fingerprint"],
        "dynamic-group": admin.made("/20160918/dynamicGroups", {**place, **rule})["id"],
    }  # fmt: skip


def _network(admin: Caller, mark: str, compartment: str, number: int) -> dict[str, str]:
    place = {"compartmentId": compartment, "displayName": mark}

    def made(path: str, **more: Any) -> str:
        return str(admin.made(f"/20160918/{path}", {**place, **more})["id"])

    vcn = made("vcns", cidrBlocks=[f"10.{number}.0.0/16"])
    within = {"vcnId": vcn}
    gateway = made("natGateways", **within)
    route = {"networkEntityId": gateway, "destination": "0.0.0.0/0"}
    lists: dict[str, Any] = {"ingressSecurityRules": [], "egressSecurityRules": []}
    tables = made("routeTables", **within, routeRules=[route])
    security, options = made("securityLists", **within, **lists), made("dhcps", **within, options=[])
    parts = {"routeTableId": tables, "securityListIds": [security], "dhcpOptionsId": options}
    return {
        "vcn": vcn, "nat-gateway": gateway, "route-table": tables, "security-list": security, "dhcp-options": options,
        "subnet": made("subnets", **within, **parts, cidrBlock=f"10.{number}.1.0/24"),
        "network-security-group": made("networkSecurityGroups", **within),
        "internet-gateway": made("internetGateways", **within, isEnabled=True),
        "service-gateway": made("serviceGateways", **within, services=[]),
    }  # fmt: skip


def _storage(admin: Caller, mark: str, compartment: str) -> dict[str, str]:
    space = f"/n/{admin.cloud.namespace}/b"
    bucket = f"{mark}-bucket"
    admin.made(space, {"name": bucket, "compartmentId": compartment})
    assert admin.ask("PUT", f"{space}/{bucket}/o/{mark}", raw=mark.encode()).status == 200
    upload = admin.made(f"{space}/{bucket}/u", {"object": mark})["uploadId"]
    place = {"compartmentId": compartment, "displayName": f"{mark}/image"}
    repository = admin.made("/20160918/container/repositories", place)["id"]
    address = f"iad.ocir.io/{admin.cloud.namespace}/{mark}/image:1"
    image = admin.made("/.trainyard/images", {"image": address})["id"]
    secret = {
        "compartmentId": compartment, "secretName": mark, "vaultId": f"vault-{mark}", "keyId": "key",
        "secretContent": {"contentType": "BASE64", "content": base64.b64encode(mark.encode()).decode()},
    }  # fmt: skip
    return {
        "bucket": bucket, "object": mark, "upload": upload, "container-repository": repository,
        "container-image": image, "image-address": address, "secret": admin.made("/20180608/secrets", secret)["id"],
    }  # fmt: skip


def _logging(admin: Caller, mark: str, compartment: str) -> dict[str, str]:
    def made(path: str, details: Mapping[str, Any]) -> tuple[str, str]:
        answer = admin.ask("POST", f"/20200531/{path}", details)
        assert answer.status == 202, answer
        found = admin.ask("GET", f"/20200531/workRequests/{answer.work_request}").body
        return str(found["resources"][0]["identifier"]), answer.work_request

    group, request = made("logGroups", {"compartmentId": compartment, "displayName": mark})
    log, _ = made(f"logGroups/{group}/logs", {"displayName": mark, "logType": "CUSTOM"})
    entry = {"data": mark, "id": mark, "time": now()}
    batch = {"entries": [entry], "source": mark, "type": mark, "defaultlogentrytime": now()}
    admin.made(f"/20200831/logs/{log}/actions/push", {"specversion": "1.0", "logEntryBatches": [batch]})
    metric = {
        "compartmentId": compartment, "namespace": "two_teams", "name": mark, "dimensions": {"team": mark},
        "datapoints": [{"timestamp": now(), "value": 1.0}],
    }  # fmt: skip
    admin.made("/20180401/metrics", {"metricData": [metric]})
    return {"log-group": group, "log": log, "work-request": request}


def _science(admin: Caller, mark: str, compartment: str, made: Mapping[str, str]) -> dict[str, str]:
    """Makes a job with a secret in its environment, and a run of it that sleeps in the team's subnet."""
    place = {"compartmentId": compartment, "displayName": mark}
    project = admin.made("/20190101/projects", place)["id"]
    within = {**place, "projectId": project}
    shape = {"shapeName": "VM.Standard2.1", "blockStorageSizeInGBs": 50, "subnetId": made["subnet"]}
    details = {
        "jobConfigurationDetails": {"jobType": "DEFAULT", "environmentVariables": {"PASSWORD": f"{mark}-secret"}},
        "jobInfrastructureConfigurationDetails": {"jobInfrastructureType": "STANDALONE", **shape},
        "jobLogConfigurationDetails": {
            "enableLogging": True, "logGroupId": made["log-group"], "logId": made["log"],
        },
    }  # fmt: skip
    job = admin.made("/20190101/jobs", {**within, **details})["id"]
    disposition = {"content-disposition": "attachment; filename=wait.py"}
    answer = admin.ask("POST", f"/20190101/jobs/{job}/artifact", raw=_WAITS.encode(), headers=disposition)
    assert answer.status == 204, answer
    run = admin.made("/20190101/jobRuns", {**within, "jobId": job})["id"]
    settings = {"shape": "VM.Standard2.1", "subnetId": made["subnet"]}
    notebook = admin.made("/20190101/notebookSessions", {**within, "notebookSessionConfigDetails": settings})["id"]
    cluster = {"computeType": "MANAGED_COMPUTE_CLUSTER", "instanceConfiguration": {"instanceShape": "VM.Standard2.1"}}
    target = admin.made("/20190101/computeTargets", {**place, "computeConfigurationDetails": cluster})["id"]
    return {
        "project": project, "job": job, "job-run": run, "notebook-session": notebook, "compute-target": target,
    }  # fmt: skip


def with_addresses(admin: Caller, of: Team) -> Team:
    """The team, with the VNIC and the address of its run as soon as these exist."""
    listed = f"/20160918/privateIps?subnetId={of['subnet']}"
    (address,) = eventually(lambda: admin.made(listed, None, "GET"), bool)
    return Team(of.mark, of.compartment, {**of.things, "private-ip": address["id"], "vnic": address["vnicId"]})


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
