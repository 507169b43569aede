# SPDX-License-Identifier: Apache-2.0
"""Who may do what: grants from the catalog, as far as this stack has use for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from catalog.frameworks import Framework
from catalog.tables import table
from components.plan.model import AccessPlan, Grant
from components.plan.naming import physical
from components.plan.ports import options_of
from schemas.model import Stack


def access_plan(stack: Stack, frameworks: Mapping[str, Framework], bucket: str, repository: str) -> AccessPlan:
    access = stack.access
    taken = stack.uses is not None and "access" in stack.uses.take
    users = access.users
    return AccessPlan(
        mode=access.mode,
        create=not (access.existing or taken),
        users_group=users.group,
        users_dynamic_group=physical(stack, "notebooks") if users.notebooks else users.dynamic_group,
        make_notebooks_group=users.notebooks,
        runs_group=access.runs or physical(stack, "runs"),
        make_runs_group=access.runs is None,
        domain=access.domain,
        domain_endpoint=access.domain_endpoint,
        tenancy_wide=access.scope == "tenancy" or access.mode == "proof-of-concept",
        narrow_repository=access.narrow.repository,
        narrow_bucket=access.narrow.bucket,
        home_region=access.home_region,
        grants=tuple(_grants(stack, frameworks, bucket, repository)),
    )


def _grants(stack: Stack, frameworks: Mapping[str, Framework], bucket: str, repository: str) -> Iterator[Grant]:
    targets = {
        None: (None,),
        "repository": (repository,),
        "bucket": (bucket,),
        "inputs": _input_buckets(stack, bucket),
        "key": (stack.bucket.key,),
        "secrets": _secrets(stack),
    }
    needed = _circumstances(stack, frameworks, bucket)
    for row in table("access")["grant"]:
        if row.get("when", "") in needed:
            for target in targets[row.get("only")]:
                yield Grant(row["who"], row["does"], row["what"], row["why"], target)


def _circumstances(stack: Stack, frameworks: Mapping[str, Framework], bucket: str) -> set[str]:
    """Each word a row of access.toml may name under `when`, and whether it holds here."""
    holds = {
        "": True,
        "subnet": True,
        "logs": stack.logs.enabled,
        "inputs": bool(_input_buckets(stack, bucket)),
        "key": stack.bucket.key is not None and stack.bucket.existing is None,
        "secrets": bool(_secrets(stack)),
        "ads-driver": any(
            options_of(frameworks[name], job).get("adsDriver") and job.layout == "run-per-node"
            for name, job in stack.jobs.items()
        ),
    }
    return {word for word, true in holds.items() if true}


def _input_buckets(stack: Stack, bucket: str) -> tuple[str, ...]:
    """Buckets of input data other than the stack's own, which runs may read anyway."""
    named = (item.bucket for job in stack.jobs.values() for item in job.inputs)
    return tuple(dict.fromkeys(name for name in named if name and name != bucket))


def _secrets(stack: Stack) -> tuple[str, ...]:
    """Those made for the stack, by name, and those that open repositories of code, by OCID."""
    made = (physical(stack, name) for name in (stack.vault.secrets if stack.vault else ()))
    keys = (job.code.git.secret for job in stack.jobs.values() if job.code and job.code.git and job.code.git.secret)
    return tuple(dict.fromkeys((*made, *(key for key in keys if not key.startswith("${")))))
