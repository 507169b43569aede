# SPDX-License-Identifier: Apache-2.0
"""Contents of resources: log entries, objects, images, and the new tenancy."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import oci
import pytest

from components.oci.client.logs import last_lines_of_nodes
from components.oci.client.session import DEPLOYER, session_of
from components.platform.calls import ProviderError, call_of
from components.platform.runs import NodeRun
from components.platform.status import NodeStatus
from localcloud import admin
from tests.support.cloud_world import World, refusal
from tests.support.network_world import Network


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


def test_the_only_service_log_is_the_flow_log_of_a_subnet(world: World) -> None:
    client, models, search = world.clients.logging, oci.logging.models, oci.loggingingestion.models
    subnet = Network(world).subnet("10.0.9.0/24", [], [])

    def details(kind: str = "SERVICE", **source: str) -> Any:
        of = models.OciService(**{"service": "flowlogs", "category": "all", "resource": subnet, **source})
        named = f"flows-{'-'.join(source.values())[-60:]}"
        return models.CreateLogDetails(
            display_name=named, log_type=kind, configuration=models.Configuration(source=of)
        )  # fmt: skip

    log = world.made(client.create_log(world.log_group, details()))
    assert client.get_log(world.log_group, log).data.configuration.source.resource == subnet
    for chosen, found in ({"source_resource": subnet}, [log]), ({"source_service": "objectstorage"}, []):
        assert [item.id for item in client.list_logs(world.log_group, log_type="SERVICE", **chosen).data] == found
    entry = search.LogEntry(data="mine", id="1", time="2026-01-01T00:00:00Z")
    batch = search.LogEntryBatch(entries=[entry], source="me", type="t", defaultlogentrytime="2026-01-01T00:00:00Z")
    put = search.PutLogsDetails(specversion="1.0", log_entry_batches=[batch])
    refused_calls: tuple[Callable[[], Any], ...] = (
        lambda: client.create_log(world.log_group, details(service="objectstorage", category="read")),
        lambda: client.create_log(world.log_group, details(category="vcn")),
        lambda: client.create_log(world.log_group, details(resource=f"{subnet}none")),
        lambda: client.create_log(world.log_group, details("CUSTOM", category="all")),
        lambda: client.create_log(world.log_group, models.CreateLogDetails(display_name="bare", log_type="SERVICE")),
        lambda: world.clients.log_ingestion.put_logs(log, put),
    )
    for number, call in enumerate(refused_calls):
        with pytest.raises(oci.exceptions.ServiceError) as refused:
            call()
        assert refused.value.status in (400, 404), number


def test_a_flow_log_may_name_the_compartment_of_its_group_or_of_its_subnet(world: World) -> None:
    """Oracle's own example of a flow log has `compartment_id = ""`."""
    client, models = world.clients.logging, oci.logging.models
    source = models.OciService(
        service="flowlogs", category="all", resource=Network(world).subnet("10.0.8.0/24", [], [])
    )  # fmt: skip

    def made(number: int, place: str | None) -> Any:
        configuration = models.Configuration(source=source, compartment_id=place)
        details = models.CreateLogDetails(
            display_name=f"placed-{number}", log_type="SERVICE", configuration=configuration
        )  # fmt: skip
        return client.get_log(world.log_group, world.made(client.create_log(world.log_group, details))).data

    for number, place in enumerate((None, "", world.compartment)):
        assert made(number, place).configuration.compartment_id == (place or None)
    assert refusal(lambda: made(9, world.clients.cloud.tenancy)) == (400, "InvalidParameter")


def test_a_log_moves_to_another_group_with_its_lines(world: World) -> None:
    client, models = world.clients.logging, oci.logging.models
    group, taken = (
        world.made(
            client.create_log_group(models.CreateLogGroupDetails(compartment_id=world.compartment, display_name=name))
        )
        for name in ("moved-to", "taken")
    )
    log, _ = (
        world.made(client.create_log(place, models.CreateLogDetails(display_name="moving", log_type="CUSTOM")))
        for place in (world.log_group, taken)
    )

    def move(target: str | None) -> Any:
        details = models.ChangeLogLogGroupDetails(target_log_group_id=target)
        return client.change_log_log_group(world.log_group, log, details)

    request = client.get_work_request(move(group).headers["opc-work-request-id"]).data
    assert [(one.entity_type, one.action_type, one.identifier) for one in request.resources] == [
        ("log", "RELATED", log)
    ]  # fmt: skip
    assert client.get_log(group, log).data.log_group_id == group
    assert refusal(lambda: client.get_log(world.log_group, log))[0] == 404
    assert refusal(lambda: client.delete_log_group(group))[0] == 409
    for old, target, status in ((group, taken, 409), (group, f"{group}none", 400), (group, None, 400)):
        details = models.ChangeLogLogGroupDetails(target_log_group_id=target)
        assert refusal(lambda: client.change_log_log_group(old, log, details))[0] == status  # noqa: B023


def test_log_entries_that_were_put_are_found_by_a_search(world: World) -> None:
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


def test_the_last_lines_of_many_nodes_are_read_though_one_of_them_floods_the_log(world: World) -> None:
    models = oci.loggingingestion.models
    place = f"{world.compartment}/{world.log_group}/{world.log}"
    nodes = [NodeStatus(rank, NodeRun(f"n{rank}", f"node-{rank}", "FAILED"), "main", place) for rank in range(40)]
    flooding, silent, began = 20, 30, datetime.now(UTC) - timedelta(minutes=5)
    for node in nodes:
        count = {flooding: 3000, silent: 0}.get(node.rank, 2)
        times = [began + timedelta(seconds=node.rank == flooding, milliseconds=number) for number in range(count)]
        entries = [models.LogEntry(data=f"{node.rank}: {at:%S.%f}", id=f"{node.rank}/{at}", time=at) for at in times]
        batch = models.LogEntryBatch(entries=entries, source=node.run.id, type="t", defaultlogentrytime=began)
        put = models.PutLogsDetails(specversion="1.0", log_entry_batches=[batch])
        if entries:
            world.clients.log_ingestion.put_logs(world.log, put)
    session = session_of(world.clients.cloud, DEPLOYER)
    read = last_lines_of_nodes(session, call_of("test", print), nodes, 200)
    lines = [found for found in read if not isinstance(found, ProviderError)]
    wrong = [
        line
        for node, found in zip(nodes, lines, strict=True)
        for line in found
        if not line.startswith(f"{node.rank}: ")
    ]
    assert wrong == []
    assert [len(found) for found in lines] == [{flooding: 200, silent: 0}.get(node.rank, 2) for node in nodes]
    gone = [replace(node, log=f"{place}none") for node in nodes[:9]]
    assert last_lines_of_nodes(session, call_of("test", print), gone, 200) == [[]] * 9


def test_objects_of_a_bucket_are_put_listed_read_and_deleted(world: World) -> None:
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


def test_a_large_object_is_stored_and_writes_can_be_conditional(world: World) -> None:
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


def test_a_new_tenancy_has_its_compartment_and_home_region(world: World) -> None:
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
