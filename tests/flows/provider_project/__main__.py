# SPDX-License-Identifier: Apache-2.0
"""A network, a bucket, a job and a run, with both of our plugins; the test changes it by configuration."""

import pulumi
import pulumi_oci as oci

config = pulumi.Config()
compartment = config.require("compartment")
namespace = oci.objectstorage.get_namespace().namespace
vcn = oci.core.Vcn("vcn", compartment_id=compartment, cidr_blocks=["10.0.0.0/16"], dns_label="train")
rules = oci.core.SecurityList(
    "rules",
    compartment_id=compartment,
    vcn_id=vcn.id,
    ingress_security_rules=[
        {"protocol": "6", "source": "10.0.1.0/24", "tcp_options": {"min": 8786, "max": 8787}},
        {"protocol": "6", "source": "10.0.1.0/24", "tcp_options": {"min": 3000, "max": 3100}},
    ],
    egress_security_rules=[{"protocol": "all", "destination": "0.0.0.0/0"}],
)
subnet = oci.core.Subnet(
    "subnet",
    compartment_id=compartment,
    vcn_id=vcn.id,
    cidr_block="10.0.1.0/24",
    security_list_ids=[rules.id],
    prohibit_public_ip_on_vnic=True,
)
bucket = oci.objectstorage.Bucket("bucket", compartment_id=compartment, namespace=namespace, name="vision-dt")
group = oci.logging.LogGroup("logs", compartment_id=compartment, display_name="logs")
log = oci.logging.Log("runs", log_group_id=group.id, display_name="runs", log_type="CUSTOM")
project = oci.datascience.Project("project", compartment_id=compartment, display_name="p")
job = oci.datascience.Job(
    "job",
    compartment_id=compartment,
    project_id=project.id,
    display_name="job",
    delete_related_job_runs=True,
    job_artifact="train.py",
    artifact_content_length="100",
    artifact_content_disposition="attachment; filename=train.py",
    job_configuration_details={"job_type": "DEFAULT", "maximum_runtime_in_minutes": "5"},
    job_infrastructure_configuration_details={
        "job_infrastructure_type": "ME_STANDALONE",
        "shape_name": "VM.Standard2.1",
        "block_storage_size_in_gbs": 50,
    },
)


class Run(pulumi.CustomResource):
    state: pulumi.Output[str]

    def __init__(self, name: str, inputs: dict[str, object]) -> None:
        options = pulumi.ResourceOptions(delete_before_replace=config.get_bool("deleteFirst"))
        super().__init__("trainyard:index:Run", name, {**inputs, "state": None, "nodeRuns": None}, options)


node = {
    "name": "main",
    "role": "main",
    "rank": 0,
    "environment": {"TOKEN": config.require_secret("token"), "EXIT_CODE": config.get("exit") or "0"},
    "arguments": ["--epochs", config.get("epochs") or "1", "--seconds", config.get("seconds") or "0"],
}
run = Run(
    "run",
    {
        "platform": "oci",
        "job": job.id,
        "project": project.id,
        "compartment": compartment,
        "displayName": "run",
        "nodes": [node],
        "logGroup": group.id,
        "log": log.id,
        "until": config.get("until") or "finished",
        "tags": {"team": config.get("team") or "vision"},
        "attempt": config.get_int("attempt") or 1,
    },
)
pulumi.export("state", run.state)
pulumi.export("subnet", subnet.id)
