# SPDX-License-Identifier: Apache-2.0
"""Creates, reads, updates, lists and deletes every kind of resource through the official SDK."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import oci
import pytest

from localcloud.oci import sdk
from localcloud.oci.models import ALWAYS_SENT
from tests.support.cloud_world import World, refusal
from tests.support.network_world import Network

core, identity, science = oci.core.models, oci.identity.models, oci.data_science.models
Details = Callable[[World], Any]
ALWAYS = {*ALWAYS_SENT, "id", "compartmentId", "lifecycleState", "timeCreated"}
ALL_TCP = core.EgressSecurityRule(destination="10.0.0.0/16", protocol="6")
SSH = core.IngressSecurityRule(
    source="10.0.0.0/16",
    protocol="6",
    tcp_options=core.TcpOptions(destination_port_range=core.PortRange(min=22, max=22)),
)


@dataclass(frozen=True)
class Case:
    """How one kind is made and changed. `gone`: the state after its deletion; empty if it is not found any more."""

    client: str
    kind: str
    create: Details
    update: Mapping[str, Any]
    updated: type
    gone: str
    plural: str = ""
    ready: str = "ACTIVE"
    listed_in: Callable[[World], str] = lambda world: world.compartment


def _in_compartment(model: type, **more: Any) -> Details:
    return lambda world: model(compartment_id=world.compartment, **more)


def _in_vcn(model: type, **more: Any) -> Details:
    return lambda world: model(compartment_id=world.compartment, vcn_id=world.vcn.id, **more)


def _network(kind: str, create: Details, updated: type, plural: str = "", **update: Any) -> Case:
    changes = update or {"display_name": "changed"}
    return Case("network", kind, create, changes, updated, "TERMINATED", plural, ready="AVAILABLE")


def _service_gateway(world: World) -> Any:
    service = world.clients.network.list_services().data[0]
    return core.CreateServiceGatewayDetails(
        compartment_id=world.compartment,
        vcn_id=world.vcn.id,
        services=[core.ServiceIdRequestDetails(service_id=service.id)],
    )


def _job(world: World) -> Any:
    return science.CreateJobDetails(
        compartment_id=world.compartment,
        project_id=world.project,
        job_configuration_details=science.DefaultJobConfigurationDetails(),
        job_environment_configuration_details=science.OcirContainerJobEnvironmentConfigurationDetails(image="i"),
        job_infrastructure_configuration_details=science.ManagedEgressStandaloneJobInfrastructureConfigurationDetails(
            shape_name="VM.Standard2.1", block_storage_size_in_gbs=50
        ),
    )


STATEMENT = "allow group scientists to read buckets in tenancy"
CASES = (
    _network("vcn", _in_compartment(core.CreateVcnDetails, cidr_block="10.1.0.0/16"), core.UpdateVcnDetails),
    _network("subnet", _in_vcn(core.CreateSubnetDetails, cidr_block="10.0.1.0/24"), core.UpdateSubnetDetails),
    _network(
        "security_list",
        _in_vcn(core.CreateSecurityListDetails, ingress_security_rules=[SSH], egress_security_rules=[]),
        core.UpdateSecurityListDetails, egress_security_rules=[ALL_TCP],
    ),
    _network("route_table", _in_vcn(core.CreateRouteTableDetails, route_rules=[]), core.UpdateRouteTableDetails),
    _network("nat_gateway", _in_vcn(core.CreateNatGatewayDetails), core.UpdateNatGatewayDetails, block_traffic=True),
    _network(
        "internet_gateway", _in_vcn(core.CreateInternetGatewayDetails, is_enabled=True),
        core.UpdateInternetGatewayDetails,
    ),
    _network("service_gateway", _service_gateway, core.UpdateServiceGatewayDetails),
    _network(
        "network_security_group",
        _in_vcn(core.CreateNetworkSecurityGroupDetails),
        core.UpdateNetworkSecurityGroupDetails,
    ),
    _network(
        "dhcp_options",
        _in_vcn(core.CreateDhcpDetails, options=[core.DhcpDnsOption(server_type="VcnLocalPlusInternet")]),
        core.UpdateDhcpDetails, plural="dhcp_options",
    ),
    Case(
        "identity", "group",
        lambda world: identity.CreateGroupDetails(
            compartment_id=world.clients.cloud.tenancy, name="g", description="g"
        ),
        {"description": "changed"}, identity.UpdateGroupDetails, "DELETED",
        listed_in=lambda world: world.clients.cloud.tenancy,
    ),
    Case(
        "identity", "user",
        lambda world: identity.CreateUserDetails(compartment_id=world.clients.cloud.tenancy, name="u", description="u"),
        {"description": "changed"}, identity.UpdateUserDetails, "DELETED",
        listed_in=lambda world: world.clients.cloud.tenancy,
    ),
    Case(
        "identity", "dynamic_group",
        lambda world: identity.CreateDynamicGroupDetails(
            compartment_id=world.clients.cloud.tenancy, name="runs", description="runs",
            matching_rule="ALL {resource.type = 'datasciencejobrun'}",
        ),
        {"description": "changed"}, identity.UpdateDynamicGroupDetails, "DELETED",
        listed_in=lambda world: world.clients.cloud.tenancy,
    ),
    Case(
        "identity", "policy",
        lambda world: identity.CreatePolicyDetails(
            compartment_id=world.clients.cloud.tenancy, name="p", description="p", statements=[STATEMENT]
        ),
        {"statements": [STATEMENT, STATEMENT.replace("read", "use")]}, identity.UpdatePolicyDetails, "DELETED",
        plural="policies", listed_in=lambda world: world.clients.cloud.tenancy,
    ),
    Case(
        "artifacts", "container_repository",
        _in_compartment(oci.artifacts.models.CreateContainerRepositoryDetails, display_name="vision/dt"),
        {"is_public": True}, oci.artifacts.models.UpdateContainerRepositoryDetails, "DELETED",
        plural="container_repositories", ready="AVAILABLE",
    ),
    Case(
        "data_science", "project", _in_compartment(science.CreateProjectDetails, display_name="p"),
        {"description": "changed"}, science.UpdateProjectDetails, "DELETED",
    ),
    Case("data_science", "job", _job, {"display_name": "changed"}, science.UpdateJobDetails, "DELETED"),
)  # fmt: skip


def _items(listed: Any) -> list[str]:
    return [item.id for item in getattr(listed, "items", listed)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.kind)
def test_a_resource_is_created_read_listed_updated_and_deleted(world: World, case: Case) -> None:
    client = getattr(world.clients, case.client)
    get, update, delete = (getattr(client, f"{verb}_{case.kind}") for verb in ("get", "update", "delete"))
    list_ = getattr(client, f"list_{case.plural or case.kind + 's'}")
    made = getattr(client, f"create_{case.kind}")(case.create(world)).data
    read = get(made.id)
    assert read.data.lifecycle_state == case.ready
    listed = list_(compartment_id=case.listed_in(world)).data
    assert made.id in _items(listed)
    for model in (made, read.data, *getattr(listed, "items", listed)):
        assert not _left_out(model)
    with pytest.raises(oci.exceptions.ServiceError) as stale:
        update(made.id, case.updated(**case.update), if_match="stale")
    assert (stale.value.status, stale.value.code) == (412, "NoEtagMatch")
    changed = update(made.id, case.updated(**case.update), if_match=read.headers["etag"])
    assert changed.headers["etag"] != read.headers["etag"]
    for name, value in case.update.items():
        found = getattr(get(made.id).data, name)
        plain = oci.util.to_dict(found), oci.util.to_dict(value)
        assert _within(plain[1], plain[0])
    delete(made.id)
    assert get(made.id).data.lifecycle_state == case.gone
    assert made.id not in _items(list_(compartment_id=case.listed_in(world)).data)
    with pytest.raises(oci.exceptions.ServiceError) as missing:
        delete(made.id)
    assert (missing.value.status, missing.value.code) == (404, "NotAuthorizedOrNotFound")


def _left_out(model: Any) -> set[str]:
    """Required fields of the model that this cloud did not send."""
    _, service, *_ = type(model).__module__.split(".")
    fields = sdk.sdk_model(service, type(model).__name__).fields
    always = {name for name, field in fields.items() if field.required or name in ALWAYS}
    return always - {model.attribute_map[name] for name in model.swagger_types if getattr(model, name) is not None}


def _within(wanted: Any, found: Any) -> bool:
    """Everything that was asked for is there; the service may add defaults."""
    if isinstance(wanted, dict):
        return all(value is None or _within(value, found[key]) for key, value in wanted.items())
    if isinstance(wanted, list):
        return len(wanted) == len(found) and all(map(_within, wanted, found))
    return bool(wanted == found)


def test_a_vcn_is_created_and_deleted_with_its_defaults(world: World) -> None:
    client = world.clients.network
    vcn = client.create_vcn(_in_compartment(core.CreateVcnDetails, cidr_blocks=["10.9.0.0/16"])(world)).data
    rules = client.get_security_list(vcn.default_security_list_id).data.ingress_security_rules
    assert [rule.source for rule in rules] == ["0.0.0.0/0", "0.0.0.0/0", "10.9.0.0/16"]
    assert client.get_dhcp_options(vcn.default_dhcp_options_id).data.options[0].type == "DomainNameServer"
    subnet = client.create_subnet(
        core.CreateSubnetDetails(compartment_id=world.compartment, vcn_id=vcn.id, cidr_block="10.9.1.0/24")
    ).data
    assert (subnet.route_table_id, subnet.security_list_ids) == (
        vcn.default_route_table_id,
        [vcn.default_security_list_id],
    )
    for delete, identifier in ((client.delete_route_table, vcn.default_route_table_id), (client.delete_vcn, vcn.id)):
        with pytest.raises(oci.exceptions.ServiceError) as held:
            delete(identifier)
        assert (held.value.status, held.value.code) == (409, "Conflict")
    client.delete_subnet(subnet.id)
    client.delete_vcn(vcn.id)
    assert client.get_route_table(vcn.default_route_table_id).data.lifecycle_state == "TERMINATED"


def test_a_gateway_in_a_route_and_a_route_table_of_a_subnet_cannot_be_deleted(world: World) -> None:
    client = world.clients.network
    gateway = client.create_nat_gateway(_in_vcn(core.CreateNatGatewayDetails)(world)).data
    rule = core.RouteRule(destination="0.0.0.0/0", network_entity_id=gateway.id)
    table = client.create_route_table(_in_vcn(core.CreateRouteTableDetails, route_rules=[rule])(world)).data
    details = _in_vcn(core.CreateSubnetDetails, cidr_block="10.0.7.0/24", route_table_id=table.id)(world)
    subnet = client.create_subnet(details).data
    for delete, identifier in ((client.delete_nat_gateway, gateway.id), (client.delete_route_table, table.id)):
        with pytest.raises(oci.exceptions.ServiceError) as held:
            delete(identifier)
        assert held.value.status == 409
    client.delete_subnet(subnet.id)
    client.delete_route_table(table.id)
    client.delete_nat_gateway(gateway.id)


@pytest.mark.parametrize("cidr", ["10.0.0.0/31", "10.0.1.1/24", "192.168.0.0/24", "nonsense"])
def test_a_subnet_outside_of_its_vcn_is_refused(world: World, cidr: str) -> None:
    with pytest.raises(oci.exceptions.ServiceError) as refused:
        world.clients.network.create_subnet(_in_vcn(core.CreateSubnetDetails, cidr_block=cidr)(world))
    assert (refused.value.status, refused.value.code) == (400, "InvalidParameter")


def test_subnets_do_not_overlap(world: World) -> None:
    create = world.clients.network.create_subnet
    create(_in_vcn(core.CreateSubnetDetails, cidr_block="10.0.32.0/20")(world))
    with pytest.raises(oci.exceptions.ServiceError) as refused:
        create(_in_vcn(core.CreateSubnetDetails, cidr_block="10.0.40.0/24")(world))
    assert refused.value.status == 400


def test_the_router_of_a_subnet_has_a_mac_address(world: World) -> None:
    subnet = world.clients.network.get_subnet(Network(world).subnet("10.0.77.0/24", [], [])).data
    assert re.fullmatch("([0-9A-F]{2}:){5}[0-9A-F]{2}", subnet.virtual_router_mac)


def test_a_subnet_keeps_its_first_address(world: World) -> None:
    client = world.clients.network
    subnet = client.create_subnet(_in_vcn(core.CreateSubnetDetails, cidr_block="10.0.64.0/24")(world)).data.id
    for cidr in ("10.0.64.0/23", "10.0.64.0/25"):
        assert client.update_subnet(subnet, core.UpdateSubnetDetails(cidr_block=cidr)).data.cidr_block == cidr
    with pytest.raises(oci.exceptions.ServiceError, match="same network address") as refused:
        client.update_subnet(subnet, core.UpdateSubnetDetails(cidr_block="10.0.65.0/24"))
    assert refused.value.status == 400


def test_versioning_of_a_bucket_is_not_suspended_before_it_was_on(world: World) -> None:
    storage = oci.object_storage.models
    details = storage.CreateBucketDetails(name="suspended", compartment_id=world.compartment)
    details._versioning = "Suspended"  # the SDK's own model refuses it
    namespace = world.clients.storage.get_namespace().data
    with pytest.raises(oci.exceptions.ServiceError) as refused:
        world.clients.storage.create_bucket(namespace, details)
    assert refused.value.status == 400


def test_cidr_blocks_of_a_vcn_can_be_added_changed_and_removed(world: World) -> None:
    client = world.clients.network
    vcn = client.create_vcn(_in_compartment(core.CreateVcnDetails, cidr_blocks=["10.20.0.0/16"])(world)).data.id
    added = client.add_vcn_cidr(vcn, core.AddVcnCidrDetails(cidr_block="10.21.0.0/16"))
    assert (added.status, bool(added.headers["opc-work-request-id"])) == (202, True)
    details = core.CreateSubnetDetails(compartment_id=world.compartment, vcn_id=vcn, cidr_block="10.21.1.0/24")
    client.create_subnet(details)
    exchange = core.ModifyVcnCidrDetails(original_cidr_block="10.20.0.0/16", new_cidr_block="10.22.0.0/16")
    client.modify_vcn_cidr(vcn, exchange)
    assert client.get_vcn(vcn).data.cidr_blocks == ["10.22.0.0/16", "10.21.0.0/16"]
    for change, block, status in (
        (client.remove_vcn_cidr, core.RemoveVcnCidrDetails(cidr_block="10.21.0.0/16"), 409),
        (client.remove_vcn_cidr, core.RemoveVcnCidrDetails(cidr_block="10.99.0.0/16"), 404),
        (client.add_vcn_cidr, core.AddVcnCidrDetails(cidr_block="10.22.128.0/17"), 400),
    ):
        with pytest.raises(oci.exceptions.ServiceError) as refused:
            change(vcn, block)
        assert refused.value.status == status


def test_rules_of_a_security_group_are_added_changed_and_removed(world: World) -> None:
    client = world.clients.network
    group = client.create_network_security_group(_in_vcn(core.CreateNetworkSecurityGroupDetails)(world)).data.id
    rule = core.AddSecurityRuleDetails(direction="INGRESS", protocol="6", source="10.0.0.0/16")
    details = core.AddNetworkSecurityGroupSecurityRulesDetails(security_rules=[rule])
    added = client.add_network_security_group_security_rules(group, details).data.security_rules[0]
    assert added.is_valid
    change = core.UpdateSecurityRuleDetails(id=added.id, direction="INGRESS", protocol="17", source="10.0.0.0/16")
    changes = core.UpdateNetworkSecurityGroupSecurityRulesDetails(security_rules=[change])
    client.update_network_security_group_security_rules(group, changes)
    assert [rule.protocol for rule in client.list_network_security_group_security_rules(group).data] == ["17"]
    removal = core.RemoveNetworkSecurityGroupSecurityRulesDetails(security_rule_ids=[added.id])
    client.remove_network_security_group_security_rules(group, removal)
    assert client.list_network_security_group_security_rules(group).data == []


@pytest.mark.parametrize(
    "block", ["10.0.0.0/08", "10.0.0.0/255.0.0.0", "10.0.0.0/0.255.255.255", "10.0.0.0/+8", "::/00"]
)
def test_a_block_has_the_form_that_oci_takes(world: World, block: str) -> None:
    client = world.clients.network
    lists = core.UpdateSecurityListDetails(
        ingress_security_rules=[core.IngressSecurityRule(source=block, protocol="all")]
    )
    assert refusal(lambda: client.update_security_list(world.vcn.default_security_list_id, lists))[0] == 400


def test_a_list_has_at_most_200_rules_in_each_direction(world: World) -> None:
    client, default = world.clients.network, world.vcn.default_security_list_id
    before = client.get_security_list(default).data
    for name, kind, end in (
        ("ingress_security_rules", core.IngressSecurityRule, "source"),
        ("egress_security_rules", core.EgressSecurityRule, "destination"),
    ):
        rules = [kind(protocol="all", **{end: f"10.0.{n}.0/24"}) for n in range(201)]
        update = core.UpdateSecurityListDetails(**{name: rules})
        assert refusal(partial(client.update_security_list, default, update)) == (400, "LimitExceeded")
        client.update_security_list(default, core.UpdateSecurityListDetails(**{name: rules[:200]}))
        client.update_security_list(default, core.UpdateSecurityListDetails(**{name: getattr(before, name)}))
