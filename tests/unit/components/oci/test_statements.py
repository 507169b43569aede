# SPDX-License-Identifier: Apache-2.0
"""Grants as statements: valid, narrowed, in one order, within OCI's limits, and enough."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.tables import table
from components.oci import iam
from components.oci.iam.matching import parse_rule
from components.oci.iam.parse import parse_statement
from components.oci.plan import OciPlan
from components.oci.stack import ComputeTarget, FlowLog, Narrow, OciAccess, OciLogs, OciNetwork, Users, Vault
from components.oci.statements import (
    STATEMENTS_PER_POLICY,
    Line,
    lines_by_policy,
    matching_rule,
    permissions_for,
    policy_lines,
    subject_of_grant,
)
from schemas.model import AccessMode, Bucket, Code, Git, Input, Registry, Secret, Shape, Uses
from tests.support.samples import COMPARTMENT, NETWORKS, TENANCY, job, own, plan

USERS = Users(group="scientists")
MODES = get_args(AccessMode)


def texts(of: OciPlan) -> list[str]:
    return [line.text for line in policy_lines(of)]


def access(**changes: object) -> OciAccess:
    return OciAccess(users=USERS, **changes)  # type: ignore[arg-type]  # each keyword is a field of OciAccess


names = st.text(
    st.characters(min_codepoint=32, max_codepoint=126, exclude_characters="'"), min_size=1, max_size=40
).filter(lambda text: text.strip() == text)


# Quotes cannot be written; a slash stands between a domain and a name.
group_names = names.filter(lambda text: "/" not in text)
people = st.one_of(
    st.builds(Users, group=group_names),
    st.builds(Users, group=st.builds("{}/{}".format, group_names, group_names)),
    st.builds(Users, dynamic_group=group_names),
    st.sampled_from(
        [
            Users(),
            Users(notebooks=True),
            Users(group="ocid1.group.oc1..a"),
            Users(dynamic_group="ocid1.dynamicgroup.oc1..a"),
        ]
    ),
)
any_access = st.builds(
    OciAccess,
    mode=st.sampled_from(MODES),
    users=people,
    runs=st.none() | group_names,
    domain=st.none() | group_names,
    scope=st.sampled_from(["compartment", "tenancy"]),
    narrow=st.builds(Narrow, repository=st.booleans(), bucket=st.booleans()),
)


@given(
    who=any_access,
    bucket=names,
    repository=names,
    other=names,
    compartment=st.sampled_from([COMPARTMENT, TENANCY]),
    elsewhere=st.sampled_from([None, NETWORKS, TENANCY]),
    keyed=st.booleans(),
)
def test_every_statement_is_policy_language_and_reads_back(
    who: OciAccess, bucket: str, repository: str, other: str, compartment: str, elsewhere: str | None, keyed: bool
) -> None:
    made = plan(
        compartment=compartment,
        access=who,
        network=OciNetwork(subnet="ocid1.subnet.a" if elsewhere else None, compartment=elsewhere),
        bucket=Bucket(name=bucket, key="ocid1.key.oc1.iad.a" if keyed else None),
        registry=Registry(repository=repository),
        vault=Vault("ocid1.vault.a", "ocid1.key.a", {"token": Secret()}),
        jobs={"train": job(options={"adsDriver": True}, inputs=(Input("/a", other),))},
    )
    for line in policy_lines(made):
        assert parse_statement(line.text) == line.statement
        at = TENANCY if line.attached_to_tenancy else compartment
        # A policy names the compartment it is attached to, or one below; nobody knows of two which is below the other.
        assert at == TENANCY or line.statement.location == iam.CompartmentId(at)
    in_policies = [line for part in lines_by_policy(made).values() for line in part]
    assert in_policies == sorted(policy_lines(made), key=lambda line: line.attached_to_tenancy)
    for what in ("runs", "notebooks"):
        parse_rule(matching_rule(made, what))


@pytest.mark.parametrize("mode", MODES)
def test_two_plans_of_one_stack_have_the_same_statements_in_the_same_order(mode: AccessMode) -> None:
    assert texts(plan(access=access(mode=mode))) == texts(plan(access=access(mode=mode)))


def needed(of: OciPlan) -> Iterator[tuple[str, str, frozenset[str], str | None]]:
    """(who, resource type, permissions, target) of every call of the plan's grants."""
    for grant in of.access.grants:
        words = f"{grant.does} {grant.what}"
        if words in table("oci_access")["operations"]:
            for resource_type, wanted, _ in permissions_for(words):
                yield grant.who, resource_type, wanted, grant.target


