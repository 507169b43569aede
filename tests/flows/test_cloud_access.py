# SPDX-License-Identifier: Apache-2.0
"""Access on the local cloud: calls that no statement grants fail, for people and for runs."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import oci
import pytest
from oci._vendor import requests

from localcloud.admin import add_fault, clear_faults, issue_resource_principal, list_calls
from localcloud.control import Cloud
from tests.support.cloud_fixture import Clients
from tests.support.cloud_world import World

models = oci.identity.models


@pytest.fixture(scope="module")
def user(shared_cloud: Cloud) -> Clients:
    return Clients(shared_cloud, "user")


def _policy(world: World, name: str, *statements: str) -> str:
    details = models.CreatePolicyDetails(
        compartment_id=world.clients.cloud.tenancy, name=name, description=name, statements=list(statements)
    )
    return str(world.clients.identity.create_policy(details).data.id)


def _refused(call: Callable[..., Any], *arguments: Any) -> None:
    with pytest.raises(oci.exceptions.ServiceError) as refused:
        call(*arguments)
    assert (refused.value.status, refused.value.code) == (404, "NotAuthorizedOrNotFound")


def test_a_user_may_do_what_a_current_policy_grants(world: World, user: Clients) -> None:
    list_ = user.network.list_vcns
    _refused(list_, world.compartment)
    policy = _policy(world, "network", "allow group scientists to read vcns in compartment training")
    list_(world.compartment)
    _refused(user.network.delete_vcn, world.vcn.id)
    world.clients.identity.delete_policy(policy)
    _refused(list_, world.compartment)


def test_the_log_names_the_missing_permission_and_a_statement_that_grants_it(world: World, user: Clients) -> None:
    _refused(user.data_science.list_jobs, world.compartment)
    line = next(
        line
        for line in reversed((world.clients.cloud.home / "server.log").read_text().splitlines())
        if "refused ListJobs" in line
    )
    assert "would grant it: allow group scientists to" in line.lower()


def test_a_statement_may_be_narrowed_to_a_bucket(world: World, user: Clients) -> None:
    storage = world.clients.storage
    namespace = storage.get_namespace().data
    for name in ("ours", "theirs"):
        details = oci.object_storage.models.CreateBucketDetails(name=name, compartment_id=world.compartment)
        storage.create_bucket(namespace, details)
    condition = "where target.bucket.name = 'ours'"
    _policy(world, "objects", f"allow group scientists to manage objects in compartment training {condition}")
    user.storage.put_object(namespace, "ours", "a", b"1")
    user.storage.put_object(namespace, "ours", "a", b"2")
    assert user.storage.get_object(namespace, "ours", "a").data.content == b"2"
    _refused(user.storage.put_object, namespace, "theirs", "a", b"1")


def _conditions(moment: datetime) -> dict[str, str]:
    """For each time variable, a condition that holds now and for the next hours, and its opposite."""
    stamp = "request.utc-timestamp"
    ago, ahead = (f"{moment + timedelta(hours=hours):%Y-%m-%dT%H:%M:%SZ}" for hours in (-6, 6))
    since, until, later = (f"{moment + timedelta(hours=hours):%H:%M:%SZ}" for hours in (-6, 6, 9))
    # Midnight may pass during the test, so today and tomorrow are both allowed, but not next week or next month.
    days = [moment, moment + timedelta(hours=6)]
    weekdays, dates, months = ({f"'{day.strftime(form)}'" for day in days} for form in ("%A", "%-d", "%-m"))
    far = moment + timedelta(days=4)
    return {
        f"{stamp} after '{ago}'": f"{stamp} before '{ago}'",
        f"{stamp} before '{ahead}'": f"{stamp} after '{ahead}'",
        f"{stamp}.time-of-day between '{since}' and '{until}'": f"{stamp}.time-of-day between '{until}' and '{later}'",
        f"{stamp}.day-of-week in ({', '.join(weekdays)})": f"{stamp}.day-of-week = '{far:%A}'",
        f"{stamp}.day-of-month in ({', '.join(dates)})": f"{stamp}.day-of-month = '{far:%-d}'",
        f"{stamp}.month-of-year in ({', '.join(months)})": f"{stamp}.month-of-year = '{(moment.month + 5) % 12 + 1}'",
    }


def test_a_statement_may_have_a_condition_on_time(world: World, user: Clients) -> None:
    for holds, fails in _conditions(datetime.now(UTC)).items():
        grant = "allow group scientists to read vcns in compartment training where"
        policy = _policy(world, "at-times", f"{grant} {fails}")
        _refused(user.network.list_vcns, world.compartment)
        log = (world.clients.cloud.home / "server.log").read_text()
        assert f"{fails}: its condition does not hold" in log
        details = models.UpdatePolicyDetails(statements=[f"{grant} {holds}"])
        world.clients.identity.update_policy(policy, details)
        user.network.list_vcns(world.compartment)
        world.clients.identity.delete_policy(policy)


_AS_ITSELF = """
import os, re, oci
signer = oci.auth.signers.get_resource_principals_signer()
endpoint = re.search('ObjectStorageClient=([^;]+)', os.environ['CLIENT_HOST_OVERRIDES'])[1]
client = oci.object_storage.ObjectStorageClient({}, signer=signer, service_endpoint=endpoint)
try:
    client.put_object(client.get_namespace().data, 'results', os.environ['JOB_RUN_OCID'], b'done')
    print('stored')
