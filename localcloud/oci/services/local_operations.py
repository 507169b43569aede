# SPDX-License-Identifier: Apache-2.0
"""Our own operations, which no platform has: access decisions, counts of firewalls, faults, progress, tokens."""

from __future__ import annotations

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

from components.platform.progress import MOST_POINTS
from localcloud.oci import tenancy
from localcloud.oci.authentication import TOKEN_SECONDS, Caller
from localcloud.oci.oci_errors import not_found
from localcloud.oci.operations import ApiCall, ApiOperation
from localcloud.server import progress_record
from localcloud.server.api_errors import invalid_parameter
from localcloud.server.http import Reply, whole_number

CALLS_PATH = "/.trainyard/calls"
SERVICE = "trainyard"
EVIDENCE_PATH = "/.trainyard/evidence"
HOSTS_PATH = "/.trainyard/hosts"
FAULTS_PATH = "/.trainyard/faults"
PROGRESS_PATH = "/.trainyard/progress"
TOKENS_PATH = "/.trainyard/tokens"
# The name of each kind in matching rules.
RESOURCE_TYPES = {"job-run": "datasciencejobrun", "notebook-session": "datasciencenotebooksession"}


def list_calls(call: ApiCall) -> Reply:
    since = whole_number(call.query.get("since", "0"))
    if since is None:
        raise invalid_parameter("since must be a number: the id of a row")
    records = {"": call.cloud.access.decisions, **call.cloud.records}
    decisions = records.get(call.query.get("of", ""))
    if decisions is None:
        raise invalid_parameter(f"of must be one of {', '.join(sorted(call.cloud.records))}, or absent")
    return Reply(200, {"calls": decisions.since(since), "forgotten": decisions.forgotten})


def answer_with_evidence(call: ApiCall) -> Reply:
    run = call.needed("run")
    resource = call.store.get(run)
    is_job_run = resource is not None and resource.kind == "job-run"
    if not is_job_run and not any(hosts.has(run) for hosts in call.cloud.other_hosts):
        raise not_found("job run")

    async def read() -> Reply:
        return Reply(200, await call.cloud.evidence(run))

    return Reply(later=read)


def answer_with_isolation(call: ApiCall) -> Reply:
    async def read() -> Reply:
        reason = await call.cloud.hosts.why_not_enforced()
        missing = await call.cloud.hosts.why_not_isolated()
        facts = {"enforced": not reason, "reason": reason, "isolation": call.cloud.isolation, "missing": missing}
        return Reply(200, facts)

    return Reply(later=read)


def list_faults(call: ApiCall) -> Reply:
    return Reply(200, call.cloud.faults.list())


def add_fault(call: ApiCall) -> Reply:
    return Reply(200, call.cloud.faults.add(call.json()))


def clear_faults(call: ApiCall) -> Reply:
    return Reply(200, {"cleared": call.cloud.faults.clear()})


def clear_fault(call: ApiCall) -> Reply:
    if not call.cloud.faults.clear(call.params["faultId"]):
        raise not_found("fault")
    return Reply(200, {"cleared": 1})


def answer_with_progress(call: ApiCall) -> Reply:
    named = call.needed("bucket")
    places = [bucket.id for bucket in call.store.live("bucket", name=named)]
    places += [progress_record.s3_bucket_key(named), named]  # a storage is named by its key
    remembered = (
        progress_record.recorded_progress(call.store, place, call.needed("folder"), MOST_POINTS) for place in places
    )
    ranks = next((ranks for ranks in remembered if ranks), {})
    return Reply(
        200, {"ranks": {str(rank): [[one.moment, *one.content] for one in points] for rank, points in ranks.items()}}
    )


def issue_token(call: ApiCall) -> Reply:
    """Issues the token of a notebook session or job run, so that a person can act as it."""
    body = call.json()
    if not isinstance(body, dict) or not all(isinstance(body.get(name), str) for name in ("resource", "publicKey")):
        raise invalid_parameter("resource and publicKey are required, both as text")
    resource = call.store.get(body["resource"])
    if resource is None or not resource.live or resource.kind not in RESOURCE_TYPES:
        raise not_found("notebook session or job run")
    try:
        key = serialization.load_pem_public_key(body["publicKey"].encode())
    except ValueError:
        key = None
    if not isinstance(key, RSAPublicKey):
        raise invalid_parameter("publicKey must be an RSA public key in PEM form")
    principal = Caller(
        resource.id,
        resource.id,
        tenancy.TENANCY,
        resource_kind=RESOURCE_TYPES[resource.kind],
        compartment=resource.compartment,
    )
    seconds = call.cloud.faults.seconds("token", call.operation.name) or TOKEN_SECONDS
    return Reply(200, {"token": call.cloud.credentials.issue(principal, key, seconds)})


def local_operations() -> list[ApiOperation]:
    return [
        ApiOperation("ListCalls", "GET", CALLS_PATH, list_calls, SERVICE),
        ApiOperation("ReadEvidence", "GET", EVIDENCE_PATH, answer_with_evidence, SERVICE),
        ApiOperation("ReadHosts", "GET", HOSTS_PATH, answer_with_isolation, SERVICE),
        ApiOperation("ListFaults", "GET", FAULTS_PATH, list_faults, SERVICE),
        ApiOperation("AddFault", "POST", FAULTS_PATH, add_fault, SERVICE),
        ApiOperation("ClearFaults", "DELETE", FAULTS_PATH, clear_faults, SERVICE),
        ApiOperation("ClearFault", "DELETE", f"{FAULTS_PATH}/{{faultId}}", clear_fault, SERVICE),
        ApiOperation("ReadProgress", "GET", PROGRESS_PATH, answer_with_progress, SERVICE),
        ApiOperation("IssueToken", "POST", TOKENS_PATH, issue_token, SERVICE),
    ]
