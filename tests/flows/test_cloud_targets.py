# SPDX-License-Identifier: Apache-2.0
"""Access is checked for every resource that a call names: a caller with rights in one compartment tries to use
another's.

test_cloud_matrix.py tests every field of every call; here are realistic attempts and related cases.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from localcloud.admin import list_calls
from localcloud.control import Cloud
from tests.support.two_teams import OURS, THEIRS, Answer, Caller, Team, now, team

NOT_FOUND = (404, "NotAuthorizedOrNotFound")
RELATED = (400, "RelatedResourceNotAuthorizedOrNotFound")


@dataclass(frozen=True)
class Tenancy:
    """Two teams, an administrator, and a user with all rights in the first team's compartment."""

    ours: Team
    theirs: Team
    admin: Caller
    caller: Caller

    def granted(self, name: str, *statements: str) -> str:
        """Makes a policy until the block ends. Yields its OCID."""
        details = {"compartmentId": self.admin.cloud.tenancy, "name": name, "description": name}
        return str(self.admin.made("/20160918/policies", {**details, "statements": list(statements)})["id"])

    def withdraw(self, policy: str) -> None:
        assert self.admin.ask("DELETE", f"/20160918/policies/{policy}").status == 204


@pytest.fixture(scope="module")
def tenancy(shared_cloud: Cloud) -> Iterator[Tenancy]:
    admin, caller = Caller(shared_cloud), Caller(shared_cloud, "user")
    try:
        ours, theirs = (team(admin, mark, number) for number, mark in enumerate((OURS, THEIRS)))
        made = Tenancy(ours, theirs, admin, caller)
        made.granted("tenant", f"allow group scientists to manage all-resources in compartment {OURS}")
        yield made
    finally:
        admin.close()
        caller.close()


def _refused(answer: Answer) -> tuple[int, str]:
    assert THEIRS not in answer.text
    return answer.status, answer.code


def test_the_compartment_that_the_query_names_does_not_hide_that_of_the_body(tenancy: Tenancy) -> None:
    root = tenancy.admin.cloud.tenancy
    asked = {
        "compartmentId": root, "name": "everything", "description": "everything",
        "statements": ["allow group scientists to manage all-resources in tenancy"],
    }  # fmt: skip
    answer = tenancy.caller.ask("POST", f"/20160918/policies?compartmentId={tenancy.ours.compartment}", asked)
    assert _refused(answer) == NOT_FOUND
    listed = tenancy.admin.made(f"/20160918/policies?compartmentId={root}", None, "GET")
    assert "everything" not in [one["name"] for one in listed]


def test_the_body_of_a_call_without_one_is_ignored(tenancy: Tenancy) -> None:
    ours, theirs = ({"compartmentId": one.compartment} for one in (tenancy.ours, tenancy.theirs))
    listed = "/20190101/jobs?compartmentId="
    assert _refused(tenancy.caller.ask("GET", listed + tenancy.theirs.compartment, ours)) == NOT_FOUND
    assert _refused(tenancy.caller.ask("GET", "/20190101/jobs", ours)) == NOT_FOUND
    # The response to such a call is the same as without a token.
    answered = tenancy.caller.ask("GET", listed + tenancy.ours.compartment, theirs)
    assert (answered.status, [one["displayName"] for one in answered.body]) == (200, [OURS])


def test_another_teams_job_cannot_be_run(tenancy: Tenancy) -> None:
    """Users who may read the run could read its variables."""
    for job, project in ((tenancy.theirs, tenancy.theirs), (tenancy.theirs, tenancy.ours)):
        asked = {"compartmentId": tenancy.ours.compartment, "projectId": project["project"], "jobId": job["job"]}
        assert _refused(tenancy.caller.ask("POST", "/20190101/jobRuns", asked)) == RELATED


@pytest.mark.parametrize(
    ("path", "asked", "reference"),
    [
        ("/20190101/jobs", {}, "projectId"),
        ("/20160918/subnets", {"cidrBlock": "10.1.9.0/24"}, "vcnId"),
        ("/20160918/natGateways", {}, "vcnId"),
    ],
)
def test_nothing_can_be_made_in_another_teams_resources(
    tenancy: Tenancy, path: str, asked: dict[str, Any], reference: str
) -> None:
    place = {"compartmentId": tenancy.ours.compartment, "displayName": "new", **asked}
    value = tenancy.theirs[reference.removesuffix("Id")]
    answer = tenancy.caller.ask("POST", path, {**place, reference: value})
    absent = value[:-8] + "nothing2"
    assert _refused(answer) == RELATED
    # A missing resource gives the same error, so a caller cannot learn which of them exist.
    other = tenancy.caller.ask("POST", path, {**place, reference: absent})
    assert other.text.replace(absent, "") == answer.text.replace(value, "")


