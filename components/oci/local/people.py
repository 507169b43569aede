# SPDX-License-Identifier: Apache-2.0
"""The people of a stack as OCI knows them, with no more access than it gives them, and what they do around runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from importlib import import_module
from typing import Any

from components.oci.client.session import Session, host_overrides
from components.oci.local.access import dynamic_group
from components.oci.local.sessions import DEPLOYER, USER, session_of
from components.oci.plan import OciAccessPlan, OciPlan
from components.oci.statements import matching_rule
from components.platform.local_cloud import LocalCloud
from components.platform.rehearsed_runs import People
from localcloud import admin


def people_of(cloud: LocalCloud, plan: OciPlan, granted: OciAccessPlan, outputs: Mapping[str, Any]) -> People:
    """`granted` says to whom access is given: in the stack, or in the one it takes its access from."""
    deployer = session_of(cloud, DEPLOYER)
    if granted.users_group:
        _join(deployer, cloud, granted.users_group)
        return People(session_of(cloud, USER), f"a user of {granted.users_group}", USER)
    if granted.users_dynamic_group:
        if not granted.make_notebooks_group:
            dynamic_group(deployer, cloud, granted.users_dynamic_group, matching_rule(plan, "notebooks"))
        return People(_notebook(deployer, cloud, outputs), "a notebook session", None)
    return People(deployer, "an administrator", DEPLOYER)


def _join(deployer: Session, cloud: LocalCloud, name: str) -> None:
    """The tenancy's one plain user becomes a member of the group. The group is made if it does not exist."""
    identity, models = deployer.client("identity"), import_module("oci.identity.models")
    groups = identity.list_groups(cloud.tenancy, name=name).data
    if not groups:
        details = models.CreateGroupDetails(compartment_id=cloud.tenancy, name=name, description="of a rehearsal")
        groups = [identity.create_group(details).data]
    user = session_of(cloud, USER).credentials["user"]
    members = identity.list_user_group_memberships(cloud.tenancy, user_id=user, group_id=groups[0].id).data
    if not members:
        identity.add_user_to_group(models.AddUserToGroupDetails(user_id=user, group_id=groups[0].id))


def _notebook(deployer: Session, cloud: LocalCloud, outputs: Mapping[str, Any]) -> Session:
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
    """Make the calls that people make around their runs. The cloud's record of calls says which were refused."""
    storage = who.session.client("object_storage")
    science, bucket = who.session.client("data_science"), str(outputs["bucket"])
    namespace, name = cloud.namespace, ".trainyard-rehearsal"
    if (profile := who.profile) is not None:
        _try(lambda: admin.push_image(cloud, f"{outputs['imagePushAddress']}:rehearsal", profile=profile))
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
        _try(call)
    if outputs.get("logGroupId") and outputs.get("logId"):
        logging = who.session.client("logging")
        for call in (
            lambda: logging.get_log_group(outputs["logGroupId"]),
            lambda: logging.list_logs(outputs["logGroupId"]),
            lambda: logging.get_log(outputs["logGroupId"], outputs["logId"]),
        ):
            _try(call)


def look_at_metrics(who: People, cloud: LocalCloud) -> None:
    """After a run: its processors and memory."""
    models = import_module("oci.monitoring.models")
    monitoring, namespace = who.session.client("monitoring"), "oci_datascience_jobrun"
    now = datetime.now(UTC)
    listed = models.ListMetricsDetails(namespace=namespace)
    query = models.SummarizeMetricsDataDetails(
        namespace=namespace, query="CpuUtilization[1m].mean()", start_time=now - timedelta(hours=1), end_time=now
    )
    _try(lambda: monitoring.list_metrics(cloud.compartment, listed))
    _try(lambda: monitoring.summarize_metrics_data(cloud.compartment, query))


def _try(call: Callable[[], Any]) -> None:
    """Make a call. A refusal is evidence, so it does not end the rehearsal."""
    from localcloud.control import CloudError

    try:
        with suppress(CloudError):
            call()
    except Exception as error:
        if getattr(error, "status", None) is None:
            raise
