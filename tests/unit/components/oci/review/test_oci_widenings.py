# SPDX-License-Identifier: Apache-2.0
"""Random statements of OCI: no widening is hidden, and what only reads differently shows nothing.

The oracle judges single requests. It knows nothing of sets of principals, permissions and resources.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.oci.iam.judge import (
    AttachedPolicy,
    Compartments,
    Membership,
    Principal,
    Target,
    compile_policies,
    judge_request,
)
from components.oci.iam.parse import parse_statement
from components.oci.iam.permissions import verb_covers
from components.oci.review.platform import OciReview
from components.platform.review import ReviewedResource, Snapshot
from tests.support.counts import FIRST, wanted
from tests.support.reviews import resource, sentences
from tests.support.samples import COMPARTMENT, NETWORKS, TENANCY
from tests.support.widenings import VERBS, Allow, widened_oci

HERE = f"compartment id {COMPARTMENT}"
POLICY, GROUP = "oci:Identity/policy:Policy", "oci:Identity/dynamicGroup:DynamicGroup"
RULE = f"all {{resource.type = 'datasciencejobrun', resource.compartment.id = '{COMPARTMENT}'}}"
PLAN = {"compartment": COMPARTMENT, "tenancy": TENANCY, "bucket": {"name": "vision-dev"}}
BUCKET = resource("oci:ObjectStorage/bucket:Bucket", "bucket", name="vision-dev")


def of_statements(texts: Sequence[str]) -> Snapshot:
    policy = resource(POLICY, "access", compartmentId=TENANCY, statements=list(texts))
    return Snapshot("vision-dev", "oci", PLAN, (policy, _group("runs", "vision-dev-runs", RULE), BUCKET))


def _group(called: str, name: str, rule: str) -> ReviewedResource:
    return resource(GROUP, called, name=name, matchingRule=rule)


WHO = ("dynamic-group vision-dev-runs", "group scientists", "group admins", "any-user", "service datascience")
TYPES = (
    "objects",
    "buckets",
    "repos",
    "secret-family",
    "data-science-family",
    "vcns",
    "instance-family",
    "all-resources",
)
WHERE = ("tenancy", HERE, f"compartment id {NETWORKS}")
CONDITIONS = (
    "",
    "",
    "target.bucket.name = 'vision-dev'",
    "target.bucket.name = /vision-*/",
    "target.bucket.name != 'secret'",
    "target.repo.name = 'vision/train'",
    "request.user.name = 'ann'",
    "any {target.bucket.name = 'vision-dev', request.operation = 'GetObject'}",
    "all {target.bucket.name = /vision-*/, request.region = 'iad'}",
    "request.permission != 'OBJECT_DELETE'",
)
statements = st.builds(
    Allow,
    st.sampled_from(WHO),
    st.builds("{} {}".format, st.sampled_from(VERBS), st.sampled_from(TYPES)),
    st.sampled_from(WHERE),
    st.sampled_from(CONDITIONS),
)
_POOL = [
    Allow(who, f"{verb} {kind}", where, condition)
    for who in WHO
    for verb in VERBS
    for kind in TYPES
    for where in WHERE
    for condition in CONDITIONS
]
sets_of = st.lists(statements, min_size=1, max_size=5)
OTHER = "ocid1.compartment.oc1..somebodys"
PLACES = Compartments(TENANCY, {COMPARTMENT: TENANCY, NETWORKS: TENANCY, OTHER: TENANCY})
PEOPLE = {
    "dynamic group vision-dev-runs": Principal("x", dynamic_groups=(Membership("", "vision-dev-runs"),)),
    "group scientists": Principal("user", groups=(Membership("", "scientists"),)),
    "group admins": Principal("user", groups=(Membership("", "admins"),)),
    "everybody": Principal("user"),
    "the service datascience": Principal("service", name="datascience"),
}
PERMISSIONS = (
    "OBJECT_INSPECT", "OBJECT_READ", "OBJECT_DELETE", "BUCKET_INSPECT", "BUCKET_CREATE", "REPOSITORY_READ",
    "SECRET_BUNDLE_READ", "VCN_READ", "VCN_DELETE", "DATA_SCIENCE_JOB_CREATE", "NOBODY_KNOWS_IT",
)  # fmt: skip


VARIABLES = {
    "request.user.name": ("ann", "bob"),
    "request.operation": ("GetObject", "x"),
    "request.region": ("iad", "fra"),
}


@dataclass(frozen=True)
class Request:
    who: str
    permission: str
    target: Target
    more: tuple[tuple[str, str], ...]


def requests(chance: random.Random, number: int) -> list[Request]:
    made = []
    for _ in range(number):
        permission = chance.choice(PERMISSIONS)
        named: dict[str, str] = {}
        if permission.startswith(("OBJECT", "BUCKET")) and chance.random() < 0.8:
            named["target.bucket.name"] = chance.choice(("vision-dev", "vision-prod", "secret", "others"))
        elif permission.startswith("REPOSITORY"):
            named["target.repo.name"] = chance.choice(("vision/train", "others"))
        options = (
            ("request.user.name", ("ann", "bob")),
            ("request.operation", ("GetObject", "x")),
            ("request.region", ("iad", "fra")),
        )
        more = tuple((name, chance.choice(values)) for name, values in options if chance.random() < 0.6)
        place = chance.choice((TENANCY, COMPARTMENT, NETWORKS, OTHER))
        made.append(Request(chance.choice(list(PEOPLE)), permission, Target(place, named), more))
    return made


def allowed(allow: Sequence[Allow], asked: Request) -> bool:
    made = compile_policies([AttachedPolicy("", TENANCY, tuple(parse_statement(one.text) for one in allow))], PLACES)
    return judge_request(made, PEOPLE[asked.who], (asked.permission,), asked.target, dict(asked.more)).allowed


def in_tenancy(allow: Sequence[Allow]) -> Snapshot:
    return of_statements([one.text for one in allow])


@pytest.mark.parametrize("seed", range(FIRST, FIRST + wanted(sample=30, full=300)))
def test_no_widening_is_hidden(seed: int) -> None:
    chance = random.Random(seed)
    before = [chance.choice(_POOL) for _ in range(chance.randint(1, 4))]
    after = widened_oci(before, chance)
    answers = OciReview()
    then, now = answers.abilities((in_tenancy(before), in_tenancy(after)))
    gained = {(one.principal, one.operation) for one in now - then}
    lost = {(one.principal, one.operation) for one in then - now}
    for asked in requests(chance, 120):
        was, is_now = allowed(before, asked), allowed(after, asked)
        if is_now and not was:
            assert gained & _says(asked), (asked, after)
        if was and not is_now:
            assert lost & _says(asked), (asked, after)


def _says(asked: Request) -> set[tuple[str, str]]:
    names = (
        (asked.permission, "MANAGE__EVERYTHING_ELSE") if asked.permission == "NOBODY_KNOWS_IT" else (asked.permission,)
    )
    return {(who, name) for who in (asked.who, "everybody") for name in names}


@given(sets_of, st.randoms(use_true_random=False))
def test_what_only_reads_differently_shows_nothing(allow: list[Allow], chance: random.Random) -> None:
    before = in_tenancy(allow)
    texts = [part for one in allow for part in _rewritten(one, chance)]
    texts += chance.sample(texts, len(texts) // 2)
    chance.shuffle(texts)
    cut = chance.randint(0, len(texts))
    policies = [
        resource(POLICY, f"renamed-{number}", compartmentId=TENANCY, statements=part)
        for number, part in enumerate((texts[:cut], texts[cut:]))
    ]
    rule = f"ALL  {{resource.compartment.id='{COMPARTMENT}' , resource.type = 'DataScienceJobRun'}}"
    group = _group("other", "Vision-Dev-Runs", rule)
    after = Snapshot(before.stack, "oci", PLAN, (*policies, group, BUCKET))
    assert sentences(before, after) == []


def _rewritten(one: Allow, chance: random.Random) -> list[str]:
    verb, kind = one.grant.split()
    how = chance.randrange(4)
    known = sorted(verb_covers(verb, kind))
    if how == 0 and kind in ("objects", "buckets", "vcns", "repos"):
        middle = chance.randint(1, len(known))
        parts = (known[:middle], known[middle:])
        return [Allow(one.who, f"{{{', '.join(part)}}}", one.where, one.condition).text for part in parts if part]
    if how == 1 and one.condition:
        return [Allow(one.who, one.grant, one.where, f"all {{{one.condition}}}").text]
    if how == 2:
        return [one.text, Allow(one.who, f"inspect {kind}", one.where, one.condition).text]
    return [one.text.replace(" to ", "  TO ").replace("where", "WHERE").replace("Allow", "allow")]