@pytest.mark.parametrize("network", [OciNetwork(), OciNetwork(subnet="ocid1.subnet.a", compartment=NETWORKS)])
def test_least_privilege_is_enough_for_every_call_it_was_made_of(network: OciNetwork) -> None:
    made = plan(network=network, jobs={"train": job(options={"adsDriver": True}, inputs=(Input("/a", "other"),))})
    found = policy_lines(made)
    for who, resource_type, wanted, target in needed(made):
        covering = [
            line
            for line in found
            if line.statement.subject == subject_of_grant(made, who)
            and (target is None or target in line.text)
            and wanted <= iam.permissions_of_grant(line.statement.grant)
        ]
        assert covering, (who, resource_type, wanted, target)


def test_least_privilege_has_no_verb_larger_than_its_permissions_ask_for() -> None:
    """Every statement is necessary, and a smaller verb would not be enough for any of them."""
    made = plan()
    for line in policy_lines(made):
        grant = line.statement.grant
        if not isinstance(grant, iam.VerbGrant):
            continue
        asked = frozenset[str]()
        for who, resource_type, wanted, _ in needed(made):
            if subject_of_grant(made, who) == line.statement.subject and resource_type == grant.resource_type:
                asked |= wanted
        smaller = {"manage": "use", "use": "read", "read": "inspect"}.get(grant.verb)
        if smaller:
            assert not asked <= iam.permissions_of_grant(iam.VerbGrant(smaller, grant.resource_type)), line.text  # type: ignore[arg-type]


def test_least_privilege_grants_less_than_documented_and_that_less_than_the_proof_of_concept() -> None:
    def granted(mode: AccessMode) -> frozenset[str]:
        found = policy_lines(plan(access=access(mode=mode)))
        return frozenset().union(*(iam.permissions_of_grant(line.statement.grant) for line in found))

    # `use vnics` and the like are inside virtual-network-family.
    assert granted("least-privilege") < granted("documented") < granted("proof-of-concept")


def test_images_and_objects_are_narrowed_and_quoted() -> None:
    made = texts(plan(bucket=Bucket(name="it is"), registry=Registry(repository="a/b")))
    for text in made:
        assert (" repos " not in text) or text.endswith("where target.repo.name = 'a/b'")
        assert ("OBJECT_" not in text) or text.endswith("where target.bucket.name = 'it is'")


def test_documented_statements_are_widened_where_asked() -> None:
    wide = texts(plan(access=access(mode="documented", narrow=Narrow(repository=False, bucket=False))))
    assert not [text for text in wide if " where " in text]
    narrow = texts(plan(access=access(mode="documented")))
    assert len([text for text in narrow if " where " in text]) == 5


def test_documented_adds_what_the_documents_do_not_speak_of() -> None:
    made = plan(access=access(mode="documented"), jobs={"train": job(inputs=(Input("/a", "other"),))})
    assert [text for text in texts(made) if "'other'" in text]


def test_a_network_elsewhere_is_spoken_of_where_it_is_and_nothing_else_is() -> None:
    for mode in ("least-privilege", "documented"):
        elsewhere = OciNetwork(subnet="ocid1.subnet.a", compartment=NETWORKS)
        made = plan(access=access(mode=mode), network=elsewhere)
        there = [line for line in policy_lines(made) if NETWORKS in line.text]
        here = [line for line in policy_lines(made) if COMPARTMENT in line.text]
        assert there
        assert here
        assert all(line.attached_to_tenancy for line in there)
        assert not any(line.attached_to_tenancy for line in here)
        network_words = ("virtual-network-family", "subnets", "vnics")
        for line in policy_lines(made):
            assert (line in there) == any(word in line.text for word in network_words), line.text


