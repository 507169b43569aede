# SPDX-License-Identifier: Apache-2.0
"""Search of the local OCI, by Oracle's SDK: it finds resources by tags, and shows what its caller may list."""

from __future__ import annotations

from typing import Any

import oci
import pytest
from oci.exceptions import ServiceError
from oci.resource_search import ResourceSearchClient

from localcloud.control import Cloud
from tests.support.cloud_fixture import Clients
from tests.support.cloud_world import World

OURS = "(freeformTags.key = 'managed-by' && freeformTags.value = 'us')"


def _client(cloud: Cloud, profile: str) -> ResourceSearchClient:
    config = oci.config.from_file(str(cloud.config_file), profile)
    return ResourceSearchClient(config, service_endpoint=cloud.endpoint, retry_strategy=oci.retry.NoneRetryStrategy())


def _search(client: ResourceSearchClient, query: str, **options: Any) -> Any:
    return client.search_resources(oci.resource_search.models.StructuredSearchDetails(query=query), **options)


def _names(client: ResourceSearchClient, query: str) -> set[str]:
    return {item.display_name for item in _search(client, query).data.items}


@pytest.fixture(scope="module")
def made(shared_cloud: Cloud) -> Clients:
    clients = Clients(shared_cloud)
    place: dict[str, Any] = {"compartment_id": shared_cloud.compartment, "freeform_tags": {"managed-by": "us"}}
    models = oci.core.models
    vcn = models.CreateVcnDetails(cidr_block="10.7.0.0/16", display_name="ours", **place)
    clients.network.create_vcn(vcn)
    bucket = oci.object_storage.models.CreateBucketDetails(name="our-bucket", **place)
    clients.storage.create_bucket(shared_cloud.namespace, bucket)
    return clients


def test_search_finds_by_tags_and_pages_and_refuses_what_it_cannot_read(shared_cloud: Cloud, made: Clients) -> None:
    client = _client(shared_cloud, "deployer")
    assert _names(client, f"query all resources where {OURS}") == {"ours", "our-bucket"}
    assert _names(client, f"query vcn, Subnet resources where {OURS} && lifecycleState = 'available'") == {"ours"}
    assert _names(client, f"query all resources where {OURS} && displayName != 'ours'") == {"our-bucket"}
    assert _names(client, "query bucket resources where displayName = 'none' || displayName = 'our-bucket'") == {
        "our-bucket"
    }
    first = _search(client, f"query all resources where {OURS}", limit=1)
    assert len(first.data.items) == 1
    rest = _search(client, f"query all resources where {OURS}", limit=1, page=first.headers["opc-next-page"])
    assert {first.data.items[0].display_name, rest.data.items[0].display_name} == {"ours", "our-bucket"}
    found = _search(client, "query vcn resources where displayName = 'ours'").data.items[0]
    assert (found.resource_type, found.compartment_id) == ("Vcn", shared_cloud.compartment)
    assert found.time_created is not None

    for query in (
        "find all", "query spaceship resources", "query all resources where colour = 'red'", "query all",
        "query all resources where displayName > 'a'", "query all resources sorted by displayName",
        "query all resources where (",
        "query all resources where " + "(" * 300 + "displayName = 'a'" + ")" * 300,
    ):  # fmt: skip
        with pytest.raises(ServiceError) as refused:
            _search(client, query)
        assert (refused.value.status, refused.value.code) == (400, "InvalidParameter"), query
    with pytest.raises(ServiceError, match="free text"):
        client.search_resources(oci.resource_search.models.FreeTextSearchDetails(text="ours"))


def test_search_finds_job_runs_by_when_they_were_accepted(world: World) -> None:
    job = world.job("print(1)", name="search.py")
    runs = [world.run(job, display_name=name) for name in ("searched-1", "searched-2")]
    query = "query datasciencejobrun resources where displayName = 'searched-1' || displayName = 'searched-2'"
    found = _search(_client(world.clients.cloud, "deployer"), query).data.items
    assert {(item.identifier, item.time_created) for item in found} == {(run.id, run.time_accepted) for run in runs}


def test_search_shows_what_the_caller_may_list(shared_cloud: Cloud, made: Clients) -> None:
    identity, user = Clients(shared_cloud).identity, _client(shared_cloud, "user")
    query = f"query all resources where {OURS}"
    assert _names(_client(shared_cloud, "deployer"), query) == {"ours", "our-bucket"}
    assert _names(user, query) == set()
    statements = [f"Allow any-user to inspect buckets in compartment id {shared_cloud.compartment}"]
    details = oci.identity.models.CreatePolicyDetails(
        compartment_id=shared_cloud.compartment, name="searchers", description="searchers", statements=statements
    )
    policy = identity.create_policy(details).data.id
    try:
        assert _names(user, query) == {"our-bucket"}
    finally:
        identity.delete_policy(policy)
