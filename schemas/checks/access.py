# SPDX-License-Identifier: Apache-2.0
"""Checks of who may do what, and of what another stack answers for."""

from __future__ import annotations

import re
from collections.abc import Iterator

from schemas.checks.network import is_production
from schemas.checks.registry import Wrong, at, rule
from schemas.facts import Facts
from schemas.model import Access, Bucket, Logs, Narrow, Network, Project, Registry, Stack
from schemas.names import is_ocid, suggestion

_STACK = re.compile(r"[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+")
# Names of groups and identity domains stand in policy statements. A group's may have its domain before it, where that
# is another than the stack's.
_NAME = r"[A-Za-z0-9_.@+-](?:[A-Za-z0-9_.@+ -]{0,98}[A-Za-z0-9_.@+-])?"
_DOMAIN, _GROUP = re.compile(_NAME), re.compile(rf"(?:{_NAME}/)?{_NAME}")
_NAME_REMEDY = "use up to 100 letters, digits, `.`, `_`, `-`, `+`, `@` and spaces between them"
_GROUP_OCID = re.compile(r"ocid1\.[a-z]+\.[a-z0-9-]+\.[a-z0-9-]*\.[A-Za-z0-9_.-]+")


def made(stack: Stack) -> bool:
    """Whether this stack makes groups and policies."""
    return not stack.access.existing and not (stack.uses and "access" in stack.uses.take)


@rule("TY701", "nobody may start runs", platform="oci")
def no_users(stack: Stack, _: Facts) -> Iterator[Wrong]:
    users = stack.access.users
    named = users.group or users.dynamic_group or users.notebooks
    if made(stack) and not named and stack.access.mode != "proof-of-concept":
        message = "no users are named: access is made for nobody"
        yield Wrong(at("access"), message, "add `users: { group: <name> }`, or `users: { notebooks: true }`")


@rule("TY702", "users are named twice")
def users_twice(stack: Stack, _: Facts) -> Iterator[Wrong]:
    users = stack.access.users
    if users.dynamic_group and users.notebooks:
        message = "`notebooks` makes a dynamic group, and `dynamicGroup` names one"
        yield Wrong(at("access", "users", "notebooks"), message, "keep one of them")


@rule("TY703", "access is made without a tenancy", platform="oci")
def no_tenancy(stack: Stack, _: Facts) -> Iterator[Wrong]:
    if made(stack) and stack.tenancy is None:
        message = "dynamic groups and policies live in the tenancy, and `trainyard:tenancy` is missing"
        remedy = "add its OCID, or `access: { existing: true }`, or take access from another stack (`uses`)"
        yield Wrong(at("tenancy"), message, remedy)


@rule("TY704", "proof-of-concept access in a production environment")
def open_production(stack: Stack, _: Facts) -> Iterator[Wrong]:
    if stack.access.mode == "proof-of-concept" and is_production(stack):
        message = f"gives the runs all resources of the tenancy, in `{stack.environment}`"
        yield Wrong(at("access", "mode"), message, "use `least-privilege`")


@rule("TY705", "no compartment", platform="oci")
def no_compartment(stack: Stack, _: Facts) -> Iterator[Wrong]:
    if stack.compartment is None:
        message = "`trainyard:compartment` is missing: everything is made in one"
        yield Wrong(at("compartment"), message, "add its OCID")


@rule("TY706", "a home region that does not exist", platform="oci")
def home_region(stack: Stack, facts: Facts) -> Iterator[Wrong]:
    home = stack.access.home_region
    if home is not None and home not in facts.regions:
        yield Wrong(at("access", "homeRegion"), f"`{home}` is no OCI region", suggestion(home, facts.regions))


@rule("TY707", "what another stack answers for is described here too")
def taken_and_own(stack: Stack, _: Facts) -> Iterator[Wrong]:
    if stack.uses is None:
        return
    own = {
        "network": stack.network != Network(),
        "access": stack.access not in (Access(), Access(mode=stack.access.mode, users=stack.access.users)),
        "bucket": stack.bucket != Bucket(),
        "registry": stack.registry != Registry(),
        "logs": stack.logs != Logs(),
        "project": stack.project != Project(),
    }
    for concern in stack.uses.take:
        if own[concern]:
            message = f"`{concern}` is taken from the stack {stack.uses.stack}, and described here too"
            yield Wrong(at(concern), message, f"remove it here, or take `{concern}` out of `uses`")