def test_the_whole_tenancy_is_spoken_of_where_the_scope_says_so() -> None:
    made = policy_lines(plan(access=access(scope="tenancy")))
    assert {line.statement.location for line in made} == {iam.Tenancy()}
    assert all(line.attached_to_tenancy for line in made)


def test_a_domain_stands_before_the_groups_in_it() -> None:
    made = texts(plan(access=access(domain="Engineering")))
    assert any(text.startswith("Allow group 'Engineering'/'scientists' to ") for text in made)
    other = OciAccess(users=Users(group="People/scientists"), domain="Engineering")
    assert any(text.startswith("Allow group 'People'/'scientists' to ") for text in texts(plan(access=other)))


def test_notebooks_stand_where_the_group_stood() -> None:
    made = texts(plan(access=OciAccess(users=Users(notebooks=True))))
    assert not [text for text in made if text.startswith("Allow group")]
    assert [text for text in made if "dynamic-group vision-dev-notebooks to manage data-science-job-runs" in text]


def test_without_users_no_statement_is_for_nobody() -> None:
    for mode in MODES:
        made = texts(plan(access=OciAccess(mode=mode)))
        assert made
        assert not [text for text in made if text.startswith("Allow group")]


def test_groups_may_be_named_by_ocid() -> None:
    users, runs = "ocid1.group.oc1..people", "ocid1.dynamicgroup.oc1..runs"
    made = policy_lines(plan(access=OciAccess(users=Users(group=users), runs=runs, domain="Engineering")))
    assert {line.text.split(" to ")[0] for line in made if "service" not in line.text} == {
        f"Allow group id {users}",
        f"Allow dynamic-group id {runs}",
    }
    assert all(parse_statement(line.text) == line.statement for line in made)


def test_the_root_compartment_is_spoken_of_as_the_tenancy() -> None:
    made = plan(compartment=TENANCY)
    assert {line.statement.location for line in policy_lines(made)} == {iam.Tenancy()}
    assert set(lines_by_policy(made)) == {"access-tenancy"}
    assert f"resource.compartment.id = '{TENANCY}'" in matching_rule(made, "runs")
    here = plan(network=OciNetwork(subnet="ocid1.subnet.a", compartment=TENANCY))
    assert {line.attached_to_tenancy for line in policy_lines(here)} == {True, False}


@pytest.mark.parametrize("mode", ["least-privilege", "documented"])
def test_runs_open_the_stacks_own_secrets_and_no_others(mode: AccessMode) -> None:
    git = Code(git=Git("git@git.example.com:a.git", secret="ocid1.vaultsecret.oc1.iad.a"))
    vault = Vault("ocid1.vault.a", "ocid1.key.a", {"token": Secret()})
    made = texts(plan(access=access(mode=mode), vault=vault, jobs={"train": job(code=git)}))
    opened = [text.partition(" where ")[2] for text in made if "SECRET_BUNDLE_READ" in text]
    assert opened == ["target.secret.name = 'vision-dev-token'", "target.secret.id = 'ocid1.vaultsecret.oc1.iad.a'"]
    assert not [text for text in made if "secret-bundles" in text]


def test_input_data_of_another_bucket_can_be_mounted_and_not_changed() -> None:
    made = policy_lines(plan(jobs={"train": job(inputs=(Input("/a", "other"),))}))
    granted = [line for line in made if line.text.endswith("target.bucket.name = 'other'")]
    allowed = frozenset().union(*(iam.permissions_of_grant(line.statement.grant) for line in granted))
    assert allowed == {"BUCKET_INSPECT", "BUCKET_READ", "OBJECT_INSPECT", "OBJECT_READ"}
    assert {line.trust for line in granted} == {"mixed"}


