# SPDX-License-Identifier: Apache-2.0
"""The local cloud's registry, by the requests of container tools. A pushed image appears in OCI's API, and policies
control access."""

from __future__ import annotations

import base64
import json
from typing import Any
from urllib.parse import urlsplit

import oci
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from localcloud import admin
from localcloud.control import Cloud
from localcloud.oci.authentication import sign_request
from tests.support.cloud_world import World, refusal
from tests.support.registry_client import MANIFEST, Tool, digest_of, manifest

models = oci.artifacts.models
TOKENS = "/20180419/docker/token"


@pytest.fixture(scope="module")
def deployer(shared_cloud: Cloud) -> Tool:
    return Tool.signed_in(shared_cloud)


def _repository(world: World, name: str, immutable: bool = False) -> str:
    """Makes a repository, and returns its name for tools."""
    details = models.CreateContainerRepositoryDetails(
        compartment_id=world.compartment, display_name=name, is_immutable=immutable
    )
    world.clients.artifacts.create_container_repository(details)
    return f"{world.clients.cloud.namespace}/{name}"


def _images(world: World, name: str) -> list[Any]:
    found: list[Any] = world.clients.artifacts.list_container_images(
        world.compartment, repository_name=name
    ).data.items  # fmt: skip
    return [world.clients.artifacts.get_container_image(image.id).data for image in found]


def test_a_request_without_a_token_is_pointed_to_the_token_service(shared_cloud: Cloud) -> None:
    asked = Tool(shared_cloud).ask("GET", "/v2/")
    assert (asked.status, asked.code) == (401, "UNAUTHORIZED")
    assert f'realm="{shared_cloud.endpoint}/20180419/docker/token"' in asked.headers["www-authenticate"]
    assert Tool(shared_cloud, "nonsense").ask("GET", "/v2/").status == 401
    assert Tool(shared_cloud).ask("GET", "/20180419/docker/token").status == 401
    assert Tool(shared_cloud).ask("GET", "/v2/", Authorization="Basic ???").status == 401


def test_an_identity_token_is_exchanged_for_a_registry_token(deployer: Tool) -> None:
    assert deployer.ask("GET", "/v2/").status == 200
    again = json.loads(deployer.ask("GET", "/20180419/docker/token?scope=repository:a:pull").content)["token"]
    assert Tool(deployer.cloud).ask("GET", "/v2/", Authorization=f"Bearer {again}").status == 200


def test_an_auth_token_is_a_password_until_it_is_deleted(world: World) -> None:
    cloud, identity = world.clients.cloud, world.clients.identity
    user = oci.config.from_file(str(cloud.config_file), "user")["user"]
    details = oci.identity.models.CreateAuthTokenDetails(description="docker on a laptop")
    made = identity.create_auth_token(details, user).data
    [listed] = identity.list_auth_tokens(user).data
    assert (listed.id, listed.description, listed.token) == (made.id, "docker on a laptop", None)

    def login(name: str, password: str) -> int:
        text = base64.b64encode(f"{name}:{password}".encode()).decode()
        return Tool(cloud).ask("GET", "/v2/", Authorization=f"Basic {text}").status

    assert login(f"{cloud.namespace}/user", made.token) == 200
    for name, password in (("user", made.token), (f"{cloud.namespace}/deployer", made.token),
                           (f"{cloud.namespace}/user", "another"), (f"{cloud.namespace}/", "")):  # fmt: skip
        assert login(name, password) == 401
    identity.create_auth_token(details, user)
    assert refusal(lambda: identity.create_auth_token(details, user)) == (400, "InvalidParameter")
    identity.delete_auth_token(user, made.id)
    assert login(f"{cloud.namespace}/user", made.token) == 401
    assert refusal(lambda: identity.delete_auth_token(user, made.id))[0] == 404


def test_the_token_of_a_run_is_not_a_registry_token(world: World) -> None:
    run = world.run(world.job("print('hello')"))
    principal = admin.issue_resource_principal(world.clients.cloud, run.id)
    assert Tool(world.clients.cloud, principal["OCI_RESOURCE_PRINCIPAL_RPST"]).ask("GET", "/v2/").status == 401