@rule("TY713", "access made here cannot name what another stack made", platform="oci")
def access_to_the_unnamed(stack: Stack, _: Facts) -> Iterator[Wrong]:
    if stack.uses is None or "access" in stack.uses.take or stack.access.existing:
        return
    for concern in ("bucket", "registry"):
        if concern in stack.uses.take:
            message = (
                f"the `{concern}` of {stack.uses.stack} is not known by name here, and access is narrowed to names"
            )
            remedy = f"take `access` too, or name it: `trainyard:{concern}: {{ existing: NAME }}` in place of taking it"
            yield Wrong(at("uses", "take"), message, remedy)


@rule("TY708", "existing access without the runs' group", platform="oci")
def existing_runs(stack: Stack, _: Facts) -> Iterator[Wrong]:
    if stack.access.existing and stack.access.runs is None and stack.access.mode != "proof-of-concept":
        message = "access exists already, but the runs' dynamic group is not named: nothing can be said of it"
        yield Wrong(at("access", "existing"), message, "add `runs: <dynamic group>` under `trainyard:access`")


@rule("TY709", "the stack is not named as organization/project/stack")
def stack_reference(stack: Stack, _: Facts) -> Iterator[Wrong]:
    if stack.uses is not None and not _STACK.fullmatch(stack.uses.stack):
        message = f"`{stack.uses.stack}` does not name a stack"
        yield Wrong(at("uses", "stack"), message, "write organization/project/stack; `organization` for own backends")


@rule("TY710", "a name of a group or identity domain that OCI would refuse", platform="oci")
def group_name(stack: Stack, _: Facts) -> Iterator[Wrong]:
    users = stack.access.users
    names = {
        ("users", "group"): (users.group, "group"),
        ("users", "dynamicGroup"): (users.dynamic_group, "dynamicgroup"),
        ("runs",): (stack.access.runs, "dynamicgroup"),
    }
    for key, (name, kind) in names.items():
        if name is None:
            continue
        if not is_ocid(name):
            if not _GROUP.fullmatch(name):
                message = f"`{name[:100]}` is not a valid name of a group"
                yield Wrong(at("access", *key), message, f"{_NAME_REMEDY}, or DOMAIN/NAME")
        elif not _GROUP_OCID.fullmatch(name):
            message = f"`{name[:100]}` is not a valid OCID"
            yield Wrong(at("access", *key), message, f"copy it from the console: ocid1.{kind}.oc1..<unique part>")
        elif name.split(".")[1] != kind:
            message = f"is the OCID of a {name.split('.')[1]}; a {kind} is wanted"
            yield Wrong(at("access", *key), message, f"look for ocid1.{kind}.…, or write its name")
    domain = stack.access.domain
    if domain is not None and not _DOMAIN.fullmatch(domain):
        message = f"`{domain[:100]}` is not a valid name of an identity domain"
        yield Wrong(at("access", "domain"), message, _NAME_REMEDY)


@rule("TY711", "access for the whole tenancy", severity="warning", platform="oci")
def whole_tenancy(stack: Stack, _: Facts) -> Iterator[Wrong]:
    if stack.access.scope == "tenancy" and made(stack):
        message = "statements apply to the whole tenancy, not only to the stack's compartment"
        yield Wrong(at("access", "scope"), message, "use `scope: compartment` unless several compartments are used")


@rule("TY712", "an identity domain without its URL", platform="oci")
def domain_endpoint(stack: Stack, _: Facts) -> Iterator[Wrong]:
    access = stack.access
    makes_groups = made(stack) and (access.runs is None or access.users.notebooks)
    other = access.domain is not None and access.domain.casefold() != "default"
    if makes_groups and other and access.domain_endpoint is None:
        message = f"groups are made in the domain `{access.domain}`, and its URL is not said"
        yield Wrong(
            at("access", "domain"), message, "add `domainEndpoint`, as the domain's page in the console shows it"
        )
    if access.domain_endpoint is not None and access.domain is None:
        message = "`domainEndpoint` has no effect without `domain`"
        yield Wrong(at("access", "domainEndpoint"), message, "add `domain`, the domain's name")


@rule("TY714", "a stack that takes from itself")
def takes_from_itself(stack: Stack, _: Facts) -> Iterator[Wrong]:
    if stack.uses is not None and stack.uses.stack.endswith(f"/trainyard/{stack.name}"):
        message = f"`{stack.uses.stack}` is this stack: it cannot take from itself"
        yield Wrong(at("uses", "stack"), message, "name the stack that owns what is taken")


@rule("TY715", "access that is not narrowed, or not by this", severity="warning", platform="oci")
def narrow_without_effect(stack: Stack, _: Facts) -> Iterator[Wrong]:
    access = stack.access
    if access.narrow != Narrow() and access.mode != "documented":
        how = "always narrowed" if access.mode == "least-privilege" else "never narrowed"
        message = f"`narrow` has no effect with `{access.mode}`, which is {how}"
        yield Wrong(at("access", "narrow"), message, "remove it, or use `mode: documented`")