def test_existing_references_are_checked_in_their_own_compartment(tenancy: Tenancy) -> None:
    """A subnet of ours in another team's VCN, with that team's route table; a job of ours on that team's subnet."""
    ours, theirs = tenancy.ours, tenancy.theirs
    parts = {
        "vcnId": theirs["vcn"], "cidrBlock": "10.1.8.0/24", "routeTableId": theirs["route-table"],
        "securityListIds": [theirs["security-list"]],
    }  # fmt: skip
    subnet = tenancy.admin.made("/20160918/subnets", {"compartmentId": ours.compartment, **parts})["id"]
    path = f"/20160918/subnets/{subnet}"
    assert _refused(tenancy.caller.ask("DELETE", path)) == NOT_FOUND
    # Replacing its route table needs permissions on the old one, too. Unchanged fields need none.
    place = {"compartmentId": ours.compartment, "vcnId": theirs["vcn"], "routeRules": []}
    table = tenancy.admin.made("/20160918/routeTables", place)["id"]
    assert _refused(tenancy.caller.ask("PUT", path, {"routeTableId": table})) == NOT_FOUND
    same = {"routeTableId": theirs["route-table"], "displayName": "renamed"}
    assert tenancy.caller.ask("PUT", path, same).status == 200
    policy = tenancy.granted("network", f"allow group scientists to manage route-tables in compartment {THEIRS}")
    assert tenancy.caller.ask("PUT", path, {"routeTableId": table}).status == 200
    tenancy.withdraw(policy)
    within = {"compartmentId": ours.compartment, "projectId": ours["project"]}
    shape = {"shapeName": "VM.Standard2.1", "blockStorageSizeInGBs": 50, "subnetId": theirs["subnet"]}
    job = {
        **within, "jobConfigurationDetails": {"jobType": "DEFAULT"},
        "jobInfrastructureConfigurationDetails": {"jobInfrastructureType": "STANDALONE", **shape},
    }  # fmt: skip
    made = tenancy.admin.made("/20190101/jobs", job)["id"]
    assert _refused(tenancy.caller.ask("POST", "/20190101/jobRuns", {**within, "jobId": made})) == NOT_FOUND


def test_blocking_resources_are_named_only_to_callers_who_may_see_them(tenancy: Tenancy) -> None:
    ours = {"compartmentId": tenancy.ours.compartment, "displayName": "shared"}
    vcn = tenancy.admin.made("/20160918/vcns", {**ours, "cidrBlocks": ["10.7.0.0/16"]})["id"]
    inside = {"vcnId": vcn, "cidrBlock": "10.7.1.0/24", "compartmentId": tenancy.theirs.compartment}
    tenancy.admin.made("/20160918/subnets", {**inside, "displayName": THEIRS})
    answer = tenancy.caller.ask("DELETE", f"/20160918/vcns/{vcn}")
    assert _refused(answer) == (409, "Conflict")
    assert "1 in other compartments" in answer.text
    assert f"subnet {THEIRS}" in tenancy.admin.ask("DELETE", f"/20160918/vcns/{vcn}").text


def test_nothing_can_be_moved_to_another_team(tenancy: Tenancy) -> None:
    there = {"compartmentId": tenancy.theirs.compartment}
    space = f"/n/{tenancy.caller.cloud.namespace}/b"
    moves = (
        f"/20190101/projects/{tenancy.ours['project']}/actions/changeCompartment",
        f"/20160918/vcns/{tenancy.ours['vcn']}/actions/changeCompartment",
        f"{space}/{tenancy.ours['bucket']}",
    )
    for path in moves:
        assert _refused(tenancy.caller.ask("POST", path, there)) == NOT_FOUND
    taken = (
        f"/20190101/projects/{tenancy.theirs['project']}/actions/changeCompartment",
        f"{space}/{tenancy.theirs['bucket']}",
    )
    for path in taken:
        assert _refused(tenancy.caller.ask("POST", path, {"compartmentId": tenancy.ours.compartment})) == NOT_FOUND
    # With the permission in the target compartment, the move succeeds. A move to the same compartment needs no further
    # one.
    bucket = f"{space}/{tenancy.ours['bucket']}"
    policy = tenancy.granted("moves", f"allow group scientists to manage buckets in compartment {THEIRS}")
    for compartment in (tenancy.theirs.compartment, tenancy.ours.compartment):
        assert tenancy.caller.ask("POST", bucket, {"compartmentId": compartment}).status == 200
    tenancy.withdraw(policy)
    assert tenancy.caller.ask("POST", bucket, {"compartmentId": tenancy.ours.compartment}).status == 200


def test_metrics_of_all_compartments_need_access_to_each_of_them(tenancy: Tenancy) -> None:
    root, asked = tenancy.caller.cloud.tenancy, {"namespace": "two_teams"}
    everywhere = "/20180401/metrics/actions/listMetrics?compartmentIdInSubtree=true&compartmentId="
    wrong = tenancy.caller.ask("POST", everywhere + tenancy.ours.compartment, asked)
    assert (wrong.status, wrong.code) == (400, "InvalidParameter")
    assert _refused(tenancy.caller.ask("POST", everywhere + root, asked)) == NOT_FOUND
    # With a right on the tenancy whose condition excludes one compartment, the list shows the others.
    condition = f"where target.compartment.id != '{tenancy.theirs.compartment}'"
    policy = tenancy.granted("metrics", f"allow group scientists to read metrics in tenancy {condition}")
    found = tenancy.caller.ask("POST", everywhere + root, asked)
    tenancy.withdraw(policy)
    assert OURS in [one["name"] for one in found.body]
    assert THEIRS not in found.text