def test_a_pushed_image_can_be_listed_and_pulled(world: World, deployer: Tool) -> None:
    repository = _repository(world, "team/pushed")
    pushed = deployer.push(repository, "1.0", b"a layer", Entrypoint=["python"], Cmd=["-V"])
    assert pushed.status == 201
    [image] = _images(world, "team/pushed")
    assert (image.version, image.digest) == ("1.0", pushed.headers["docker-content-digest"])
    assert [(layer.digest, layer.size_in_bytes) for layer in image.layers] == [(digest_of(b"a layer"), 7)]
    assert image.layers_size_in_bytes == 7
    for reference in ("1.0", image.digest):
        pulled = deployer.ask("GET", f"/v2/{repository}/manifests/{reference}")
        assert (pulled.status, pulled.headers["content-type"]) == (200, MANIFEST)
        assert digest_of(pulled.content) == image.digest
    assert deployer.ask("GET", f"/v2/{repository}/blobs/{digest_of(b'a layer')}").content == b"a layer"
    looked = deployer.ask("HEAD", f"/v2/{repository}/blobs/{digest_of(b'a layer')}")
    assert (looked.status, looked.headers["content-length"], looked.content) == (200, "7", b"")


def test_a_tag_can_be_pushed_again_unless_the_repository_is_immutable(world: World, deployer: Tool) -> None:
    moving, fixed = _repository(world, "team/moving"), _repository(world, "team/fixed", immutable=True)
    for repository in (moving, fixed):
        assert deployer.push(repository, "1.0", b"one").status == 201
    assert deployer.push(moving, "1.0", b"two").status == 201
    [image] = _images(world, "team/moving")
    assert image.layers[0].digest == digest_of(b"two")
    refused = deployer.push(fixed, "1.0", b"two")
    assert (refused.status, refused.code) == (403, "DENIED")
    assert b"immutable" in refused.content
    assert deployer.push(fixed, "1.1", b"two").status == 201


def test_an_image_of_several_platforms_is_one_image(world: World, deployer: Tool) -> None:
    repository = _repository(world, "team/several")
    config = json.dumps({"config": {"Cmd": ["train"]}}).encode()
    for blob in (b"layer", config):
        deployer.put_blob(repository, blob)
    one = manifest(config, b"layer")
    assert deployer.ask("PUT", f"/v2/{repository}/manifests/{digest_of(one)}", one).status == 201
    assert not _images(world, "team/several")
    index = json.dumps({"schemaVersion": 2, "manifests": [{"digest": digest_of(one), "mediaType": MANIFEST}]}).encode()
    assert deployer.ask("PUT", f"/v2/{repository}/manifests/1.0", index).status == 201
    [image] = _images(world, "team/several")
    assert image.digest == digest_of(index)
    pulled = deployer.ask("GET", f"/v2/{repository}/manifests/1.0")
    assert pulled.headers["content-type"] == "application/vnd.oci.image.index.v1+json"
    assert deployer.ask("GET", f"/v2/{repository}/manifests/{digest_of(one)}").content == one


def test_an_incomplete_image_is_refused(world: World, deployer: Tool) -> None:
    repository = _repository(world, "team/broken")
    assert deployer.put_blob(repository, b"content", digest_of(b"other")).code == "DIGEST_INVALID"
    config = b"{}"
    assert deployer.put_blob(repository, config).status == 201
    put = f"/v2/{repository}/manifests/1.0"
    assert deployer.ask("PUT", put, manifest(config, b"never sent")).code == "MANIFEST_BLOB_UNKNOWN"
    assert deployer.ask("PUT", put, manifest(b"never sent")).code == "MANIFEST_BLOB_UNKNOWN"
    assert deployer.ask("PUT", put, b"no json").code == "MANIFEST_INVALID"
    assert deployer.ask("PUT", put, b"[]").code == "MANIFEST_INVALID"
    other = f"/v2/{repository}/manifests/{digest_of(b'other')}"
    assert deployer.ask("PUT", other, manifest(config)).code == "DIGEST_INVALID"
    gone = f"/v2/{repository}/blobs/uploads/{'0' * 32}"
    assert deployer.ask("PATCH", gone, b"more").code == "BLOB_UPLOAD_UNKNOWN"
    assert not _images(world, "team/broken")


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("/v2/another-tenancy/team/x/manifests/1.0", "NAME_UNKNOWN"),
        ("/v2/{namespace}/team/nothing/manifests/1.0", "MANIFEST_UNKNOWN"),
        (f"/v2/{{namespace}}/team/nothing/blobs/sha256:{'0' * 64}", "NAME_UNKNOWN"),
        ("/v2/_catalog", "UNSUPPORTED"),
        ("/v2/{namespace}/team/nothing/blobs/../../../config", "UNSUPPORTED"),
    ],
)
def test_a_missing_image_is_not_found(deployer: Tool, path: str, code: str) -> None:
    asked = deployer.ask("GET", path.format(namespace=deployer.cloud.namespace))
    assert (asked.status, asked.code) == (404, code)


