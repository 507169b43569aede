# SPDX-License-Identifier: Apache-2.0
"""Grants: those that the stack needs, and no others."""

from __future__ import annotations

from dataclasses import replace

import pytest

from catalog.tables import table
from components.oci.stack import ComputeTarget, FlowLog, OciAccess, OciLogs, OciNetwork, OciStack, Users, Vault
from components.plan.build import build_plan
from schemas.model import Bucket, Code, Git, Input, Secret, Shape, Uses
from tests.support.samples import job, own, plan, stack

KEY = "ocid1.key.oc1.iad.a.b"
SECRET = "ocid1.vaultsecret.oc1.iad.a"


def granted(sample: OciStack) -> set[tuple[str, str]]:
    return {(grant.who, f"{grant.does} {grant.what}") for grant in build_plan(sample).access.grants}


PLAIN = granted(stack())


@pytest.mark.parametrize(
    ("sample", "more", "less"),
    [
        (stack(logs=OciLogs(enabled=False)), set(), {("users", "read logs"), ("runs", "write logs")}),
        (stack(bucket=Bucket(key=KEY)), {("bucket-service", "use key")}, set()),
        (stack(bucket=Bucket(existing="there", key=KEY)), set(), set()),
        (stack(vault=Vault("ocid1.vault.a", KEY, {"token": Secret()})), {("runs", "open secrets")}, set()),
        (
            stack(jobs={"train": job(code=Code(git=Git("https://git.example.com/a.git", secret=SECRET)))}),
            {("runs", "open secrets")},
            set(),
        ),
        (stack(jobs={"train": job(inputs=(Input("/data", "other"),))}), {("runs", "read objects")}, set()),
        (stack(jobs={"train": job(inputs=(Input("/data", None, "in/"),))}), set(), set()),
        (stack(jobs={"train": job(options={"adsDriver": True})}), {("runs", "find-host runs")}, set()),
        (stack(jobs={"train": job(options={"adsDriver": True}, layout="node-groups")}), set(), set()),
    ],
    ids=["no logs", "key", "key of another", "vault", "git secret", "inputs", "own inputs", "ads", "ads in groups"],
)
def test_a_circumstance_grants_what_it_needs_and_no_more(
    sample: OciStack, more: set[tuple[str, str]], less: set[tuple[str, str]]
) -> None:
    assert granted(sample) == (PLAIN | more) - less


def test_grants_are_narrowed_to_the_stacks_own_bucket_and_repository() -> None:
    inputs = (Input("/a", "one"), Input("/b", "two"), Input("/c", "one"))
    made = plan(bucket=Bucket(name="mine"), jobs={"train": job(inputs=inputs)})
    by_what = {(grant.who, grant.does, grant.what, grant.target) for grant in made.access.grants}
    assert ("runs", "write", "objects", "mine") in by_what
    assert ("runs", "pull", "images", made.registry.repository) in by_what
    assert [grant.target for grant in made.access.grants if grant.does == "read" and grant.what == "objects"] == [
        "one",
        "two",
    ]


@pytest.mark.parametrize(
    ("access", "group", "dynamic"),
    [
        (OciAccess(users=Users(group="scientists")), "scientists", None),
        (OciAccess(users=Users(dynamic_group="sessions")), None, "sessions"),
        (OciAccess(users=Users(notebooks=True)), None, "vision-dev-notebooks"),
    ],
)
def test_users_are_a_group_or_a_dynamic_group(access: OciAccess, group: str | None, dynamic: str | None) -> None:
    made = plan(access=access).access
    assert (made.users_group, made.users_dynamic_group) == (group, dynamic)
    assert made.make_notebooks_group == access.users.notebooks


def test_access_that_exists_or_is_taken_is_not_made() -> None:
    users = Users(group="scientists")
    assert plan().access.create
    assert not plan(access=OciAccess(users=users, existing=True)).access.create
    assert not plan(uses=Uses("org/trainyard/platform", ("access",))).access.create
    assert plan(uses=Uses("org/trainyard/platform", ("network",))).access.create


def test_every_grant_of_the_catalog_is_reached_by_some_stack() -> None:
    everything = stack(
        network=OciNetwork(flow_log=FlowLog("ocid1.loggroup.a", "ocid1.log.a")),
        bucket=Bucket(key=KEY),
        vault=Vault("ocid1.vault.a", KEY, {"token": Secret()}),
        compute_targets={"pool": ComputeTarget(Shape("VM.GPU.A10.1"))},
        jobs={
            "train": job(options={"adsDriver": True}, inputs=(Input("/data", "other"),)),
            "pooled": replace(own(job(roles={"main": 1})), compute_target="pool"),
        },
    )
    reached = granted(everything)
    rows = (*table("access")["grant"], *table("oci_access")["grant"])
    assert {(row["who"], f"{row['does']} {row['what']}") for row in rows} == reached


def test_secrets_are_those_of_the_stack_by_name_and_those_of_repositories_by_ocid() -> None:
    git = Code(git=Git("git@git.example.com:a.git", secret=SECRET))
    own = Code(git=Git("git@git.example.com:b.git", secret="${secret.token}"))
    jobs = {"a": job(code=git), "b": job(code=own), "c": job(code=git)}
    made = plan(vault=Vault("ocid1.vault.a", KEY, {"token": Secret(), "wandb": Secret()}), jobs=jobs)
    targets = [grant.target for grant in made.access.grants if grant.what == "secrets"]
    assert targets == ["vision-dev-token", "vision-dev-wandb", SECRET]
