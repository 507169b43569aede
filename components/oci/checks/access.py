# SPDX-License-Identifier: Apache-2.0
"""Checks of access on OCI: groups, identity domains, and the statements that are made for them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from components.oci.stack import Narrow, OciStack, is_ocid, rule
from schemas.facts import Facts
from schemas.findings import Wrong, at
from schemas.name_suggestions import suggest_name

# Names of groups and identity domains are part of policy statements. A group's name may begin with its domain, if that
# is not the stack's.
_NAME = r"[A-Za-z0-9_.@+-](?:[A-Za-z0-9_.@+ -]{0,98}[A-Za-z0-9_.@+-])?"
_DOMAIN, _GROUP = re.compile(_NAME), re.compile(rf"(?:{_NAME}/)?{_NAME}")
_NAME_REMEDY = "use up to 100 letters, digits, `.`, `_`, `-`, `+`, `@` and spaces between them"
_GROUP_OCID = re.compile(r"ocid1\.[a-z]+\.[a-z0-9-]+\.[a-z0-9-]*\.[A-Za-z0-9_.-]+")


@rule("TY701", "nobody may start runs")
def no_users_of_runs(stack: OciStack, _: Facts) -> Iterator[Wrong]:
    users = stack.access.users
    named = users.group or users.dynamic_group or users.notebooks
    if stack.makes("access") and not named and stack.access.mode != "proof-of-concept":
        message = "no users are named, so nobody would get access"
        yield Wrong(at("access"), message, "add `users: { group: <name> }`, or `users: { notebooks: true }`")


@rule("TY702", "users are named twice")
def users_twice(stack: OciStack, _: Facts) -> Iterator[Wrong]:
    users = stack.access.users
    if users.dynamic_group and users.notebooks:
        message = "`notebooks` makes a dynamic group, but `dynamicGroup` names an existing one"
        yield Wrong(at("access", "users", "notebooks"), message, "keep one of them")


@rule("TY703", "access is made without a tenancy")
def no_tenancy(stack: OciStack, _: Facts) -> Iterator[Wrong]:
    if stack.makes("access") and stack.tenancy is None:
        message = "dynamic groups and policies are made in the tenancy, but `trainyard:tenancy` is missing"
        remedy = "add its OCID, or `access: { existing: true }`, or take access from another stack (`uses`)"
        yield Wrong(at("tenancy"), message, remedy)


@rule("TY705", "no compartment")
def no_compartment(stack: OciStack, _: Facts) -> Iterator[Wrong]:
    if stack.compartment is None:
        message = "`trainyard:compartment` is missing: every resource needs one"
        yield Wrong(at("compartment"), message, "add its OCID")


@rule("TY706", "a home region that does not exist")
def home_region(stack: OciStack, facts: Facts) -> Iterator[Wrong]:
    home = stack.access.home_region
    if home is not None and home not in facts.regions:
        yield Wrong(at("access", "homeRegion"), f"`{home}` is not an OCI region", suggest_name(home, facts.regions))


@rule("TY708", "existing access without the runs' group")
def existing_runs(stack: OciStack, _: Facts) -> Iterator[Wrong]:
    if stack.access.existing and stack.access.runs is None and stack.access.mode != "proof-of-concept":
        message = "access exists already, but the runs' dynamic group is not named, so it cannot be checked"
        yield Wrong(at("access", "existing"), message, "add `runs: <dynamic group>` under `trainyard:access`")


@rule("TY710", "a name of a group or identity domain that OCI would refuse")
def group_name(stack: OciStack, _: Facts) -> Iterator[Wrong]:
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
                message = f"`{name[:100]}` is not a valid group name"
                yield Wrong(at("access", *key), message, f"{_NAME_REMEDY}, or DOMAIN/NAME")
        elif not _GROUP_OCID.fullmatch(name):
            message = f"`{name[:100]}` is not a valid OCID"
            yield Wrong(at("access", *key), message, f"copy it from the console: ocid1.{kind}.oc1..<unique part>")
        elif name.split(".")[1] != kind:
            message = f"is the OCID of a {name.split('.')[1]}; it must be of a {kind}"
            yield Wrong(at("access", *key), message, f"look for ocid1.{kind}.…, or write its name")
    domain = stack.access.domain
    if domain is not None and not _DOMAIN.fullmatch(domain):
        message = f"`{domain[:100]}` is not a valid name of an identity domain"
        yield Wrong(at("access", "domain"), message, _NAME_REMEDY)


@rule("TY711", "access for the whole tenancy", severity="warning")
def whole_tenancy(stack: OciStack, _: Facts) -> Iterator[Wrong]:
    if stack.access.scope == "tenancy" and stack.makes("access"):
        message = "statements apply to the whole tenancy, not only to the stack's compartment"
        yield Wrong(
            at("access", "scope"), message, "use `scope: compartment`, unless the stack uses several compartments"
        )


@rule("TY712", "an identity domain without its URL")
def domain_endpoint(stack: OciStack, _: Facts) -> Iterator[Wrong]:
    access = stack.access
    makes_groups = stack.makes("access") and (access.runs is None or access.users.notebooks)
    other = access.domain is not None and access.domain.casefold() != "default"
    if makes_groups and other and access.domain_endpoint is None:
        message = f"groups are made in the domain `{access.domain}`, but its URL is missing"
        yield Wrong(
            at("access", "domain"), message, "add `domainEndpoint`, which the domain's page in the console shows"
        )
    if access.domain_endpoint is not None and access.domain is None:
        message = "`domainEndpoint` has no effect without `domain`"
        yield Wrong(at("access", "domainEndpoint"), message, "add `domain`, the domain's name")


@rule("TY713", "access made here cannot name what another stack made")
def access_to_the_unnamed(stack: OciStack, _: Facts) -> Iterator[Wrong]:
    if stack.uses is None or "access" in stack.uses.take or stack.access.existing:
        return
    for concern in ("bucket", "registry"):
        if concern in stack.uses.take:
            message = f"the `{concern}` of {stack.uses.stack} has no known name here, and access is narrowed to names"
            remedy = f"take `access` too, or do not take it but name it: `trainyard:{concern}: {{ existing: NAME }}`"
            yield Wrong(at("uses", "take"), message, remedy)


@rule("TY715", "`narrow` without effect in this access mode", severity="warning")
def narrow_without_effect(stack: OciStack, _: Facts) -> Iterator[Wrong]:
    access = stack.access
    if access.narrow != Narrow() and access.mode != "documented":
        how = "always narrowed" if access.mode == "least-privilege" else "never narrowed"
        message = f"`narrow` has no effect with `{access.mode}`, which is {how}"
        yield Wrong(at("access", "narrow"), message, "remove it, or use `mode: documented`")