def test_policies_decide_who_pulls_and_who_pushes(world: World, deployer: Tool) -> None:
    repository = _repository(world, "team/guarded")
    assert deployer.push(repository, "1.0", b"guarded").status == 201
    user, pull = Tool.signed_in(world.clients.cloud, "user"), f"/v2/{repository}/manifests/1.0"
    assert user.ask("GET", pull).status == 404
    _allow(world, "pullers", "Allow group scientists to read repos in tenancy where target.repo.name = 'team/guarded'")
    assert user.ask("GET", pull).status == 200
    refused = user.push(repository, "2.0")
    assert (refused.status, refused.code) == (403, "DENIED")
    _allow(
        world, "pushers", "Allow group scientists to manage repos in tenancy where target.repo.name = 'team/guarded'"
    )
    assert user.push(repository, "2.0").status == 201
    # A missing repository would be made in the root compartment, which needs more permissions.
    assert user.push(f"{world.clients.cloud.namespace}/team/new", "1.0").code == "DENIED"


def test_a_digest_gives_no_access_to_another_repository(world: World, deployer: Tool) -> None:
    """Layers of two teams are stored once, but each repository only has those that were pushed into it."""
    theirs, ours = _repository(world, "other/secret"), _repository(world, "team/own")
    pushed = deployer.push(theirs, "1.0", b"their layer", Env=["PASSWORD=secret"])
    digest = pushed.headers["docker-content-digest"]
    described = json.loads(deployer.ask("GET", f"/v2/{theirs}/manifests/1.0").content)
    config, layer = described["config"]["digest"], described["layers"][0]["digest"]
    user = Tool.signed_in(world.clients.cloud, "user")
    _allow(world, "own", "Allow group scientists to manage repos in tenancy where target.repo.name = 'team/own'")
    assert user.ask("GET", f"/v2/{ours}/manifests/{digest}").code == "MANIFEST_UNKNOWN"
    for blob in (config, layer):
        assert user.ask("GET", f"/v2/{ours}/blobs/{blob}").code == "BLOB_UNKNOWN"
    # Also not by an image that names their layers or digest.
    own = b"{}"
    assert user.put_blob(ours, own).status == 201
    assert user.ask("PUT", f"/v2/{ours}/manifests/1.0", manifest(own, b"their layer")).code == "MANIFEST_BLOB_UNKNOWN"
    stolen = json.dumps({**described, "layers": []}).encode()
    assert user.ask("PUT", f"/v2/{ours}/manifests/1.0", stolen).code == "MANIFEST_BLOB_UNKNOWN"
    admin.push_image(world.clients.cloud, f"iad.ocir.io/{ours}:2.0@{digest}", profile="user")
    assert user.ask("GET", f"/v2/{ours}/manifests/2.0").code == "MANIFEST_UNKNOWN"
    # An upload belongs to its repository, too.
    begun = deployer.ask("POST", f"/v2/{theirs}/blobs/uploads/").headers["location"]
    assert user.ask("PATCH", begun.replace(theirs, ours), b"more").code == "BLOB_UPLOAD_UNKNOWN"