except oci.exceptions.ServiceError as error:
    print(error.status, error.code)
"""


def test_a_run_acts_with_its_own_permissions(world: World) -> None:
    namespace = world.clients.storage.get_namespace().data
    details = oci.object_storage.models.CreateBucketDetails(name="results", compartment_id=world.compartment)
    world.clients.storage.create_bucket(namespace, details)
    job = world.job(_AS_ITSELF)
    before = world.run(job)
    world.finished(before)
    assert world.lines(before) == ["404 NotAuthorizedOrNotFound"]
    group = models.CreateDynamicGroupDetails(
        compartment_id=world.clients.cloud.tenancy,
        name="runs",
        description="runs",
        matching_rule=f"all {{resource.type = 'datasciencejobrun', resource.compartment.id = '{world.compartment}'}}",
    )
    world.clients.identity.create_dynamic_group(group)
    _policy(world, "runs", "allow dynamic-group runs to manage objects in compartment training")
    after = world.run(job)
    world.finished(after)
    assert world.lines(after) == ["stored"]
    assert world.clients.storage.get_object(namespace, "results", after.id).data.content == b"done"


_KEEPS_ASKING = """
import os, re, time, oci
signer = oci.auth.signers.get_resource_principals_signer()
endpoint = re.search('ObjectStorageClient=([^;]+)', os.environ['CLIENT_HOST_OVERRIDES'])[1]
client = oci.object_storage.ObjectStorageClient({}, signer=signer, service_endpoint=endpoint)
namespace, seen = client.get_namespace().data, []
while len(seen) < 3:
    with open(os.environ['OCI_RESOURCE_PRINCIPAL_RPST']) as file:
        token = file.read()
    seen += [token] if token not in seen else []
    client.get_object(namespace, 'renewed', 'a')
    time.sleep(0.2)
