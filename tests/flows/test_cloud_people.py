# SPDX-License-Identifier: Apache-2.0
"""Users, groups, compartments, keys and notebooks: further principals of a tenancy."""

from typing import Any

import oci
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from localcloud import admin
from localcloud.oci.tenancy import private_pem
from tests.support.cloud_fixture import Clients
from tests.support.cloud_world import World, refusal

models, science = oci.identity.models, oci.data_science.models


def _user(world: World, name: str) -> str:
    details = models.CreateUserDetails(compartment_id=world.clients.cloud.tenancy, name=name, description=name)
    return str(world.clients.identity.create_user(details).data.id)


def _group(world: World, name: str) -> str:
    details = models.CreateGroupDetails(compartment_id=world.clients.cloud.tenancy, name=name, description=name)
    return str(world.clients.identity.create_group(details).data.id)


def _policy(world: World, name: str, statement: str) -> str:
    details = models.CreatePolicyDetails(
        compartment_id=world.clients.cloud.tenancy, name=name, description=name, statements=[statement]
    )
    return str(world.clients.identity.create_policy(details).data.id)


def _key() -> tuple[str, str]:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )  # fmt: skip
    return private_pem(key).decode() + "OCI_API_KEY\n", public.decode()


def test_a_new_user_acts_by_its_key_and_its_groups(world: World) -> None:
    identity, tenancy = world.clients.identity, world.clients.cloud.tenancy
    user, group = _user(world, "maria"), _group(world, "reviewers")
    private, public = _key()
    uploaded = identity.upload_api_key(user, models.CreateApiKeyDetails(key=public)).data
    assert [key.fingerprint for key in identity.list_api_keys(user).data] == [uploaded.fingerprint]
    config = {
        "user": user, "tenancy": tenancy, "fingerprint": uploaded.fingerprint, "region": "us-ashburn-1",
        "key_content": private,
    }  # fmt: skip
    theirs = oci.core.VirtualNetworkClient(
        config, service_endpoint=world.clients.cloud.endpoint, retry_strategy=oci.retry.NoneRetryStrategy()
    )
    _policy(world, "reviewers", "allow group reviewers to read vcns in tenancy")
    assert refusal(lambda: theirs.list_vcns(world.compartment)) == (404, "NotAuthorizedOrNotFound")
    details = models.AddUserToGroupDetails(user_id=user, group_id=group)
    membership = identity.add_user_to_group(details).data
    theirs.list_vcns(world.compartment)
    assert refusal(lambda: identity.add_user_to_group(details))[0] == 409
    assert [item.id for item in identity.list_user_group_memberships(tenancy, user_id=user).data] == [membership.id]
    for held in (lambda: identity.delete_user(user), lambda: identity.delete_group(group)):
        assert refusal(held) == (409, "Conflict")
    identity.remove_user_from_group(membership.id)
    assert refusal(lambda: theirs.list_vcns(world.compartment))[0] == 404
    identity.delete_api_key(user, uploaded.fingerprint)
    assert refusal(lambda: theirs.list_vcns(world.compartment)) == (401, "NotAuthenticated")
    identity.delete_group(group)
    identity.delete_user(user)
    assert refusal(lambda: identity.upload_api_key(user, models.CreateApiKeyDetails(key=public)))[0] == 404


def test_users_and_groups_outside_the_tenancy_are_refused_by_their_own_names(world: World) -> None:
    identity, place = world.clients.identity, {"compartment_id": world.compartment, "description": "elsewhere"}
    for create, details in (
        (identity.create_user, models.CreateUserDetails),
        (identity.create_group, models.CreateGroupDetails),
    ):
        with pytest.raises(oci.exceptions.ServiceError, match="the tenancy: users, groups and dynamic groups") as error:
            create(details(name="elsewhere", **place))
        assert (error.value.status, error.value.code) == (400, "InvalidParameter")


