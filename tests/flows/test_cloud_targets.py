# SPDX-License-Identifier: Apache-2.0
"""A call is judged by what it is about, wherever that is said: who has rights in one compartment tries another."""

from collections.abc import Iterator
from typing import Any

import oci
import pytest
from oci._vendor import requests

from localcloud.control import Cloud
from tests.cloud_fixture import Clients
from tests.flows.cloud_world import World

models = oci.identity.models


@pytest.fixture(scope="module")
def world(shared_cloud: Cloud) -> World:
    return World(Clients(shared_cloud))


@pytest.fixture(scope="module")
def tenant(world: World) -> Iterator[Clients]:
    """Somebody with every right in `training`, and none elsewhere."""
    statement = "allow group scientists to manage all-resources in compartment training"
    details = models.CreatePolicyDetails(
        compartment_id=world.clients.cloud.tenancy, name="tenants", description="tenants", statements=[statement]
    )
    policy = world.clients.identity.create_policy(details).data.id
    yield Clients(world.clients.cloud, "user")
    world.clients.identity.delete_policy(policy)


@pytest.fixture(scope="module")
def other(world: World) -> str:
    """Another team's compartment."""
    details = models.CreateCompartmentDetails(
        compartment_id=world.clients.cloud.tenancy, name="other", description="another team's"
    )
    return str(world.clients.identity.create_compartment(details).data.id)


def _ask(clients: Clients, method: str, target: str, body: Any = None) -> Any:
    signer, endpoint = clients.identity.base_client.signer, clients.cloud.endpoint
    return requests.request(method, f"{endpoint}{target}", json=body, auth=signer, timeout=60)


def test_the_compartment_that_the_query_names_does_not_hide_that_of_the_body(world: World, tenant: Clients) -> None:
    asked = {
        "compartmentId": world.clients.cloud.tenancy, "name": "everything", "description": "everything",
        "statements": ["allow group scientists to manage all-resources in tenancy"],
    }  # fmt: skip
    answer = _ask(tenant, "POST", f"/20160918/policies?compartmentId={world.compartment}", asked)
    assert (answer.status_code, answer.json()["code"]) == (404, "NotAuthorizedOrNotFound")
    assert [one.name for one in world.clients.identity.list_policies(world.clients.cloud.tenancy).data] == ["tenants"]


def test_the_body_of_a_call_that_has_none_is_not_looked_at(world: World, tenant: Clients, other: str) -> None:
    here = {"compartmentId": world.compartment}
    refused = _ask(tenant, "GET", f"/20190101/jobs?compartmentId={other}", here)
    assert (refused.status_code, refused.json()["code"]) == (404, "NotAuthorizedOrNotFound")
    # Who sends one is answered as if there were none.
    answered = _ask(tenant, "GET", f"/20190101/jobs?compartmentId={world.compartment}", {"compartmentId": other})
    assert (answered.status_code, answered.json()) == (200, [])
