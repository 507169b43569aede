# SPDX-License-Identifier: Apache-2.0
from datetime import UTC, datetime
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.oci.iam import find_operation, to_text
from components.oci.iam.evaluate import time_variables
from components.oci.iam.judge import (
    AttachedPolicy,
    CompiledPolicies,
    Principal,
    Target,
    compile_policies,
    judge_request,
)
from components.oci.iam.parse import parse_statement
from components.oci.iam.permissions import resource_types
from components.oci.iam.statement import VERBS, Statement, Tenancy, VerbGrant
from tests.unit.components.oci.iam.strategies import conditions, families_and_types, statements
from tests.unit.components.oci.iam.tenancy import (
    ALICE,
    DATA_SCIENCE,
    DEEP,
    LONER,
    OTHER,
    ROOT,
    RUN,
    TEAM,
    TREE,
    bucket,
    policies,
)


class Case(NamedTuple):
    """One statement, one request: allowed or not."""

    statement: str
    allowed: bool
    principal: Principal = ALICE
    target: Target = bucket()
    permission: str = "BUCKET_READ"
    request: dict[str, str] = {}  # noqa: RUF012 (a NamedTuple shares it and nobody writes to it)


GIVES = "Allow group scientists to read buckets in tenancy"
IN_TENANCY = "Allow group scientists to manage buckets in tenancy where "
AT_NOON = time_variables(datetime(2026, 3, 2, 12, 0, tzinfo=UTC))