def test_moved_log_groups_take_their_logs_and_access_along(tenancy: Tenancy) -> None:
    """After the move, users with rights in the old compartment cannot read the logs any more."""
    made = tenancy.admin.ask(
        "POST", "/20200531/logGroups", {"compartmentId": tenancy.ours.compartment, "displayName": "going"}
    )
    request = f"/20200531/workRequests/{made.work_request}"
    group = tenancy.admin.made(request, None, "GET")["resources"][0]["identifier"]
    tenancy.admin.ask("POST", f"/20200531/logGroups/{group}/logs", {"displayName": "going", "logType": "CUSTOM"})
    (log,) = tenancy.admin.made(f"/20200531/logGroups/{group}/logs", None, "GET")
    batch = {"entries": [{"data": "said", "id": "1"}], "source": "s", "type": "t", "defaultlogentrytime": now()}
    lines = {"specversion": "1.0", "logEntryBatches": [batch]}
    tenancy.admin.made(f"/20200831/logs/{log['id']}/actions/push", lines)
    search = {
        "timeStart": "2020-01-01T00:00:00Z", "timeEnd": "2100-01-01T00:00:00Z",
        "searchQuery": f'search "{tenancy.ours.compartment}/{group}"',
    }  # fmt: skip
    assert "said" in tenancy.caller.ask("POST", "/20190909/search", search).text
    move = f"/20200531/logGroups/{group}/actions/changeCompartment"
    assert tenancy.admin.ask("POST", move, {"compartmentId": tenancy.theirs.compartment}).status == 202
    assert tenancy.caller.ask("POST", "/20190909/search", search).body["results"] == []
    moved = tenancy.admin.made(f"/20200531/logGroups/{group}/logs/{log['id']}", None, "GET")
    assert moved["compartmentId"] == tenancy.theirs.compartment


def test_a_list_needs_a_compartment(tenancy: Tenancy) -> None:
    answer = tenancy.admin.ask("GET", f"/20160918/subnets?vcnId={tenancy.ours['vcn']}")
    assert (answer.status, answer.code) == (400, "MissingParameter")


def test_a_work_request_needs_the_permissions_of_its_call(tenancy: Tenancy) -> None:
    listed = "/20200531/workRequests?compartmentId="
    assert tenancy.caller.ask("GET", listed + tenancy.theirs.compartment).body == []
    assert tenancy.ours["work-request"] in tenancy.caller.ask("GET", listed + tenancy.ours.compartment).text
    seen = tenancy.caller.ask("GET", f"/20200531/workRequests/{tenancy.ours['work-request']}")
    assert (seen.status, "takes" in seen.body) == (200, False)


def test_a_retry_token_with_another_query_is_another_call(tenancy: Tenancy) -> None:
    """A retry token does not return the response of a different call."""
    token = {"opc-retry-token": "once"}
    asked = "/20190301/secretbundles/actions/getByName?secretName={0}&vaultId=vault-{0}"
    assert tenancy.admin.ask("POST", asked.format(OURS), {}, headers=token).status == 200
    other = tenancy.admin.ask("POST", asked.format(THEIRS), {}, headers=token)
    assert (other.status, other.code) == (409, "InvalidatedRetryToken")


def test_a_push_into_a_missing_repository_needs_permission_to_make_it(tenancy: Tenancy) -> None:
    policy = tenancy.granted("pushes", "allow group scientists to {REPOSITORY_READ, REPOSITORY_UPDATE} in tenancy")
    address = f"iad.ocir.io/{tenancy.caller.cloud.namespace}/new/image:1"
    assert _refused(tenancy.caller.ask("POST", "/.trainyard/images", {"image": address})) == NOT_FOUND
    tenancy.withdraw(policy)


def test_references_in_one_compartment_are_one_access_decision(tenancy: Tenancy) -> None:
    """A rehearsal then sees one call, and not one for each resource that it names."""
    before = max((row["id"] for row in list_calls(tenancy.admin.cloud)), default=0)
    place = {"compartmentId": tenancy.ours.compartment, "vcnId": tenancy.ours["vcn"], "cidrBlock": "10.0.7.0/24"}
    assert tenancy.caller.ask("POST", "/20160918/subnets", place).status == 200
    (judged,) = list_calls(tenancy.admin.cloud, before)
    assert {"SUBNET_CREATE", "VCN_ATTACH", "DHCP_ATTACH"} <= set(judged["permissions"])
    assert json.dumps(judged["target"]) == json.dumps({"compartment": tenancy.ours.compartment, "variables": {}})
