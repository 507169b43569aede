# SPDX-License-Identifier: Apache-2.0
"""What clients notice of the protocol: signatures, tokens, pages, errors."""

import http.client
import json
from email.utils import formatdate
from typing import Any
from urllib.parse import urlsplit

import oci
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from localcloud.control import Cloud
from localcloud.oci.authentication import sign_request
from tests.support.cloud_world import World
from tests.support.signing import Signing
from tests.support.waiting import LONGEST_SECONDS

core = oci.core.models


def _ask(cloud: Cloud, method: str, target: str, headers: dict[str, str], body: bytes = b"") -> tuple[int, Any]:
    connection = http.client.HTTPConnection(urlsplit(cloud.endpoint).netloc, timeout=LONGEST_SECONDS)
    try:
        connection.request(method, target, body, headers)
        response = connection.getresponse()
        return response.status, json.loads(response.read() or b"null")
    finally:
        connection.close()


@pytest.fixture(scope="module")
def signing(shared_cloud: Cloud) -> Signing:
    return Signing(shared_cloud)


def test_a_signed_call_is_answered(signing: Signing) -> None:
    assert _ask(signing.cloud, "GET", "/n", signing.headers("GET", "/n"))[0] == 200


def test_the_marker_needs_no_signature(signing: Signing) -> None:
    status, marker = _ask(signing.cloud, "GET", "/.trainyard", {})
    assert (status, marker["cloud"], marker["tenancy"]) == (200, "trainyard-local", signing.cloud.tenancy)
    assert str(signing.cloud.home) not in marker.values()


def test_the_marker_refuses_other_host_names_that_resolve_to_this_machine(signing: Signing) -> None:
    status, answer = _ask(signing.cloud, "GET", "/.trainyard", {"host": "rebound.example.com"})
    assert (status, list(answer)) == (403, ["message"])


def _unsigned(signing: Signing) -> dict[str, str]:
    return {}


def _for_another_path(signing: Signing) -> dict[str, str]:
    return signing.headers("GET", "/n/other")


def _for_another_method(signing: Signing) -> dict[str, str]:
    return signing.headers("DELETE", "/n")


def _by_another_key(signing: Signing) -> dict[str, str]:
    other = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return sign_request("GET", "/n", signing.host, b"", signing.key_id, other)


def _by_nobody(signing: Signing) -> dict[str, str]:
    return sign_request("GET", "/n", signing.host, b"", "tenancy/user/fingerprint", signing.key)


def _old(signing: Signing) -> dict[str, str]:
    return signing.headers("GET", "/n", date=formatdate(1_700_000_000, usegmt=True))


def _redated(signing: Signing) -> dict[str, str]:
    return {**_old(signing), "date": formatdate(usegmt=True)}


def _garbage(signing: Signing) -> dict[str, str]:
    return {"authorization": 'Signature keyId="a",headers="date",signature="%%%",algorithm="rsa-sha256"'}


def _forged_token(signing: Signing) -> dict[str, str]:
    return sign_request("GET", "/n", signing.host, b"", "ST$a.e30.c2ln", signing.key)


@pytest.mark.parametrize(
    "forge",
    [
        _unsigned,
        _for_another_path,
        _for_another_method,
        _by_another_key,
        _by_nobody,
        _old,
        _redated,
        _garbage,
        _forged_token,
    ],
)
def test_a_wrong_signature_is_refused(signing: Signing, forge: Any) -> None:
    status, answer = _ask(signing.cloud, "GET", "/n", forge(signing))
    assert (status, answer["code"]) == (401, "NotAuthenticated")


def test_a_signature_for_another_body_is_refused(signing: Signing) -> None:
    target, good, bad = "/20160918/vcns", b'{"a": 1}', b'{"a": 2}'
    headers = signing.headers("POST", target, good)
    status, answer = _ask(signing.cloud, "POST", target, headers, bad)
    assert (status, answer["code"]) == (401, "NotAuthenticated")


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", "CannotParseRequest"),
        (b"{", "CannotParseRequest"),
        (b"[]", "CannotParseRequest"),
        (b"{}", "MissingParameter"),
        (b'{"compartmentId": 1}', "InvalidParameter"),
        (b'{"compartmentId": "x", "cidrBlok": "y"}', "InvalidParameter"),
        (b"[" * 100_000, "CannotParseRequest"),
        (b"\xff\xfe", "CannotParseRequest"),
    ],
)
def test_a_malformed_body_is_a_400(signing: Signing, body: bytes, code: str) -> None:
    target = "/20160918/vcns"
    status, answer = _ask(signing.cloud, "POST", target, signing.headers("POST", target, body), body)
    assert (status, answer["code"]) == (400, code)