print(len(seen), 'tokens')
"""


def _runs_may_read(world: World, name: str) -> None:
    """A bucket with an object, and the policy that lets runs read it."""
    storage, namespace = world.clients.storage, world.clients.storage.get_namespace().data
    details = oci.object_storage.models.CreateBucketDetails(name=name, compartment_id=world.compartment)
    storage.create_bucket(namespace, details)
    storage.put_object(namespace, name, "a", b"1")
    group = models.CreateDynamicGroupDetails(
        compartment_id=world.clients.cloud.tenancy, name=name, description=name,
        matching_rule="all {resource.type = 'datasciencejobrun'}",
    )  # fmt: skip
    world.clients.identity.create_dynamic_group(group)
    condition = f"where target.bucket.name = '{name}'"
    _policy(world, name, f"allow dynamic-group {name} to read objects in compartment training {condition}")


def test_a_runs_token_is_renewed_before_it_expires(world: World) -> None:
    _runs_may_read(world, "renewed")
    fault = add_fault(world.clients.cloud, "token", seconds=4)
    run = world.run(world.job(_KEEPS_ASKING))
    try:
        assert world.finished(run).lifecycle_state == "SUCCEEDED", world.lines(run)
    finally:
        clear_faults(world.clients.cloud, fault["id"])
    assert world.lines(run) == ["3 tokens"]


def test_the_token_of_a_run_expires_when_the_run_ends(world: World) -> None:
    _runs_may_read(world, "ended")
    run = world.run(world.job("print('over')"))
    world.finished(run)
    acts = issue_resource_principal(world.clients.cloud, run.id)
    signer = oci.auth.signers.EphemeralResourcePrincipalSigner(
        session_token=acts["OCI_RESOURCE_PRINCIPAL_RPST"], private_key=acts["OCI_RESOURCE_PRINCIPAL_PRIVATE_PEM"],
        region=acts["OCI_RESOURCE_PRINCIPAL_REGION"],
    )  # fmt: skip
    address = f"{world.clients.cloud.endpoint}/n/{world.clients.cloud.namespace}/b/ended/o/a"
    assert requests.get(address, auth=signer, timeout=60).status_code == 200
    world.clients.data_science.delete_job_run(run.id)
    refused = requests.get(address, auth=signer, timeout=60)
    assert (refused.status_code, refused.json()["code"]) == (401, "NotAuthenticated")


def test_a_moved_run_has_the_permissions_of_its_new_compartment(world: World) -> None:
    """Its token still has the compartment in which it was made."""
    details = models.CreateCompartmentDetails(
        compartment_id=world.clients.cloud.tenancy, name="far-off", description="far off"
    )
    elsewhere = world.clients.identity.create_compartment(details).data.id
    storage, namespace = world.clients.storage, world.clients.storage.get_namespace().data
    made = oci.object_storage.models.CreateBucketDetails(name="here", compartment_id=world.compartment)
    storage.create_bucket(namespace, made)
    storage.put_object(namespace, "here", "a", b"1")
    condition = f"where request.principal.compartment.id = '{world.compartment}'"
    _policy(world, "here", f"allow any-user to read objects in compartment training {condition}")
    run = world.run(world.job("print('over')"))
    world.finished(run)
    acts = issue_resource_principal(world.clients.cloud, run.id)
    signer = oci.auth.signers.EphemeralResourcePrincipalSigner(
        session_token=acts["OCI_RESOURCE_PRINCIPAL_RPST"], private_key=acts["OCI_RESOURCE_PRINCIPAL_PRIVATE_PEM"]
    )
    address = f"{world.clients.cloud.endpoint}/n/{namespace}/b/here/o/a"
    assert requests.get(address, auth=signer, timeout=60).status_code == 200
    move = oci.data_science.models.ChangeJobRunCompartmentDetails(compartment_id=elsewhere)
    world.clients.data_science.change_job_run_compartment(run.id, move)
    assert requests.get(address, auth=signer, timeout=60).status_code == 404


def test_a_runs_output_reaches_only_a_log_that_it_may_write_to(cloud: Cloud) -> None:
    world = World(Clients(cloud))
    job = world.job("print('kept')")
    identity = world.clients.identity
    (policy,) = identity.list_policies(cloud.tenancy, name="runs-that-log").data
    identity.delete_policy(policy.id)
    run = world.run(job)
    assert world.finished(run).lifecycle_state == "SUCCEEDED"
    assert world.lines(run) == []
    assert (cloud.home / "runs" / run.id / "node-0.log").read_text() == "kept\n"
    (refused,) = [line for line in (cloud.home / "server.log").read_text().splitlines() if "refused write log" in line]
    assert "lacks LOG_CONTENT_PUSH" in refused
    condition = f"where target.loggroup.id = '{world.log_group}'"
    _policy(world, "again", f"allow dynamic-group runs-that-log to use log-content in compartment training {condition}")
    again = world.run(job)
    world.finished(again)
    assert world.lines(again) == ["kept"]


@pytest.mark.parametrize(
    "statement",
    [
        "allow group scientists to mange vcns in tenancy",
        "allow group scientists to use read metrics in tenancy",
        "allow group scientists to manage vcns in compartment elsewhere",
    ],
)
def test_a_statement_that_oci_would_refuse_is_refused(world: World, statement: str) -> None:
    with pytest.raises(oci.exceptions.ServiceError) as refused:
        _policy(world, "wrong", statement)
    assert (refused.value.status, refused.value.code) == (400, "InvalidParameter")


def test_a_dynamic_group_is_made_only_in_the_tenancy(world: World) -> None:
    details = models.CreateDynamicGroupDetails(
        compartment_id=world.compartment, name="x", description="x", matching_rule="any {resource.id = 'x'}"
    )
    with pytest.raises(oci.exceptions.ServiceError) as refused:
        world.clients.identity.create_dynamic_group(details)
    assert refused.value.status == 400


def test_deleting_a_version_needs_another_permission_than_deleting_an_object(world: World, user: Clients) -> None:
    storage, namespace = world.clients.storage, world.clients.storage.get_namespace().data
    details = oci.object_storage.models.CreateBucketDetails(
        name="versioned", compartment_id=world.compartment, versioning="Enabled"
    )
    storage.create_bucket(namespace, details)
    version = storage.put_object(namespace, "versioned", "a", b"1").headers["version-id"]
    policy = _policy(world, "deletes", "allow group scientists to {OBJECT_DELETE} in compartment training")
    user.storage.delete_object(namespace, "versioned", "a")
    with pytest.raises(oci.exceptions.ServiceError) as refused:
        user.storage.delete_object(namespace, "versioned", "a", version_id=version)
    assert refused.value.status == 404
    world.clients.identity.delete_policy(policy)


def test_a_copy_needs_access_at_both_ends(world: World, user: Clients) -> None:
    storage, models_of = world.clients.storage, oci.object_storage.models
    namespace = storage.get_namespace().data
    for name in ("from", "to"):
        details = models_of.CreateBucketDetails(name=name, compartment_id=world.compartment)
        storage.create_bucket(namespace, details)
    storage.put_object(namespace, "from", "a", b"1")
    copy = models_of.CopyObjectDetails(
        source_object_name="a", destination_region="us-ashburn-1", destination_namespace=namespace,
        destination_bucket="to", destination_object_name="a",
    )  # fmt: skip

    def grant(name: str) -> str:
        condition = f"target.bucket.name = '{name}'"
        return _policy(world, name, f"allow group scientists to manage objects in tenancy where {condition}")

    ends = {name: grant(name) for name in ("from", "to")}
    for name, policy in ends.items():
        user.storage.copy_object(namespace, "from", copy)
        world.clients.identity.delete_policy(policy)
        _refused(user.storage.copy_object, namespace, "from", copy)
        ends[name] = grant(name)
    for policy in ends.values():
        world.clients.identity.delete_policy(policy)


def test_a_recorded_call_can_be_evaluated_again(world: World, user: Clients) -> None:
    before = max((row["id"] for row in list_calls(world.clients.cloud)), default=0)
    policy = _policy(world, "judged", "allow group scientists to inspect vcns in compartment training")
    for _ in range(2):
        user.network.list_vcns(world.compartment)
    _refused(user.network.delete_vcn, world.vcn.id)
    world.clients.identity.delete_policy(policy)
    allowed, refused = list_calls(world.clients.cloud, before)
    assert (allowed["operation"], allowed["times"], allowed["allowed"]) == ("ListVcns", 2, True)
    assert allowed["by"] == [
        {
            "permission": "VCN_READ",
            "policy": "judged",
            "statement": "Allow group scientists to inspect vcns in compartment training",
        }
    ]
    assert [one["name"] for one in allowed["principal"]["groups"]] == ["scientists"]
    assert allowed["target"]["compartment"] == world.compartment
    assert (refused["operation"], refused["allowed"], refused["missing"]) == ("DeleteVcn", False, ["VCN_DELETE"])
    assert list_calls(world.clients.cloud, refused["id"]) == []


def test_only_administrators_can_read_recorded_calls(user: Clients) -> None:
    signer, endpoint = user.identity.base_client.signer, user.cloud.endpoint
    answer = requests.get(f"{endpoint}/.trainyard/calls", auth=signer, timeout=60)
    assert (answer.status_code, answer.json()["code"]) == (404, "NotAuthorizedOrNotFound")


def _tag(world: World, namespace: str, *keys: str) -> None:
    """Makes a tag namespace in the tenancy, and its tags."""
    details = models.CreateTagNamespaceDetails(
        compartment_id=world.clients.cloud.tenancy, name=namespace, description=namespace
    )
    made = world.clients.identity.create_tag_namespace(details).data
    for key in keys:
        world.clients.identity.create_tag(made.id, models.CreateTagDetails(name=key, description=key))
    assert {tag.name for tag in world.clients.identity.list_tags(made.id).data} == set(keys)


def _refused_tags(call: Callable[..., Any], *arguments: Any) -> str:
    with pytest.raises(oci.exceptions.ServiceError) as refused:
        call(*arguments)
    assert (refused.value.status, refused.value.code) == (400, "RelatedResourceNotAuthorizedOrNotFound")
    return str(refused.value.message)


def test_a_defined_tag_needs_the_right_to_use_its_namespace(world: World, user: Clients) -> None:
    """A dynamic group may take its members by a tag: who sets one could make its own run a member."""
    _tag(world, "ops", "role", "team")
    _tag(world, "cost", "center")
    _policy(world, "vcns", "allow group scientists to manage virtual-network-family in compartment training")

    def create(tags: dict[str, dict[str, str]]) -> Any:
        details = oci.core.models.CreateVcnDetails(
            compartment_id=world.compartment, cidr_blocks=["10.7.0.0/24"], defined_tags=tags
        )
        return user.network.create_vcn(details).data

    def update(vcn: Any, tags: dict[str, dict[str, str]], clients: Clients = user) -> Any:
        return clients.network.update_vcn(vcn.id, oci.core.models.UpdateVcnDetails(defined_tags=tags)).data

    assert "ops" in _refused_tags(create, {"ops": {"role": "admin"}})
    vcn = create({})
    _refused_tags(update, vcn, {"ops": {"role": "admin"}})
    update(vcn, {"ops": {"role": "small"}, "cost": {"center": "1"}}, world.clients)
    assert update(vcn, {"ops": {"role": "small"}, "cost": {"center": "1"}}), "an update may repeat what is there"
    user.network.update_vcn(vcn.id, oci.core.models.UpdateVcnDetails(display_name="renamed"))
    for tags in ({"cost": {"center": "1"}}, {"ops": {}, "cost": {"center": "1"}}, {"OPS": {"role": "admin"}}):
        _refused_tags(update, vcn, tags)
    condition = "where target.tag-namespace.name = 'ops'"
    policy = _policy(world, "tags", f"allow group scientists to use tag-namespaces in tenancy {condition}")
    assert update(vcn, {"ops": {"role": "big"}, "cost": {"center": "1"}}).defined_tags["ops"] == {"role": "big"}
    assert "cost" in _refused_tags(update, vcn, {"ops": {"role": "big"}})
    world.clients.identity.delete_policy(policy)


def test_a_defined_tag_that_nobody_defined_is_refused(world: World) -> None:
    """OCI refuses it for administrators too: TagNamespace … does not exist."""
    _tag(world, "known", "key")
    for tags, named in (({"unknown": {"key": "1"}}, "unknown"), ({"known": {"other": "1"}}, "known.other")):
        details = oci.core.models.CreateVcnDetails(
            compartment_id=world.compartment, cidr_blocks=["10.7.0.0/24"], defined_tags=tags
        )
        assert named in _refused_tags(world.clients.network.create_vcn, details)
    again = models.CreateTagNamespaceDetails(
        compartment_id=world.clients.cloud.tenancy, name="KNOWN", description="the same in capitals"
    )
    with pytest.raises(oci.exceptions.ServiceError, match="already exists"):
        world.clients.identity.create_tag_namespace(again)
