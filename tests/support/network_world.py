# SPDX-License-Identifier: Apache-2.0
"""Networks for nodes: a VCN whose subnets have the rules of the test, and runs in these subnets."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import oci

from localcloud import admin
from tests.support.cloud_world import World
from tests.support.waiting import eventually

SERVICES = "all-iad-services-in-oracle-services-network"
ANYWHERE = "0.0.0.0/0"
PROTOCOLS = {"tcp": "6", "udp": "17", "icmp": "1", "all": "all"}
SERVICES_ADDRESS, OBJECT_STORAGE_ADDRESS = "198.51.100.1", "198.51.100.2"
# Functions for the nodes' scripts: the addresses of all nodes, and connecting with a timeout.
PRELUDE = """
import json, os, socket, sys, time
def peers(count):
    while len(found := json.load(open(os.environ['CLUSTER_NODES_METADATA_FILE']))) < count: time.sleep(0.01)
    return [each['IPAddress'] for each in found]
def reach(address, port, seconds=20.0, patient=True):
    ends = time.monotonic() + seconds
    while True:
        try:
            return socket.create_connection((address, port), timeout=max(0.1, ends - time.monotonic()))
        except ConnectionRefusedError:
            if not patient or time.monotonic() > ends: raise
            time.sleep(0.02)
def tell(*words): print(*words, flush=True)
"""


def ingress(protocol: str, source: str, first: int = 0, last: int = 0, **more: Any) -> Any:
    return oci.core.models.IngressSecurityRule(
        protocol=PROTOCOLS[protocol], source=source, **{**_options(protocol, first, last or first), **more}
    )


def egress(protocol: str, destination: str, first: int = 0, last: int = 0, **more: Any) -> Any:
    kind = "SERVICE_CIDR_BLOCK" if destination == SERVICES else "CIDR_BLOCK"
    return oci.core.models.EgressSecurityRule(
        protocol=PROTOCOLS[protocol], destination=destination, destination_type=kind,
        **{**_options(protocol, first, last or first), **more},
    )  # fmt: skip


def _options(protocol: str, first: int, last: int) -> dict[str, Any]:
    return {f"{protocol}_options": ports(protocol, first, last)} if first else {}


def ports(protocol: str, first: int, last: int, source: tuple[int, int] | None = None) -> Any:
    """The options of a TCP or UDP rule: its ports, and source ports if there are any."""
    models = oci.core.models
    kind = models.TcpOptions if protocol == "tcp" else models.UdpOptions
    return kind(
        destination_port_range=models.PortRange(min=first, max=last) if first else None,
        source_port_range=models.PortRange(min=source[0], max=source[1]) if source else None,
    )


@dataclass
class Network:
    """One VCN, made on first use."""

    world: World
    cidr: str = "10.0.0.0/16"
    lists: dict[str, str] = field(default_factory=dict)

    @property
    def client(self) -> Any:
        return self.world.clients.network

    @cached_property
    def vcn(self) -> Any:
        let_the_service_attach(self.world)
        models = oci.core.models
        details = models.CreateVcnDetails(compartment_id=self.world.compartment, cidr_blocks=[self.cidr])
        return self.client.create_vcn(details).data

    def subnet(self, cidr: str, ins: Sequence[Any], outs: Sequence[Any], **more: Any) -> str:
        """A subnet with one security list of its own."""
        models, place = oci.core.models, {"compartment_id": self.world.compartment, "vcn_id": self.vcn.id}
        rules = {"ingress_security_rules": list(ins), "egress_security_rules": list(outs)}
        made = self.client.create_security_list(models.CreateSecurityListDetails(**place, **rules)).data
        details = models.CreateSubnetDetails(**place, cidr_block=cidr, security_list_ids=[made.id], **more)
        subnet = str(self.client.create_subnet(details).data.id)
        self.lists[subnet] = made.id
        return subnet

    def change(self, subnet: str, ins: Sequence[Any], outs: Sequence[Any]) -> None:
        details = oci.core.models.UpdateSecurityListDetails(
            ingress_security_rules=list(ins), egress_security_rules=list(outs)
        )
        self.client.update_security_list(self.lists[subnet], details)

    def use(self, subnet: str, *lists: str) -> None:
        self.client.update_subnet(subnet, oci.core.models.UpdateSubnetDetails(security_list_ids=list(lists)))

    def service_gateway(self, label: str = SERVICES) -> str:
        models, place = oci.core.models, {"compartment_id": self.world.compartment, "vcn_id": self.vcn.id}
        (service,) = [each for each in self.client.list_services().data if each.cidr_block == label]
        named = [models.ServiceIdRequestDetails(service_id=service.id)]
        return str(
            self.client.create_service_gateway(models.CreateServiceGatewayDetails(**place, services=named)).data.id
        )

    def route(self, destination: str, gateway: str) -> None:
        """Adds a route to the VCN's default route table."""
        models = oci.core.models
        kind = "CIDR_BLOCK" if destination[0].isdigit() else "SERVICE_CIDR_BLOCK"
        rule = models.RouteRule(destination=destination, destination_type=kind, network_entity_id=gateway)
        table = self.client.get_route_table(self.vcn.default_route_table_id).data
        details = models.UpdateRouteTableDetails(route_rules=[*table.route_rules, rule])
        self.client.update_route_table(table.id, details)

    def job(self, script: str, subnet: str, **more: Any) -> str:
        infrastructure = oci.data_science.models.StandaloneJobInfrastructureConfigurationDetails(
            shape_name="VM.Standard2.1", block_storage_size_in_gbs=50, subnet_id=subnet
        )
        return self.world.job(PRELUDE + script, job_infrastructure_configuration_details=infrastructure, **more)

    def run(self, script: str, subnet: str, **variables: str) -> Any:
        """A run of one node."""
        return self.world.run(self.job(script, subnet, variables=variables))

    def cluster(self, script: str, subnet: str, nodes: int, **variables: str) -> Any:
        """One run of several nodes. They find one another by the metadata file."""
        models = oci.data_science.models
        layout = models.MultiNodeJobNodeConfigurationDetails(
            job_network_configuration=models.JobCustomNetworkConfiguration(subnet_id=subnet),
            job_node_group_configuration_details_list=[
                models.JobNodeGroupConfigurationDetails(name="nodes", replicas=nodes)
            ],
        )
        job = self.world.job(PRELUDE + script, variables=variables, job_node_configuration_details=layout)
        return self.world.run(job)

    def address(self, run: Any) -> str:
        """The address of a running run of one node, from the API."""
        named = lambda: [  # noqa: E731
            vnic.ip_address
            for vnic in self.client.list_private_ips(
                subnet_id=self.world.read(run).job_infrastructure_configuration_details.subnet_id
            ).data
            if vnic.display_name == f"{run.display_name}-0"
        ]
        return str(eventually(named, bool)[0])

    def evidence(self, run: Any) -> Mapping[str, Any]:
        return admin.read_evidence(self.world.clients.cloud, run.id)


def let_the_service_attach(world: World) -> None:
    client, models = world.clients.identity, oci.identity.models
    tenancy = world.clients.cloud.tenancy
    if any(policy.name == "service" for policy in client.list_policies(tenancy).data):
        return
    statement = "allow service datascience to use virtual-network-family in tenancy"
    details = models.CreatePolicyDetails(
        compartment_id=tenancy, name="service", description="service", statements=[statement]
    )
    client.create_policy(details)