def test_access_that_is_not_made_has_no_statements() -> None:
    assert policy_lines(plan(uses=Uses("org/trainyard/platform", ("access",)))) == ()
    assert lines_by_policy(plan(access=access(existing=True))) == {}


def test_without_logs_nobody_is_let_near_them() -> None:
    assert not [text for text in texts(plan(logs=OciLogs(enabled=False))) if "log-" in text]


def _many(buckets: int) -> OciPlan:
    inputs = tuple(Input(f"/data/{number}", f"bucket-{number}") for number in range(buckets))
    return plan(jobs={"train": job(inputs=inputs)})


@given(buckets=st.integers(0, 120))
def test_policies_hold_every_statement_once_and_none_too_many(buckets: int) -> None:
    made = _many(buckets)
    parts: dict[str, tuple[Line, ...]] = lines_by_policy(made)
    assert [line for part in parts.values() for line in part] == list(policy_lines(made))
    assert all(0 < len(part) <= STATEMENTS_PER_POLICY for part in parts.values())
    for part in parts.values():
        assert len({line.attached_to_tenancy for line in part}) == 1


def test_matching_rules_name_the_compartment_past_the_proof_of_concept() -> None:
    here = f"resource.compartment.id = '{COMPARTMENT}'"
    assert matching_rule(plan(), "runs") == f"all {{resource.type = 'datasciencejobrun', {here}}}"
    assert matching_rule(plan(), "notebooks") == f"all {{resource.type = 'datasciencenotebooksession', {here}}}"
    everything = matching_rule(plan(access=access(mode="proof-of-concept")), "runs")
    assert everything.startswith("any {")
    assert "compartment" not in everything


def test_every_row_of_the_tables_is_policy_language() -> None:
    rows = [row["grant"] for mode in ("documented", "proof-of-concept") for row in table("oci_access")[mode]]
    for words in (*rows, *table("oci_access")["verbs"].values()):
        parse_statement(f"Allow group a to {words} in tenancy")


def test_every_grant_of_the_catalog_is_translated() -> None:
    tables = table("oci_access")
    for row in table("access")["grant"]:
        words = f"{row['does']} {row['what']}"
        assert (words in tables["operations"]) != (words in tables["verbs"]), words


@pytest.mark.parametrize("mode", ["least-privilege", "documented"])
def test_users_read_the_flow_log_that_is_there_where_it_is(mode: AccessMode) -> None:
    network = OciNetwork(subnet="ocid1.subnet.a", compartment=NETWORKS)
    named = replace(network, flow_log=FlowLog("ocid1.loggroup.a", "ocid1.log.a"))
    before, after = (texts(plan(access=access(mode=mode), network=one)) for one in (network, named))
    more = [parse_statement(text) for text in after if text not in before]
    assert {one.location for one in more} == {iam.CompartmentId(NETWORKS)}
    assert {one.subject.kind for one in more} == {"group"}
    assert {"LOG_CONTENT_READ", "LOG_GROUP_READ"} <= frozenset().union(
        *(iam.permissions_of_grant(one.grant) for one in more)
    )


def test_who_starts_runs_reads_the_compute_target_and_needs_a_subnet_only_for_nodes_in_it() -> None:
    pool = {"pool": ComputeTarget(Shape("VM.GPU.A10.1"))}
    alone = {"train": replace(own(job(roles={"main": 1})), compute_target="pool")}
    before, after = (texts(plan(compute_targets=pool, jobs=jobs)) for jobs in (None, alone))
    assert [text for text in after if text not in before] == [
        f"Allow group scientists to read data-science-compute-targets in compartment id {COMPARTMENT}"
    ]
    assert [text for text in before if "subnet" in text or "vnic" in text]
    assert not [text for text in after if "subnet" in text or "vnic" in text]
    grouped = {"train": replace(alone["train"], layout="node-groups")}
    assert {*texts(plan(compute_targets=pool, jobs=grouped))} == {*before, *after}