def test_members_of_the_group_administrators_are_administrators(world: World) -> None:
    identity, tenancy = world.clients.identity, world.clients.cloud.tenancy
    scientist = next(user.id for user in identity.list_users(tenancy).data if user.name == "user")
    groups = {group.name: group.id for group in identity.list_groups(tenancy).data}
    theirs = Clients(world.clients.cloud, "user").identity
    assert refusal(lambda: theirs.list_policies(tenancy))[0] == 404
    details = models.AddUserToGroupDetails(user_id=scientist, group_id=groups["Administrators"])
    membership = identity.add_user_to_group(details).data.id
    theirs.list_policies(tenancy)
    identity.remove_user_from_group(membership)
    assert refusal(lambda: theirs.list_policies(tenancy))[0] == 404


def test_every_user_may_manage_their_own_keys(world: World) -> None:
    theirs = Clients(world.clients.cloud, "user").identity
    people = {user.name: user.id for user in world.clients.identity.list_users(world.clients.cloud.tenancy).data}
    assert theirs.get_user(people["user"]).data.name == "user"
    fingerprint = theirs.upload_api_key(people["user"], models.CreateApiKeyDetails(key=_key()[1])).data.fingerprint
    theirs.delete_api_key(people["user"], fingerprint)
    assert refusal(lambda: theirs.get_user(people["deployer"]))[0] == 404
    assert refusal(lambda: theirs.list_users(world.clients.cloud.tenancy))[0] == 404


def test_a_user_manager_may_not_make_administrators(world: World) -> None:
    tenancy, theirs = world.clients.cloud.tenancy, Clients(world.clients.cloud, "user").identity
    groups = {group.name: group.id for group in world.clients.identity.list_groups(tenancy).data}
    policies = [
        _policy(world, "users", "allow group scientists to manage users in tenancy"),
        _policy(world, "no-escalation", "allow group scientists to use groups in tenancy where"
                " target.group.name != 'Administrators'"),
    ]  # fmt: skip
    details = models.CreateUserDetails(compartment_id=tenancy, name="new", description="new")
    user = theirs.create_user(details).data.id

    def join(group: str) -> Any:
        return theirs.add_user_to_group(models.AddUserToGroupDetails(user_id=user, group_id=groups[group]))

    assert refusal(lambda: join("Administrators"))[0] == 404
    membership = join("scientists").data.id
    theirs.remove_user_from_group(membership)
    theirs.delete_user(user)
    for policy in policies:
        world.clients.identity.delete_policy(policy)
    assert refusal(lambda: theirs.create_user(details))[0] == 404


@pytest.mark.parametrize("key", ["", "x", _key()[0]], ids=["empty", "text", "private"])
def test_an_invalid_public_key_is_refused(world: World, key: str) -> None:
    user = world.clients.identity.list_users(world.clients.cloud.tenancy).data[0].id
    details = models.CreateApiKeyDetails(key=key)
    assert refusal(lambda: world.clients.identity.upload_api_key(user, details)) == (400, "InvalidParameter")


def test_a_compartment_is_created_changed_and_deleted(world: World) -> None:
    identity = world.clients.identity
    details = models.CreateCompartmentDetails(compartment_id=world.compartment, name="child", description="child")
    child = identity.create_compartment(details).data
    assert identity.get_compartment(child.id).data.lifecycle_state == "ACTIVE"
    assert refusal(lambda: identity.create_compartment(details))[0] == 409
    changed = identity.update_compartment(child.id, models.UpdateCompartmentDetails(freeform_tags={"a": "b"})).data
    assert changed.freeform_tags == {"a": "b"}
    project = science.CreateProjectDetails(compartment_id=child.id, display_name="p")
    made = world.clients.data_science.create_project(project).data.id
    assert refusal(lambda: identity.delete_compartment(child.id)) == (409, "Conflict")
    world.clients.data_science.delete_project(made)
    deleted = identity.delete_compartment(child.id)
    assert (deleted.status, bool(deleted.headers["opc-work-request-id"])) == (202, True)
    assert identity.get_compartment(child.id).data.lifecycle_state == "DELETED"


