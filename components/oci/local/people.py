# SPDX-License-Identifier: Apache-2.0
"""The users of a stack as OCI principals that have only the access that the stack gives, and their calls around
runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from importlib import import_module
from typing import Any

from catalog.machines import COLLECTIVE_FRAMEWORKS
from components.oci.client.runs import OciRuns
from components.oci.client.session import DEPLOYER, USER, Session, host_overrides, session_of
from components.oci.plan import OciAccessPlan, OciPlan
from components.oci.run_inputs import Where, make_run_inputs
from components.oci.statements import lines_by_policy, matching_rule
from components.plan.model import JobPlan, Plan, RunPlan
from components.platform.calls import LocalCloud, Tell
from components.platform.local import Row
from components.platform.rehearsal import People, Placeholders, RehearsedConfig
from components.platform.values import Properties
from localcloud import admin

# A shape that every local machine can simulate.
SMALL_SHAPE = {"name": "VM.Standard.E4.Flex", "ocpus": 1, "memoryGb": 8}


def stand_in_access(cloud: LocalCloud, plan: OciPlan, used: Plan | None) -> tuple[Plan, list[str]]:
    """The plan that grants access: this stack's, that of the stack that it uses, or one for a stand-in."""
    if plan.access.create:
        return plan, []
    if used is not None and "access" in plan.taken:
        return used, []
    wanted = replace(plan.access, create=True, mode="least-privilege")
    with_access = replace(plan, access=wanted)
    deployer, models = session_of(cloud, DEPLOYER), import_module("oci.identity.models")
    make_dynamic_group(deployer, cloud, wanted.runs_group, matching_rule(with_access, "runs"))
    for name, lines in lines_by_policy(with_access).items():
        place = cloud.tenancy if lines[0].attached_to_tenancy else cloud.compartment
        details = models.CreatePolicyDetails(
            compartment_id=place,
            name=f"stand-in-{name}",
            description="What a rehearsal assumes that the existing policies grant",
            statements=[line.text for line in lines],
        )
        deployer.client("identity").create_policy(details)
    return with_access, ["policies and groups exist elsewhere: here the stack gets the least access that it needs"]


def stand_in_groups(cloud: LocalCloud, plan: OciPlan) -> Iterator[str]:
    """Makes the runs' group, if the stack names an existing one."""
    access = plan.access
    if access.create and not access.make_runs_group:
        make_dynamic_group(session_of(cloud, DEPLOYER), cloud, access.runs_group, matching_rule(plan, "runs"))
        yield f"dynamic group {access.runs_group}: one of the stack's own job runs stands in"


def make_dynamic_group(deployer: Session, cloud: LocalCloud, name: str, rule: str) -> None:
    identity, models = deployer.client("identity"), import_module("oci.identity.models")
    if not identity.list_dynamic_groups(cloud.tenancy, name=name).data:
        details = models.CreateDynamicGroupDetails(
            compartment_id=cloud.tenancy, name=name, description="of a rehearsal", matching_rule=rule
        )
        identity.create_dynamic_group(details)


def people_of(cloud: LocalCloud, plan: OciPlan, granted: OciAccessPlan, outputs: Mapping[str, Any]) -> People:
    """`granted`: the plan that grants access, of this stack or of the one that it uses."""
    deployer = session_of(cloud, DEPLOYER)
    if granted.users_group:
        identity, models = deployer.client("identity"), import_module("oci.identity.models")
        groups = identity.list_groups(cloud.tenancy, name=granted.users_group).data
        if not groups:
            details = models.CreateGroupDetails(
                compartment_id=cloud.tenancy, name=granted.users_group, description="of a rehearsal"
            )
            groups = [identity.create_group(details).data]
        user = session_of(cloud, USER).credentials["user"]
        members = identity.list_user_group_memberships(cloud.tenancy, user_id=user, group_id=groups[0].id).data
        if not members:
            identity.add_user_to_group(models.AddUserToGroupDetails(user_id=user, group_id=groups[0].id))
        return _people_with_session(session_of(cloud, USER), plan, f"a user of {granted.users_group}", USER)
    if granted.users_dynamic_group:
        if not granted.make_notebooks_group:
            make_dynamic_group(deployer, cloud, granted.users_dynamic_group, matching_rule(plan, "notebooks"))
        return _people_with_session(_session_of_notebook(deployer, cloud, outputs), plan, "a notebook session", None)
    return _people_with_session(deployer, plan, "an administrator", DEPLOYER)


def _people_with_session(session: Session, plan: OciPlan, words: str, profile: str | None) -> People:
    return People(session, OciRuns(session, plan.compartment or ""), words, profile)


def _session_of_notebook(deployer: Session, cloud: LocalCloud, outputs: Mapping[str, Any]) -> Session:
    models = import_module("oci.data_science.models")
    machine = models.NotebookSessionConfigurationDetails(
        shape="VM.Standard2.1", block_storage_size_in_gbs=50, subnet_id=outputs["subnetId"]
    )
    details = models.CreateNotebookSessionDetails(
        project_id=outputs["projectId"],
        compartment_id=cloud.compartment,
        notebook_session_configuration_details=machine,
    )
    made = deployer.client("data_science").create_notebook_session(details).data
    principal = admin.issue_resource_principal(cloud, made.id)
    signer = import_module("oci.auth.signers").EphemeralResourcePrincipalSigner(
        session_token=principal["OCI_RESOURCE_PRINCIPAL_RPST"],
        private_key=principal["OCI_RESOURCE_PRINCIPAL_PRIVATE_PEM"],
        region=cloud.region,
    )
    return Session(endpoints=host_overrides(cloud.env), region=cloud.region, signer=signer)


