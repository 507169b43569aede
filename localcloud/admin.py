# SPDX-License-Identifier: Apache-2.0
"""Calls the local cloud's own operations, which no platform's API has."""

from __future__ import annotations

import configparser
import http.client
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from components.platform.calls import LocalCloud
from components.platform.progress import ProgressPoint
from localcloud.control import CloudError
from localcloud.files import WHERE_POSSIBLE

PUSH_PATH = "/.trainyard/images"
TOKENS_PATH = "/.trainyard/tokens"
FAULTS_PATH = "/.trainyard/faults"
EVIDENCE_PATH = "/.trainyard/evidence"
PROGRESS_PATH = "/.trainyard/progress"
HOSTS_PATH = "/.trainyard/hosts"
DEPLOYER = "deployer"
CALLS_PATH = "/.trainyard/calls"
# A timeout that is long enough for a busy machine.
_ANSWER_SECONDS = 120.0


def push_image(
    cloud: LocalCloud, image: str, entrypoint: Sequence[str] = (), cmd: Sequence[str] = (), profile: str = DEPLOYER
) -> dict[str, Any]:
    """Registers an image as `docker push` would, in the name of `profile`. Returns the ContainerImage."""
    content = {"image": image, "entrypoint": list(entrypoint), "cmd": list(cmd)}
    pushed: dict[str, Any] = _call_local_operation(cloud, "POST", PUSH_PATH, content, profile)
    return pushed


def push_when_repository_exists(cloud: LocalCloud, image: str, environment: str = "") -> None:
    """Pushes an image that stands for a local environment, as soon as its repository exists."""
    _call_local_operation(cloud, "POST", PUSH_PATH, {"image": image, "standBy": True, "environment": environment})


def issue_resource_principal(cloud: LocalCloud, resource: str) -> dict[str, str]:
    """The environment variables that make Oracle's clients act as a notebook session or job run."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    from localcloud.oci.tenancy import private_pem

    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )  # fmt: skip
    answer = _call_local_operation(cloud, "POST", TOKENS_PATH, {"resource": resource, "publicKey": public.decode()})
    return {
        "OCI_RESOURCE_PRINCIPAL_VERSION": "2.2",
        "OCI_RESOURCE_PRINCIPAL_RPST": answer["token"],
        "OCI_RESOURCE_PRINCIPAL_PRIVATE_PEM": private_pem(key).decode(),
        "OCI_RESOURCE_PRINCIPAL_REGION": cloud.region,
    }


def add_fault(cloud: LocalCloud, kind: str, **settings: Any) -> dict[str, Any]:
    """Adds a fault. `localcloud.server.faults` lists the kinds and their settings."""
    added: dict[str, Any] = _call_local_operation(cloud, "POST", FAULTS_PATH, {"kind": kind, **settings})
    return added


def list_faults(cloud: LocalCloud) -> list[dict[str, Any]]:
    """The faults in force, and how often each has struck."""
    faults: list[dict[str, Any]] = _call_local_operation(cloud, "GET", FAULTS_PATH)
    return faults


def clear_faults(cloud: LocalCloud, identifier: str = "") -> int:
    """Ends one fault, or all. Returns how many."""
    path = f"{FAULTS_PATH}/{quote(identifier, safe='')}" if identifier else FAULTS_PATH
    return int(_call_local_operation(cloud, "DELETE", path)["cleared"])


def list_calls(cloud: LocalCloud, since: int = 0, of: str = "") -> list[dict[str, Any]]:
    """The calls that policies decided after the row `since`. `of` names another API of the cloud, such as `aws`.
    `localcloud.oci.access_decisions` and `localcloud.aws.access.decisions` describe a row."""
    more = f"&of={of}" if of else ""
    calls: list[dict[str, Any]] = _call_local_operation(cloud, "GET", f"{CALLS_PATH}?since={since}{more}")["calls"]
    return calls


def read_evidence(cloud: LocalCloud, run: str) -> dict[str, Any]:
    """The counts of the firewalls of a run's nodes so far: rules, flows and dropped packets."""
    evidence: dict[str, Any] = _call_local_operation(cloud, "GET", f"{EVIDENCE_PATH}?run={quote(run, safe='')}")
    return evidence


def read_progress(cloud: LocalCloud, bucket: str, folder: str) -> dict[int, list[ProgressPoint]]:
    """The progress that the nodes of a run have reported since it began, by rank."""
    path = f"{PROGRESS_PATH}?bucket={quote(bucket, safe='')}&folder={quote(folder, safe='')}"
    ranks = _call_local_operation(cloud, "GET", path)["ranks"]
    return {int(rank): [ProgressPoint(*point) for point in points] for rank, points in ranks.items()}


def why_not_enforced(cloud: LocalCloud) -> str:
    """Why nodes on this machine have no firewall, with the remedy; empty if they have one."""
    return str(_call_local_operation(cloud, "GET", HOSTS_PATH)["reason"])


def why_not_isolated(cloud: LocalCloud) -> str:
    """What the isolation of runs lacks on this machine: they fail, or run so. Empty if it lacks nothing."""
    return str(_call_local_operation(cloud, "GET", HOSTS_PATH)["missing"])


def allows_missing_isolation(cloud: LocalCloud) -> bool:
    """Whether runs may do without isolation on a machine that cannot isolate them. Chosen at the cloud's start."""
    return bool(_call_local_operation(cloud, "GET", HOSTS_PATH)["isolation"] == WHERE_POSSIBLE)


def _call_local_operation(
    cloud: LocalCloud, method: str, path: str, content: dict[str, Any] | None = None, named: str = DEPLOYER
) -> Any:
    from localcloud.oci.authentication import sign_request
    from localcloud.oci.tenancy import load_private_key

    profiles = configparser.ConfigParser()
    profiles.read(cloud.config_file)
    profile = profiles[named]
    key_id = f"{profile['tenancy']}/{profile['user']}/{profile['fingerprint']}"
    body = b"" if content is None else json.dumps(content).encode()
    address = urlsplit(cloud.endpoint).netloc
    headers = sign_request(method, path, address, body, key_id, load_private_key(Path(profile["key_file"])))
    connection = http.client.HTTPConnection(address, timeout=_ANSWER_SECONDS)
    try:
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        answer = json.loads(response.read())
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise CloudError(f"The local cloud at {cloud.endpoint} did not answer: {error}") from None
    finally:
        connection.close()
    if response.status >= 400:
        raise CloudError(f"The local cloud refused the request: {answer.get('message', response.status)}")
    return answer