def test_a_policy_may_name_a_new_compartment(world: World) -> None:
    details = models.CreateCompartmentDetails(compartment_id=world.compartment, name="inner", description="inner")
    inner = world.clients.identity.create_compartment(details).data.id
    user = Clients(world.clients.cloud, "user").network
    policy = _policy(world, "inner", "allow group scientists to read subnets in compartment training:inner")
    user.list_subnets(inner)
    assert refusal(lambda: user.list_subnets(world.compartment))[0] == 404
    world.clients.identity.delete_policy(policy)


def _notebook(world: World) -> Any:
    settings = science.NotebookSessionConfigDetails(shape="VM.Standard2.1", block_storage_size_in_gbs=50)
    details = science.CreateNotebookSessionDetails(
        compartment_id=world.compartment, project_id=world.project, notebook_session_config_details=settings
    )
    return world.clients.data_science.create_notebook_session(details).data


def test_a_notebook_acts_with_its_own_permissions(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    notebook = _notebook(world)
    variables = admin.issue_resource_principal(world.clients.cloud, notebook.id)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    signer = oci.auth.signers.get_resource_principals_signer()
    client = oci.data_science.DataScienceClient(
        {}, signer=signer, service_endpoint=world.clients.cloud.endpoint, retry_strategy=oci.retry.NoneRetryStrategy()
    )
    assert refusal(lambda: client.list_projects(world.compartment))[0] == 404
    group = models.CreateDynamicGroupDetails(
        compartment_id=world.clients.cloud.tenancy, name="notebooks", description="notebooks",
        matching_rule="all {resource.type = 'datasciencenotebooksession'}",
    )  # fmt: skip
    world.clients.identity.create_dynamic_group(group)
    _policy(world, "notebooks", "allow dynamic-group notebooks to read data-science-projects in tenancy")
    assert world.project in [project.id for project in client.list_projects(world.compartment).data]


def test_a_notebook_is_created_stopped_and_deleted(world: World) -> None:
    client = world.clients.data_science
    notebook = _notebook(world)
    assert (notebook.lifecycle_state, bool(notebook.notebook_session_url)) == ("CREATING", True)
    assert client.get_notebook_session(notebook.id).data.lifecycle_state == "ACTIVE"
    assert notebook.id in [item.id for item in client.list_notebook_sessions(world.compartment).data]
    client.deactivate_notebook_session(notebook.id)
    assert refusal(lambda: client.deactivate_notebook_session(notebook.id)) == (409, "IncorrectState")
    client.activate_notebook_session(notebook.id)
    assert refusal(lambda: client.delete_project(world.project)) == (409, "Conflict")
    client.delete_notebook_session(notebook.id)
    assert client.get_notebook_session(notebook.id).data.lifecycle_state == "DELETED"


def test_job_and_notebook_shapes_have_cores_and_series(world: World) -> None:
    for list_ in (world.clients.data_science.list_job_shapes, world.clients.data_science.list_notebook_session_shapes):
        shapes = {
            shape.name: shape for shape in oci.pagination.list_call_get_all_results(list_, world.compartment).data
        }
        assert (shapes["VM.GPU.A10.2"].core_count, shapes["VM.GPU.A10.2"].shape_series) == (30, "NVIDIA_GPU")
        assert shapes["VM.Standard.E4.Flex"].shape_series == "AMD_ROME"


def test_fault_domains_and_tag_namespaces_are_listed(world: World) -> None:
    identity, tenancy = world.clients.identity, world.clients.cloud.tenancy
    domain = identity.list_availability_domains(tenancy).data[0].name
    assert len(identity.list_fault_domains(tenancy, domain).data) == 3
    assert "never-made" not in [one.name for one in identity.list_tag_namespaces(tenancy).data]
    assert identity.list_tag_defaults(compartment_id=tenancy).data == []


class TestSecrets:
    """Vault secrets, and the bundles by which runs read them."""

    @staticmethod
    def _client(clients: Clients, package: str, name: str) -> Any:
        return clients._client(package, name)

    def _content(self, text: str) -> Any:
        import base64

        return oci.vault.models.Base64SecretContentDetails(content=base64.b64encode(text.encode()).decode())

    def test_a_secret_is_created_changed_and_deleted(self, world: World) -> None:
        vaults = self._client(world.clients, "vault", "VaultsClient")
        bundles = self._client(world.clients, "secrets", "SecretsClient")
        details = oci.vault.models.CreateSecretDetails(
            compartment_id=world.compartment, secret_name="token", vault_id="ocid1.vault.oc1.iad.v",
            key_id="ocid1.key.oc1.iad.k", secret_content=self._content("one"),
        )  # fmt: skip
        secret = vaults.create_secret(details).data
        assert (secret.current_version_number, vaults.get_secret(secret.id).data.lifecycle_state) == (1, "ACTIVE")
        assert refusal(lambda: vaults.create_secret(details))[0] == 409
        vaults.update_secret(secret.id, oci.vault.models.UpdateSecretDetails(secret_content=self._content("two")))
        current = bundles.get_secret_bundle(secret.id).data
        assert (current.version_number, current.secret_bundle_content.content) == (2, self._content("two").content)
        previous = bundles.get_secret_bundle(secret.id, stage="PREVIOUS").data
        assert previous.secret_bundle_content.content == self._content("one").content
        named = bundles.get_secret_bundle_by_name("token", "ocid1.vault.oc1.iad.v", version_number=1).data
        assert named.version_number == 1
        assert refusal(lambda: bundles.get_secret_bundle(secret.id, version_number=9))[0] == 404
        vaults.schedule_secret_deletion(secret.id, oci.vault.models.ScheduleSecretDeletionDetails())
        assert vaults.get_secret(secret.id).data.lifecycle_state == "PENDING_DELETION"
        assert refusal(
            lambda: vaults.schedule_secret_deletion(secret.id, oci.vault.models.ScheduleSecretDeletionDetails())
        ) == (409, "IncorrectState")
        vaults.cancel_secret_deletion(secret.id)
        assert secret.id in [item.id for item in vaults.list_secrets(world.compartment).data]

    def test_reading_a_secret_bundle_needs_its_own_permission(self, world: World) -> None:
        vaults = self._client(world.clients, "vault", "VaultsClient")
        details = oci.vault.models.CreateSecretDetails(
            compartment_id=world.compartment, secret_name="other", vault_id="ocid1.vault.oc1.iad.v",
            key_id="ocid1.key.oc1.iad.k", secret_content=self._content("x"),
        )  # fmt: skip
        secret = vaults.create_secret(details).data.id
        theirs = self._client(Clients(world.clients.cloud, "user"), "secrets", "SecretsClient")
        assert refusal(lambda: theirs.get_secret_bundle(secret))[0] == 404
        bundles = "allow group scientists to read secret-bundles in compartment training"
        narrowed = f"{bundles} where any {{target.secret.name = 'other', target.secret.id = '{secret}'}}"
        for number, statement in enumerate((bundles, narrowed)):
            policy = _policy(world, f"bundles-{number}", statement)
            theirs.get_secret_bundle(secret)
            theirs.get_secret_bundle_by_name("other", "ocid1.vault.oc1.iad.v")
            world.clients.identity.delete_policy(policy)
        policy = _policy(world, "bundles", f"{bundles} where target.secret.name = 'another'")
        assert refusal(lambda: theirs.get_secret_bundle(secret))[0] == 404
        world.clients.identity.delete_policy(policy)