def act_as_people(who: People, cloud: LocalCloud, outputs: Mapping[str, Any]) -> None:
    """Makes the calls that users make around their runs. The cloud records which ones were refused."""
    storage = who.session.client("object_storage")
    science, bucket = who.session.client("data_science"), str(outputs["bucket"])
    namespace, name = cloud.namespace, ".trainyard-rehearsal"
    if (profile := who.profile) is not None:
        _try_call(lambda: admin.push_image(cloud, f"{outputs['imagePushAddress']}:rehearsal", profile=profile))
    for call in (
        lambda: storage.head_bucket(namespace, bucket),
        lambda: storage.get_bucket(namespace, bucket),
        lambda: storage.put_object(namespace, bucket, name, b"a"),
        lambda: storage.put_object(namespace, bucket, name, b"b"),
        lambda: storage.head_object(namespace, bucket, name),
        lambda: storage.get_object(namespace, bucket, name),
        lambda: storage.list_objects(namespace, bucket),
        lambda: storage.delete_object(namespace, bucket, name),
        lambda: science.get_project(outputs["projectId"]),
        lambda: science.list_jobs(cloud.compartment),
    ):
        _try_call(call)
    if outputs.get("logGroupId") and outputs.get("logId"):
        logging = who.session.client("logging")
        for call in (
            lambda: logging.get_log_group(outputs["logGroupId"]),
            lambda: logging.list_logs(outputs["logGroupId"]),
            lambda: logging.get_log(outputs["logGroupId"], outputs["logId"]),
        ):
            _try_call(call)


def look_at_metrics(who: People, cloud: LocalCloud) -> None:
    """Reads a run's metrics of processor and memory, after its end."""
    models = import_module("oci.monitoring.models")
    monitoring, namespace = who.session.client("monitoring"), "oci_datascience_jobrun"
    now = datetime.now(UTC)
    listed = models.ListMetricsDetails(namespace=namespace)
    query = models.SummarizeMetricsDataDetails(
        namespace=namespace, query="CpuUtilization[1m].mean()", start_time=now - timedelta(hours=1), end_time=now
    )
    _try_call(lambda: monitoring.list_metrics(cloud.compartment, listed))
    _try_call(lambda: monitoring.summarize_metrics_data(cloud.compartment, query))


def _try_call(call: Callable[[], Any]) -> None:
    """Makes a call. A refusal is evidence, so it does not end the rehearsal."""
    from localcloud.control import CloudError

    try:
        with suppress(CloudError):
            call()
    except Exception as error:
        if getattr(error, "status", None) is None:
            raise


def placeholder_values(cloud: LocalCloud, outputs: Mapping[str, Any], rows: Sequence[Row]) -> Placeholders:
    """The values of OCI's placeholders, after `up`."""
    values = {
        "namespace": cloud.namespace,
        "registry": str(outputs["imagePushAddress"]),
        "bucket": str(outputs["bucketUri"]),
    }
    for row in rows:
        if row["type"] == "oci:Vault/secret:Secret":
            values[f"secret.{row['urn'].rpartition('::secret-')[2]}"] = row["id"]
    return Placeholders(values)


def inputs_of_rehearsed_run(
    who: People,
    plan: OciPlan,
    job: JobPlan,
    run: RunPlan,
    outputs: Mapping[str, Any],
    answers: Placeholders,
    tell: Tell,
) -> Properties:
    where = Where(
        outputs["jobs"][job.name]["id"], outputs["projectId"], None, outputs.get("logGroupId"), outputs.get("logId")
    )
    return make_run_inputs(plan, job, run, where, answers)


def small_shapes(made: RehearsedConfig, name: str, plan: Plan, entry: dict[str, Any]) -> None:
    """Implements `trainyard.rehearsal.mapping.Machines`."""
    job = plan.jobs[name]
    if job.shape.name != SMALL_SHAPE["name"] or (job.shape.ocpus or 1) > 1:
        entry["shape"] = dict(SMALL_SHAPE)
        if "GPU" in job.shape.name.upper():
            made.differences.append(f"job {name}: {job.shape.name} has GPUs; here it trains on CPUs")
            if job.framework in COLLECTIVE_FRAMEWORKS:
                made.not_rehearsed.setdefault(name, []).append("NCCL: there is no GPU here; gloo carries the tensors")
        else:
            made.differences.append(f"job {name}: a share of this machine stands in for {job.shape.name}")
    # A job whose image is in another registry, or shared by jobs of other frameworks, gets an image of its own.
    shared = {other.framework for other in plan.jobs.values() if other.image == job.image} != {job.framework}
    if not job.image_is_ours:
        made.differences.append(
            f"job {name}: {job.image} is not pulled: an image of the stack's own repository stands in"
        )
    if shared or not job.image_is_ours:
        entry["image"] = f"${{registry}}:rehearsal-{name}"
