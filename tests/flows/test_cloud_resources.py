# SPDX-License-Identifier: Apache-2.0
"""Every kind of resource through the official SDK: created, read, updated, listed, deleted, gone."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import oci
import pytest

from localcloud import admin
from localcloud.control import Cloud
from tests.cloud_fixture import Clients
from tests.flows.cloud_world import World

core, identity, science = oci.core.models, oci.identity.models, oci.data_science.models
Details = Callable[[World], Any]
ALL_TCP = core.EgressSecurityRule(destination="10.0.0.0/16", protocol="6")
SSH = core.IngressSecurityRule(
    source="10.0.0.0/16",
    protocol="6",
    tcp_options=core.TcpOptions(destination_port_range=core.PortRange(min=22, max=22)),
)


@dataclass(frozen=True)
class Case:
    """How one kind is made and changed; `gone` is its last state, empty where it is then not found."""

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


@pytest.fixture(scope="module")
def world(shared_cloud: Cloud) -> World:
    return World(Clients(shared_cloud))


def _items(listed: Any) -> list[str]:
    return [item.id for item in getattr(listed, "items", listed)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.kind)
def test_a_life(world: World, case: Case) -> None:
    client = getattr(world.clients, case.client)
    get, update, delete = (getattr(client, f"{verb}_{case.kind}") for verb in ("get", "update", "delete"))
    list_ = getattr(client, f"list_{case.plural or case.kind + 's'}")
    made = getattr(client, f"create_{case.kind}")(case.create(world)).data
    read = get(made.id)
    assert read.data.lifecycle_state == case.ready
    assert made.id in _items(list_(compartment_id=case.listed_in(world)).data)
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


def _within(wanted: Any, found: Any) -> bool:
    """Everything that was asked for is there; the service may add defaults."""
    if isinstance(wanted, dict):
        return all(value is None or _within(value, found[key]) for key, value in wanted.items())
    if isinstance(wanted, list):
        return len(wanted) == len(found) and all(map(_within, wanted, found))
    return bool(wanted == found)


def test_a_vcn_brings_its_defaults_and_takes_them(world: World) -> None:
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
    for delete, identifier in (
        (client.delete_route_table, vcn.default_route_table_id),
        (client.delete_vcn, vcn.id),
    ):
        with pytest.raises(oci.exceptions.ServiceError) as held:
            delete(identifier)
        assert (held.value.status, held.value.code) == (409, "Conflict")
    client.delete_subnet(subnet.id)
    client.delete_vcn(vcn.id)
    assert client.get_route_table(vcn.default_route_table_id).data.lifecycle_state == "TERMINATED"


def test_routes_hold_gateways_and_subnets_hold_routes(world: World) -> None:
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
def test_a_subnet_lies_in_its_vcn(world: World, cidr: str) -> None:
    with pytest.raises(oci.exceptions.ServiceError) as refused:
        world.clients.network.create_subnet(_in_vcn(core.CreateSubnetDetails, cidr_block=cidr)(world))
    assert (refused.value.status, refused.value.code) == (400, "InvalidParameter")


def test_subnets_do_not_overlap(world: World) -> None:
    create = world.clients.network.create_subnet
    create(_in_vcn(core.CreateSubnetDetails, cidr_block="10.0.32.0/20")(world))
    with pytest.raises(oci.exceptions.ServiceError) as refused:
        create(_in_vcn(core.CreateSubnetDetails, cidr_block="10.0.40.0/24")(world))
    assert refused.value.status == 400


def test_blocks_of_a_vcn_change(world: World) -> None:
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


def test_rules_of_a_security_group(world: World) -> None:
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


def test_log_groups_and_logs_answer_with_work_requests(world: World) -> None:
    client, models = world.clients.logging, oci.logging.models
    details = models.CreateLogGroupDetails(compartment_id=world.compartment, display_name="group")
    response = client.create_log_group(details)
    assert (response.status, response.data) == (202, None)
    group = world.made(response)
    request = client.get_work_request(response.headers["opc-work-request-id"]).data
    assert ("loggroup" in request.resources[0].entity_type, request.resources[0].action_type) == (True, "CREATED")
    log = world.made(client.create_log(group, models.CreateLogDetails(display_name="log", log_type="CUSTOM")))
    world.made(client.update_log(group, log, models.UpdateLogDetails(is_enabled=False)))
    assert client.get_log(group, log).data.lifecycle_state == "INACTIVE"
    assert [item.id for item in client.list_logs(group).data] == [log]
    refused_calls: tuple[Callable[[], Any], ...] = (
        lambda: client.create_log_group(details),
        lambda: client.create_log(group, models.CreateLogDetails(display_name="log", log_type="CUSTOM")),
        lambda: client.delete_log_group(group),
    )
    for call in refused_calls:
        with pytest.raises(oci.exceptions.ServiceError) as refused:
            call()
        assert refused.value.status == 409
    world.made(client.delete_log(group, log))
    world.made(client.update_log_group(group, models.UpdateLogGroupDetails(description="changed")))
    assert client.get_log_group(group).data.description == "changed"
    world.made(client.delete_log_group(group))
    with pytest.raises(oci.exceptions.ServiceError) as gone:
        client.get_log_group(group)
    assert gone.value.status == 404


def test_entries_put_are_entries_found(world: World) -> None:
    models = oci.loggingingestion.models
    entries = [models.LogEntry(data=text, id=text, time="2026-01-01T00:00:00Z") for text in ("first", '{"n": 2}')]
    batch = models.LogEntryBatch(
        entries=entries, source="me", type="t", defaultlogentrytime="2026-01-01T00:00:00Z", subject="s"
    )
    world.clients.log_ingestion.put_logs(world.log, models.PutLogsDetails(specversion="1.0", log_entry_batches=[batch]))
    details = oci.loggingsearch.models.SearchLogsDetails(
        time_start="2025-12-31T00:00:00Z", time_end="2026-01-02T00:00:00Z",
        search_query=f"search \"{world.compartment}/{world.log_group}/{world.log}\" | where source = 'me' | limit 10",
    )  # fmt: skip
    found = world.clients.log_search.search_logs(details).data.results
    assert {str(item.data["logContent"]["data"]) for item in found} == {"{'message': 'first'}", "{'n': 2}"}


def test_a_bucket_and_its_objects(world: World) -> None:
    client, models = world.clients.storage, oci.object_storage.models
    namespace = client.get_namespace().data
    details = models.CreateBucketDetails(name="data", compartment_id=world.compartment)
    made = client.create_bucket(namespace, details)
    with pytest.raises(oci.exceptions.ServiceError) as taken:
        client.create_bucket(namespace, details)
    assert (taken.value.status, taken.value.code) == (409, "BucketAlreadyExists")
    assert client.head_bucket(namespace, "data").headers["etag"] == made.headers["etag"]
    client.update_bucket(namespace, "data", models.UpdateBucketDetails(freeform_tags={"a": "b"}))
    for name in ("a/b c", "a/d", "../climb", "ü"):
        client.put_object(namespace, "data", name, name.encode(), opc_meta={"owner": "me"})
    read = client.get_object(namespace, "data", "a/b c")
    assert (read.data.content, read.headers["opc-meta-owner"]) == (b"a/b c", "me")
    assert client.get_object(namespace, "data", "a/d", range="bytes=1-1").data.content == b"/"
    head = client.head_object(namespace, "data", "ü")
    assert head.headers["content-length"] == "2"
    assert client.get_bucket(namespace, "data", fields=["approximateCount"]).data.approximate_count == 4
    listed = client.list_objects(namespace, "data", delimiter="/", fields="size").data
    assert ([item.name for item in listed.objects], listed.prefixes) == (["ü"], ["../", "a/"])
    first = client.list_objects(namespace, "data", limit=3).data
    rest = client.list_objects(namespace, "data", start=first.next_start_with).data
    assert [item.name for item in (*first.objects, *rest.objects)] == ["../climb", "a/b c", "a/d", "ü"]
    with pytest.raises(oci.exceptions.ServiceError) as full:
        client.delete_bucket(namespace, "data")
    assert (full.value.status, full.value.code) == (409, "BucketNotEmpty")
    for name in ("a/b c", "a/d", "../climb", "ü"):
        client.delete_object(namespace, "data", name)
    client.delete_bucket(namespace, "data")
    with pytest.raises(oci.exceptions.ServiceError) as gone:
        client.get_bucket(namespace, "data")
    assert (gone.value.status, gone.value.code) == (404, "BucketNotFound")
    assert [path for path in (world.clients.cloud.home / "objects").iterdir() if path.is_file()] == []


def test_a_large_object_and_conditional_writes(world: World) -> None:
    client, models = world.clients.storage, oci.object_storage.models
    namespace = client.get_namespace().data
    client.create_bucket(namespace, models.CreateBucketDetails(name="big", compartment_id=world.compartment))
    content = bytes(range(256)) * 80_000
    etag = client.put_object(namespace, "big", "model", content).headers["etag"]
    assert client.get_object(namespace, "big", "model").data.content == content
    for condition in ({"if_none_match": "*"}, {"if_match": "stale"}):
        with pytest.raises(oci.exceptions.ServiceError) as refused:
            client.put_object(namespace, "big", "model", b"", **condition)
        assert refused.value.status == 412
    client.put_object(namespace, "big", "model", b"new", if_match=etag)
    client.rename_object(namespace, "big", models.RenameObjectDetails(source_name="model", new_name="renamed"))
    assert client.get_object(namespace, "big", "renamed").data.content == b"new"


def test_images_are_found_by_tag_and_digest(world: World) -> None:
    client = world.clients.artifacts
    admin.push_image(world.clients.cloud, "iad.ocir.io/trainyardlocal/team/image:7")
    images = client.list_container_images(
        world.clients.cloud.tenancy, repository_name="team/image", version="7"
    ).data.items
    assert [image.display_name for image in images] == ["team/image:7"]
    assert client.get_container_image(images[0].id).data.digest == images[0].digest
    repository = client.list_container_repositories(
        world.clients.cloud.tenancy, compartment_id_in_subtree=True, display_name="team/image"
    ).data.items[0]
    assert (repository.compartment_id, repository.image_count) == (world.clients.cloud.tenancy, 1)
    client.delete_container_repository(repository.id)
    assert client.get_container_image(images[0].id).data.lifecycle_state == "DELETED"


def test_the_tenancy_as_it_is(world: World) -> None:
    client, tenancy = world.clients.identity, world.clients.cloud.tenancy
    assert client.get_tenancy(tenancy).data.home_region_key == "IAD"
    assert client.get_compartment(world.compartment).data.compartment_id == tenancy
    assert [item.id for item in client.list_compartments(tenancy).data] == [world.compartment]
    assert client.list_region_subscriptions(tenancy).data[0].is_home_region
    assert len(client.list_availability_domains(tenancy).data) == 3
    assert {group.name for group in client.list_groups(tenancy).data} >= {"Administrators", "scientists"}
    user = client.list_users(tenancy).data[0]
    assert client.get_user(user.id).data.name == user.name
    services = world.clients.network.list_services().data
    assert [service.cidr_block for service in services][1] == "oci-iad-objectstorage"