def test_a_recreated_repository_is_empty(world: World, deployer: Tool) -> None:
    repository = _repository(world, "team/again")
    digest = deployer.push(repository, "1.0", b"former").headers["docker-content-digest"]
    (found,) = world.clients.artifacts.list_container_repositories(
        world.compartment, display_name="team/again"
    ).data.items  # fmt: skip
    world.clients.artifacts.delete_container_repository(found.id)
    _repository(world, "team/again")
    assert deployer.ask("GET", f"/v2/{repository}/manifests/{digest}").code == "MANIFEST_UNKNOWN"
    assert deployer.ask("GET", f"/v2/{repository}/blobs/{digest_of(b'former')}").code == "BLOB_UNKNOWN"


def _claims(token: str) -> dict[str, Any]:
    payload = token.split(".")[1]
    claims: dict[str, Any] = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    return claims


def test_a_registry_token_cannot_be_renewed_after_it_expired_or_its_user_was_deleted(world: World) -> None:
    cloud, identity = world.clients.cloud, world.clients.identity
    details = oci.identity.models.CreateUserDetails(compartment_id=cloud.tenancy, name="leaves", description="leaves")
    user = identity.create_user(details).data.id
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    form = serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    uploaded = oci.identity.models.CreateApiKeyDetails(key=key.public_key().public_bytes(*form).decode())
    key_id = f"{cloud.tenancy}/{user}/{identity.upload_api_key(user, uploaded).data.fingerprint}"
    signed = sign_request("GET", TOKENS, urlsplit(cloud.endpoint).netloc, b"", key_id, key)
    token = json.loads(Tool(cloud).ask("GET", TOKENS, b"", **signed).content)["token"]
    tool = Tool(cloud, token)
    renewed = json.loads(tool.ask("GET", TOKENS).content)
    assert _claims(renewed["token"])["exp"] == _claims(token)["exp"]
    assert 0 < renewed["expires_in"] <= 3600
    identity.delete_user(user)
    for held in (token, renewed["token"]):
        assert Tool(cloud, held).ask("GET", "/v2/").status == 401
        assert Tool(cloud, held).ask("GET", TOKENS).status == 401


def test_a_stand_in_does_not_replace_a_pushed_image(world: World, deployer: Tool) -> None:
    repository = _repository(world, "team/stood")
    cloud, address = world.clients.cloud, f"iad.ocir.io/{repository}:1.0"
    admin.push_when_repository_exists(cloud, address)
    [stand_in] = _images(world, "team/stood")
    assert not stand_in.layers
    assert deployer.ask("GET", f"/v2/{repository}/manifests/1.0").code == "MANIFEST_UNKNOWN"
    assert deployer.push(repository, "1.0").status == 201
    admin.push_when_repository_exists(cloud, address)
    [image] = _images(world, "team/stood")
    assert image.layers


def test_a_run_starts_the_entry_point_of_the_pushed_image(world: World, deployer: Tool) -> None:
    repository = _repository(world, "team/started")
    deployer.push(repository, "1.0", Entrypoint=["python", "-c"], Cmd=["print('from the image')"])
    container = oci.data_science.models.OcirContainerJobEnvironmentConfigurationDetails(
        image=f"iad.ocir.io/{repository}:1.0"
    )
    _allow_runs_to_pull(world)
    run = world.run(world.job(job_environment_configuration_details=container))
    assert world.finished(run).lifecycle_state == "SUCCEEDED"
    world.printed(run, "from the image")


def _allow(world: World, name: str, statement: str) -> None:
    details = oci.identity.models.CreatePolicyDetails(
        compartment_id=world.clients.cloud.tenancy, name=name, description=name, statements=[statement]
    )
    world.clients.identity.create_policy(details)


def _allow_runs_to_pull(world: World) -> None:
    details = oci.identity.models.CreateDynamicGroupDetails(
        compartment_id=world.clients.cloud.tenancy, name="image-pullers", description="runs",
        matching_rule=f"ALL {{resource.type = 'datasciencejobrun', resource.compartment.id = '{world.compartment}'}}",
    )  # fmt: skip
    world.clients.identity.create_dynamic_group(details)
    _allow(world, "runs-pull", "Allow dynamic-group image-pullers to read repos in tenancy")
