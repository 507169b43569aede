# SPDX-License-Identifier: Apache-2.0
"""Runs whose nodes are hosts of a subnet, against the same runs without a subnet, both on the local cloud."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.harness.rows import Aim, Row, in_turns
from localcloud import control

# By the number of nodes: how many more seconds than without a subnet the run may take until all nodes have ended.
AIMS: Mapping[int, float] = {2: 0.5, 64: 15.0}
SCRIPT = "import os; print(os.environ['NODE_RANK'])"
CIDR = "10.0.0.0/16"


def rows() -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "cloud"
        try:
            tenancy = Tenancy(control.start_cloud(home))
            return [_row(tenancy, nodes, aim) for nodes, aim in AIMS.items()]
        finally:
            control.stop_cloud(home)


def _row(tenancy: Tenancy, nodes: int, aim: float) -> Row:
    layouts = [tenancy.layout(nodes, subnet) for subnet in (tenancy.subnet, "")]
    hosts, plain = in_turns(*(lambda layout=layout: tenancy.run(layout) for layout in layouts))
    more = statistics.median(one - other for one, other in zip(hosts, plain, strict=True))
    floor = statistics.median(plain)
    return Row(
        f"{nodes} nodes", more, "s", "more than without a subnet", floor, (floor + more) / floor, Aim("figure", aim)
    )


class Tenancy:
    """The resources that the runs need, made once through Oracle's SDK."""

    def __init__(self, cloud: control.Cloud) -> None:
        import oci

        config = oci.config.from_file(str(cloud.config_file))
        options = {"config": config, "service_endpoint": cloud.endpoint}
        self._models, self._science = oci.data_science.models, oci.data_science.DataScienceClient(**options)
        network, core = oci.core.VirtualNetworkClient(**options), oci.core.models
        statement = "allow service datascience to use virtual-network-family in tenancy"
        oci.identity.IdentityClient(**options).create_policy(
            oci.identity.models.CreatePolicyDetails(
                compartment_id=cloud.tenancy, name="service", description="service", statements=[statement]
            )
        )
        self._place = {"compartment_id": cloud.compartment}
        vcn = network.create_vcn(core.CreateVcnDetails(**self._place, cidr_blocks=[CIDR])).data.id
        details = core.CreateSubnetDetails(**self._place, vcn_id=vcn, cidr_block="10.0.1.0/24")
        self.subnet = str(network.create_subnet(details).data.id)
        project = self._science.create_project(self._models.CreateProjectDetails(**self._place)).data.id
        self._place["project_id"] = project
        self._job = self._science.create_job(
            self._models.CreateJobDetails(
                **self._place,
                job_configuration_details=self._models.DefaultJobConfigurationDetails(),
                job_infrastructure_configuration_details=(
                    self._models.ManagedEgressStandaloneJobInfrastructureConfigurationDetails(
                        shape_name="VM.Standard2.1", block_storage_size_in_gbs=50
                    )
                ),
            )
        ).data.id
        self._science.create_job_artifact(self._job, SCRIPT.encode(), content_disposition="attachment; filename=it.py")

    def layout(self, nodes: int, subnet: str) -> Any:
        group = self._models.JobNodeGroupConfigurationDetails(name="nodes", replicas=nodes)
        network = self._models.JobCustomNetworkConfiguration(subnet_id=subnet) if subnet else None
        return self._models.MultiNodeJobNodeConfigurationDetails(
            job_network_configuration=network, job_node_group_configuration_details_list=[group]
        )

    def run(self, layout: Any) -> float:
        started = time.perf_counter()
        details = self._models.CreateJobRunDetails(
            **self._place, job_id=self._job, job_node_configuration_override_details=layout
        )
        run = self._science.create_job_run(details).data
        while run.lifecycle_state in ("ACCEPTED", "IN_PROGRESS"):
            time.sleep(0.02)
            run = self._science.get_job_run(run.id).data
        if run.lifecycle_state != "SUCCEEDED":
            raise RuntimeError(f"{run.lifecycle_state}: {run.lifecycle_details}")
        return time.perf_counter() - started