def test_a_missing_operation_is_named(signing: Signing) -> None:
    target = "/20160918/drgs/ocid1.drg.oc1..a"
    status, answer = _ask(signing.cloud, "GET", target, signing.headers("GET", target))
    assert (status, answer["code"]) == (400, "MethodNotImplemented")
    assert "GetDrg" in answer["message"]


def test_every_answer_has_a_request_id(world: World) -> None:
    asked = world.clients.storage.get_namespace(opc_client_request_id="mine")
    assert asked.headers["opc-request-id"]
    with pytest.raises(oci.exceptions.ServiceError) as refused:
        world.clients.network.get_vcn("ocid1.vcn.oc1.iad.none")
    assert (refused.value.status, refused.value.code) == (404, "NotAuthorizedOrNotFound")
    assert refused.value.request_id


def test_a_retry_token_gives_the_first_result(world: World) -> None:
    client = world.clients.network

    def create(name: str) -> Any:
        details = core.CreateVcnDetails(compartment_id=world.compartment, cidr_block="10.3.0.0/16", display_name=name)
        return client.create_vcn(details, opc_retry_token="token").data

    first = create("a")
    assert create("a").id == first.id
    with pytest.raises(oci.exceptions.ServiceError) as other:
        create("b")
    client.delete_vcn(first.id)
    with pytest.raises(oci.exceptions.ServiceError) as deleted:
        create("a")
    for refused in (other, deleted):
        assert (refused.value.status, refused.value.code) == (409, "InvalidatedRetryToken")


def test_lists_come_in_pages(world: World) -> None:
    client = world.clients.data_science
    details = oci.data_science.models.CreateProjectDetails(compartment_id=world.compartment)
    made = [client.create_project(details).data.id for _ in range(7)]
    pages, page = [], None
    while True:
        response = client.list_projects(world.compartment, limit=3, sort_by="timeCreated", sort_order="ASC", page=page)
        pages.append([item.id for item in response.data])
        page = response.next_page
        if not page:
            break
    listed = [item for items in pages for item in items if item in made]
    assert listed == made
    assert [len(items) for items in pages[:-1]] == [3] * (len(pages) - 1)


@pytest.mark.parametrize(
    "query", [{"limit": 0}, {"limit": 5000}, {"page": "nonsense"}, {"sort_order": "ASC", "page": "e30="}]
)
def test_an_invalid_page_token_is_refused(world: World, query: dict[str, Any]) -> None:
    with pytest.raises(oci.exceptions.ServiceError) as refused:
        world.clients.data_science.list_projects(world.compartment, **query)
    assert refused.value.status == 400


def test_names_are_unique_where_oci_says_so(world: World) -> None:
    details = oci.artifacts.models.CreateContainerRepositoryDetails(
        compartment_id=world.compartment, display_name="once"
    )
    world.clients.artifacts.create_container_repository(details)
    with pytest.raises(oci.exceptions.ServiceError) as refused:
        world.clients.artifacts.create_container_repository(details)
    assert (refused.value.status, refused.value.code) == (409, "NotAuthorizedOrResourceAlreadyExists")


def test_a_missing_reference_is_a_400(world: World) -> None:
    details = core.CreateSubnetDetails(
        compartment_id=world.compartment, cidr_block="10.0.0.0/24", vcn_id="ocid1.vcn.oc1.iad.none"
    )
    with pytest.raises(oci.exceptions.ServiceError) as refused:
        world.clients.network.create_subnet(details)
    assert (refused.value.status, refused.value.code) == (400, "RelatedResourceNotAuthorizedOrNotFound")