CASES = {
    "verb covers": Case(GIVES, True),
    "verbs below are covered": Case(GIVES, True, permission="BUCKET_INSPECT"),
    "verbs above are not": Case(GIVES, False, permission="BUCKET_UPDATE"),
    "another type is not": Case(GIVES, False, permission="OBJECT_READ"),
    "a family covers its members": Case("Allow group scientists to read object-family in tenancy", True),
    "a list grants exactly that": Case("Allow group scientists to {BUCKET_READ} in tenancy", True),
    "a list grants no more": Case(
        "Allow group scientists to {BUCKET_READ} in tenancy", False, permission="BUCKET_INSPECT"
    ),
    "all-resources, read": Case("Allow group scientists to read all-resources in tenancy", True),
    "all-resources, unknown permission": Case(
        "Allow group scientists to manage all-resources in tenancy", True, permission="FUTURE_THING_CREATE"
    ),
    "subject in any case": Case("Allow group SCIENTISTS to read buckets in tenancy", True),
    "subject by id": Case("Allow group id ocid1.group.oc1..scientists to read buckets in tenancy", True),
    "subject in the Default domain": Case("Allow group Default/scientists to read buckets in tenancy", True),
    "subject in its own domain": Case("Allow group 'corp'/'x y' to read buckets in tenancy", True),
    "same name, other domain": Case("Allow group Corp/scientists to read buckets in tenancy", False),
    "one of several subjects": Case("Allow group nobody, scientists to read buckets in tenancy", True),
    "a dynamic group is not a group": Case("Allow dynamic-group scientists to read buckets in tenancy", False),
    "dynamic group": Case("Allow dynamic-group runs to read buckets in tenancy", True, RUN),
    "service": Case("Allow service datascience to read buckets in tenancy", True, DATA_SCIENCE),
    "another service": Case("Allow service streaming to read buckets in tenancy", False, DATA_SCIENCE),
    "any-user is everyone": Case("Allow any-user to read buckets in tenancy", True, LONER),
    "any-group is whoever is in one": Case("Allow any-group to read buckets in tenancy", True, RUN),
    "any-group is not a loner": Case("Allow any-group to read buckets in tenancy", False, LONER),
    "compartment": Case("Allow group scientists to read buckets in compartment TEAM", True),
    "below the compartment": Case(
        "Allow group scientists to read buckets in compartment team", True, target=bucket(compartment=DEEP)
    ),
    "path": Case(
        "Allow group scientists to read buckets in compartment team:deep", True, target=bucket(compartment=DEEP)
    ),
    "above the path": Case("Allow group scientists to read buckets in compartment team:deep", False),
    "beside": Case("Allow group scientists to read buckets in compartment other", False),
    "by id": Case(f"Allow group scientists to read buckets in compartment id {TEAM}", True),
    "a name that needs a path": Case(
        "Allow group scientists to read buckets in compartment deep", False, target=bucket(compartment=DEEP)
    ),
    "outside the tenancy": Case(GIVES, False, target=bucket(compartment="ocid1.compartment.oc1..stranger")),
    "condition holds": Case(IN_TENANCY + "target.bucket.name = 'DATA'", True),
    "condition fails": Case(IN_TENANCY + "target.bucket.name = 'more'", False),
    "pattern": Case(IN_TENANCY + "target.bucket.name = /d*a/", True),
    "pattern without a star": Case(IN_TENANCY + "target.bucket.name = /dat/", False),
    "pattern whose ends would overlap": Case(IN_TENANCY + "target.bucket.name = /dat*ata/", False),
    "not equal": Case(IN_TENANCY + "target.bucket.name != 'more'", True),
    "missing variable": Case(IN_TENANCY + "target.repo.name = 'x'", False),
    "missing variable, not equal": Case(IN_TENANCY + "target.repo.name != 'x'", False),
    "any": Case(IN_TENANCY + "any {target.repo.name = 'x', target.bucket.name = 'data'}", True),
    "all": Case(IN_TENANCY + "all {target.repo.name = 'x', target.bucket.name = 'data'}", False),
    "this permission only": Case(IN_TENANCY + "request.permission = 'BUCKET_READ'", True),
    "all but this permission": Case(IN_TENANCY + "request.permission != 'BUCKET_READ'", False),
    "operation": Case(IN_TENANCY + "request.operation = 'getbucket'", True, request={"request.operation": "GetBucket"}),
    "one of the groups": Case(IN_TENANCY + "request.groups.id = 'ocid1.group.oc1..corp'", True),
    "none of the groups": Case(IN_TENANCY + "request.groups.id != 'ocid1.group.oc1..corp'", False),
    "compartment variable": Case(IN_TENANCY + "target.compartment.name = 'team'", True),
    "two variables": Case(
        IN_TENANCY + "target.user.id = request.user.id", True, target=Target(TEAM, {"target.user.id": ALICE.ocid})
    ),
    "two variables, one missing": Case(IN_TENANCY + "request.user.id != target.user.id", False),
    "principal type": Case(
        "Allow any-user to read buckets in tenancy where all "
        f"{{request.principal.type = 'datasciencejobrun', request.principal.compartment.id = '{TEAM}'}}",
        True,
        RUN,
    ),
    "before": Case(IN_TENANCY + "request.utc-timestamp before '2026-04-01Z'", True, request=AT_NOON),
    "not before": Case(IN_TENANCY + "request.utc-timestamp before '2026-03-02T12:00:00Z'", False, request=AT_NOON),
    "after": Case(IN_TENANCY + "request.utc-timestamp after '2026-03-02T11:59Z'", True, request=AT_NOON),
    "no clock": Case(IN_TENANCY + "request.utc-timestamp after '2026-03-02T11:59Z'", False),
    "day of the week": Case(
        IN_TENANCY + "request.utc-timestamp.day-of-week in ('sunday', 'Monday')", True, request=AT_NOON
    ),
    "month": Case(IN_TENANCY + "request.utc-timestamp.month-of-year != '3'", False, request=AT_NOON),
    "between": Case(
        IN_TENANCY + "request.utc-timestamp.time-of-day between '09:00:00Z' and '17:00:00Z'", True, request=AT_NOON
    ),
    "over midnight, inside": Case(
        IN_TENANCY + "request.utc-timestamp.time-of-day between '11:00:00Z' and '01:00:00Z'", True, request=AT_NOON
    ),
    "over midnight, outside": Case(
        IN_TENANCY + "request.utc-timestamp.time-of-day between '17:00:00Z' and '01:00:00Z'", False, request=AT_NOON
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_statement_allows_or_refuses_a_call(case: Case) -> None:
    in_force = policies(case.statement)
    verdict = judge_request(in_force, case.principal, [case.permission], case.target, case.request)
    assert verdict.allowed is case.allowed
    assert verdict.missing == (() if case.allowed else (case.permission,))
    assert [granted.statement for granted in verdict.by] == ([parse_statement(case.statement)] if case.allowed else [])


def test_a_policy_reaches_its_own_compartment_and_below_only() -> None:
    reach = {
        "in tenancy": False,
        "in compartment team": True,
        "in compartment team:deep": True,
        "in compartment deep": True,
        f"in compartment id {DEEP}": True,
        f"in compartment id {OTHER}": False,
        "in compartment other": False,
    }
    for place, resolves in reach.items():
        in_force = policies(f"Allow group scientists to read buckets {place}", attached=TEAM)
        assert bool(in_force.idle) is not resolves, place


def test_needs_every_permission_and_names_what_is_missing() -> None:
    in_force = policies("Allow group scientists to manage subnets in compartment team")
    verdict = judge_request(in_force, ALICE, find_operation("CreateSubnet").permissions, Target(TEAM))
    assert verdict.missing == ("DHCP_ATTACH", "ROUTE_TABLE_ATTACH", "SECURITY_LIST_ATTACH", "VCN_ATTACH")
    assert [granted.permission for granted in verdict.by] == ["SUBNET_CREATE"]


def test_nothing_needed_is_allowed() -> None:
    assert judge_request(policies(), LONER, find_operation("ListServices").permissions, Target(ROOT)).allowed


def test_a_circle_of_compartments_ends() -> None:
    tree = type(TREE)(ROOT, {TEAM: DEEP, DEEP: TEAM})
    assert tree.lineage(TEAM) == ()


_requests = st.tuples(
    st.sampled_from([ALICE, LONER, RUN, DATA_SCIENCE]),
    st.sampled_from(sorted(p for kind in resource_types().values() for p in kind.covers["manage"])),
    st.sampled_from([bucket(), bucket("x", DEEP), Target(ROOT), Target(OTHER, {"target.repo.name": "a"})]),
)
_subjects = st.sampled_from([parse_statement(f"Allow {who} to read repos in tenancy").subject for who in (
    "any-user", "any-group", "group scientists", "group 'Corp'/'x y'", "dynamic-group runs", "service datascience"
)])  # fmt: skip
_meeting = st.builds(
    Statement,
    _subjects,
    st.builds(VerbGrant, st.sampled_from(VERBS), families_and_types),
    st.one_of(
        st.just(Tenancy()), st.just(parse_statement("Allow any-user to read repos in compartment team").location)
    ),
    st.one_of(st.none(), conditions),
)


@given(st.lists(st.one_of(_meeting, statements), max_size=4), st.one_of(_meeting, statements), _requests)
def test_a_further_statement_never_takes_access_away(
    before: list[Statement], further: Statement, request: tuple[Principal, str, Target]
) -> None:
    principal, permission, target = request
    for place in range(len(before) + 1):
        after = [*before[:place], further, *before[place:]]
        fewer = compile_policies([AttachedPolicy("p", ROOT, tuple(before))], TREE)
        more = compile_policies([AttachedPolicy("p", ROOT, tuple(after))], TREE)
        if judge_request(fewer, principal, [permission], target).allowed:
            assert judge_request(more, principal, [permission], target).allowed


# The documents' statements (without the proof of concept), and the calls that fail without each of them.
CALLS: dict[str, tuple[Principal, str, str]] = {
    "push": (ALICE, "docker push", ""),
    "make repository": (ALICE, "CreateContainerRepository", ""),
    "make job": (ALICE, "CreateJob", ""),
    "start run": (ALICE, "CreateJobRun", ""),
    "start run in subnet": (ALICE, "CreateJobRun", "subnet"),
    "make log": (ALICE, "CreateLog", ""),
    "read log": (ALICE, "SearchLogs", ""),
    "metrics": (ALICE, "SummarizeMetricsData", ""),
    "upload": (ALICE, "PutObject", "new object"),
    "run pulls": (RUN, "docker pull", ""),
    "run looks at runs": (RUN, "GetJobRun", ""),
    "run logs": (RUN, "run: write log", ""),
    "run makes log": (RUN, "run: write log", "auto log creation"),
    "run uploads": (RUN, "PutObject", "new object"),
    "run syncs": (RUN, "run: sync files", ""),
    "network": (DATA_SCIENCE, "service datascience: attach VNICs", ""),
}
FAILS_WITHOUT = {
    "Allow group scientists to manage repos in compartment team": {"push", "make repository"},
    "Allow group scientists to manage data-science-family in compartment team": {
        "make job",
        "start run",
        "start run in subnet",
    },
    "Allow group scientists to use virtual-network-family in compartment team": {"start run in subnet"},
    "Allow group scientists to manage log-groups in compartment team": {"make log"},
    "Allow group scientists to manage log-content in compartment team": {"read log"},
    "Allow group scientists to read metrics in compartment team": {"metrics"},
    "Allow group scientists to manage objects in compartment team where all {target.bucket.name = 'data'}": {"upload"},
    "Allow dynamic-group runs to read repos in compartment team": {"run pulls"},
    "Allow dynamic-group runs to manage data-science-family in compartment team": {"run looks at runs"},
    "Allow dynamic-group runs to manage log-groups in compartment team": {"run makes log"},
    "Allow dynamic-group runs to manage log-content in compartment team": {"run logs", "run makes log"},
    "Allow dynamic-group runs to manage objects in compartment team where all {target.bucket.name = 'data'}": {
        "run uploads",
        "run syncs",
    },
    "Allow dynamic-group runs to manage buckets in compartment team where all {target.bucket.name = 'data'}": {
        "run syncs"
    },
    "Allow service datascience to manage virtual-network-family in compartment team": {"network"},
}


def _failing(in_force: CompiledPolicies) -> set[str]:
    failing = set()
    for call, (principal, name, circumstance) in CALLS.items():
        needs = find_operation(name)
        needed = needs.permissions | needs.conditional.get(circumstance, frozenset())
        if not judge_request(in_force, principal, needed, bucket()).allowed:
            failing.add(call)
    return failing


def test_the_documents_statements_suffice() -> None:
    assert _failing(policies(*FAILS_WITHOUT)) == set()


@pytest.mark.parametrize("dropped", FAILS_WITHOUT)
def test_each_of_the_documents_statements_is_needed(dropped: str) -> None:
    assert to_text(parse_statement(dropped)) == dropped
    kept = [statement for statement in FAILS_WITHOUT if statement != dropped]
    assert _failing(policies(*kept)) == FAILS_WITHOUT[dropped]
