# SPDX-License-Identifier: Apache-2.0
"""Which statements of a stack's access are not in force, judged by the tenancy's policies: OCI has no simulation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

from components.oci.client.live_policies import may_hold
from components.oci.client.tenancy_reader import TenancyReader
from components.oci.deployer import deployer_lines
from components.oci.iam import AllOf, Comparison, Condition, Statement, Subject, Text, permissions_of_grant
from components.oci.iam.judge import (
    DEFAULT_DOMAIN,
    AttachedPolicy,
    Compartments,
    CompiledPolicies,
    Membership,
    Principal,
    Target,
    compile_policies,
    judge_request,
)
from components.oci.iam.matching import MatchableResource, matches_rule, parse_rule
from components.oci.iam.parse import parse_statement
from components.oci.iam.printing import subject_text
from components.oci.iam.statement import CompartmentId, Identified, Named, StatementError
from components.oci.plan import OciPlan
from components.oci.statements import (
    Line,
    group_named,
    has_users,
    lines_by_policy,
    matching_rule,
    policy_lines,
    users_subject,
)
from components.platform.calls import ProviderError
from components.platform.prerequisites import Answer, Problem, Remark

# The group that every tenancy has. Nobody can take its rights away.
_ADMINISTRATORS = "Administrators"
_RUN, _NOTEBOOK = "datasciencejobrun", "datasciencenotebooksession"


@dataclass(frozen=True)
class _InForce:
    """`refused`: places whose policies the caller may not read. `names`: those of all policies that were read."""

    policies: CompiledPolicies
    names: frozenset[str]
    refused: tuple[ProviderError, ...]
    unread: int


class AccessJudge:
    """Compares the statements that a plan needs with those in force. Several checks share what it reads."""

    def __init__(self, reader: TenancyReader, plan: OciPlan) -> None:
        self._reader, self._plan = reader, plan

    @property
    def _root(self) -> str:
        return self._reader.session.tenancy

    @cached_property
    def _in_force(self) -> _InForce:
        parents, names = dict[str, str](), dict[str, str]()
        for start in dict.fromkeys(filter(None, (self._plan.compartment, self._plan.network.compartment))):
            at = start
            while at != self._root and at not in parents:
                found = self._reader.read(f"Read the compartment {at}", "identity", "get_compartment", at)
                parents[at], names[at] = found.compartment_id, found.name
                at = found.compartment_id
        attached, refused, unread = list[AttachedPolicy](), list[ProviderError](), 0
        for place in (*parents, self._root):
            where = "the tenancy" if place == self._root else f"the compartment {names[place]}"
            try:
                policies = self._reader.rows(f"List the policies of {where}", "identity", "list_policies", place)
            except ProviderError as error:
                refused.append(error)
                continue
            for policy in policies:
                statements = list[Statement]()
                for text in policy.statements:
                    try:
                        statements.append(parse_statement(text))
                    except StatementError:
                        unread += 1
                attached.append(AttachedPolicy(policy.name, place, tuple(statements)))
        compiled = compile_policies(attached, Compartments(self._root, parents, names))
        return _InForce(compiled, frozenset(policy.name for policy in attached), tuple(refused), unread)

    @cached_property
    def _dynamic_groups(self) -> list[Any]:
        return self._reader.rows("List the dynamic groups", "identity", "list_dynamic_groups", self._root)

    @cached_property
    def _groups(self) -> list[Any]:
        return self._reader.rows("List the groups", "identity", "list_groups", self._root)

    @cached_property
    def _is_made(self) -> bool:
        """Whether the stack made its access, or nobody expects it to."""
        own = {f"{self._plan.team}-{self._plan.environment}-{key}" for key in lines_by_policy(self._plan)}
        return not self._plan.access.create or bool(own & self._in_force.names)

    def check_runs(self) -> Iterator[Answer]:
        """The dynamic group of the runs, and what the runs and the service may do."""
        if not self._is_made:
            return
        group, rule = self._member("dynamic-group", self._plan.access.runs_group), matching_rule(self._plan, "runs")
        yield from self._check_dynamic_group(group, _RUN, f"Make it with the matching rule: {rule}")
        runs = self._resource_principal(_RUN, group)
        for line in self._lines():
            if line.statement.subject.kind == "service":
                service = Principal("service", name=str(getattr(line.statement.subject.members[0], "name", "")))
                yield from self._check_line(line, service)
            elif line.statement.subject != self._users:
                yield from self._check_line(line, runs)

    def check_users(self) -> Iterator[Answer]:
        users, lines = self._users, self._lines_of_users()
        if users is None or not self._is_made or not lines:
            return
        member = users.members[0]
        if users.kind == "dynamic-group":
            rule = matching_rule(self._plan, "notebooks")
            yield from self._check_dynamic_group(member, _NOTEBOOK, f"A rule that fits: {rule}")
            principal = self._resource_principal(_NOTEBOOK, member)
        else:
            found = _row_of_member(self._groups, member)
            if found is None and _is_listed(member):
                name = subject_text(users)
                yield Problem(f"there is no {name}, whose members start runs", "Make it, or correct `access: users`")
                return
            principal = Principal("user", groups=(_membership(member, found),))
        for line in lines:
            yield from self._check_line(line, principal)

    def check_caller(self, acts_as: str) -> Iterator[Answer]:
        """Whether the caller may do what the deployer, or a user of the stack, has to do."""
        user = self._reader.user
        if not user:
            yield Remark("the rights of the caller are not judged: a session token does not say whose it is")
            return
        what = "List the groups of the caller"
        rows = self._reader.rows(what, "identity", "list_user_group_memberships", self._root, user_id=user)
        groups = tuple(Membership(row.group_id, self._name_of_group(row.group_id)) for row in rows)
        if any(group.name == _ADMINISTRATORS for group in groups):
            return
        principal = Principal("user", user, groups=groups)
        if acts_as == "user":
            lines: Sequence[Line] = self._lines_of_users()
        else:
            lines = deployer_lines(self._plan, next((group.name for group in groups), "deployers"))
        answers = [
            answer for line in lines for answer in self._check_line(line, principal, f"the caller, as {acts_as},")
        ]
        if len(lines) > 1 and sum(isinstance(answer, Problem) for answer in answers) == len(lines):
            names = ", ".join(group.name for group in groups) or "none"
            other = "user" if acts_as == "deployer" else "deployer"
            yield Problem(
                f"the caller has none of the rights of a {acts_as} of this stack (groups of the caller: {names})",
                f"`trainyard access {self._plan.stack}` prints the policy; --profile takes another caller, and "
                f"--as {other} asks for other rights",
            )
            return
        yield from answers

    @property
    def _users(self) -> Subject | None:
        return users_subject(self._plan.access) if has_users(self._plan.access) else None

    def _lines_of_users(self) -> list[Line]:
        return [line for line in self._lines() if line.statement.subject == self._users]

    def _member(self, kind: Literal["group", "dynamic-group"], name: str) -> Named | Identified:
        return group_named(kind, name, self._plan.access.domain).members[0]

    def _lines(self) -> tuple[Line, ...]:
        return policy_lines(replace(self._plan, access=replace(self._plan.access, create=True)))

    def _check_line(self, line: Line, principal: Principal, who: str = "") -> Iterator[Answer]:
        statement = line.statement
        place = statement.location.ocid if isinstance(statement.location, CompartmentId) else self._root
        policies, variables = self._in_force.policies, _named_in_condition(statement.condition)
        needed = permissions_of_grant(statement.grant)
        missing = judge_request(policies, principal, sorted(needed), Target(place, variables)).missing
        if not missing:
            return
        lineage, given = policies.lineage(place), {**variables, "target.compartment.id": place}
        uncertain = [
            name
            for name in missing
            if any(
                rule.scope in lineage and rule.test and may_hold(rule.statement.condition, given)
                for rule in policies.rules(principal, name)
            )
        ]
        who, why = who or subject_text(statement.subject), "; ".join(line.why)
        if len(uncertain) == len(missing):
            yield Remark(f"{who} may do this only under a condition that is not judged here: {line.text}")
            return
        for error in self._in_force.refused:
            raise error
        if self._in_force.unread:
            yield Remark("some statements of the tenancy could not be read, such as those about other tenancies")
        remedy = f"An administrator adds it to a policy attached to {self._place_words(line)}"
        if self._plan.access.create and who == subject_text(statement.subject):
            remedy = f"`pulumi up --refresh -s {self._plan.stack}` puts it back"
        yield Problem(f"{who} lacks a statement ({why}): {line.text}", remedy)

    def _place_words(self, line: Line) -> str:
        return "the tenancy" if line.attached_to_tenancy else f"the compartment {self._plan.compartment}"

    def _check_dynamic_group(self, member: Named | Identified, kind: str, remedy: str) -> Iterator[Answer]:
        name = _text_of_member(member)
        if not _is_listed(member):
            yield Remark(f"the dynamic group {name} is in an identity domain, which is not read here")
            return
        found = _row_of_member(self._dynamic_groups, member)
        if found is None:
            yield Problem(f"there is no dynamic group {name}", remedy)
        elif not _matches(found, kind, self._plan.compartment or ""):
            yield Problem(f"the dynamic group {name} does not match what it is for: {found.matching_rule}", remedy)

    def _resource_principal(self, kind: str, member: Named | Identified) -> Principal:
        """With all dynamic groups that it is in. The named one counts even where it is missing, or its rule is wrong,
        which another sentence says."""
        place = self._plan.compartment or ""
        named = _row_of_member(self._dynamic_groups, member) if _is_listed(member) else None
        matching = [one for one in self._dynamic_groups if one is named or _matches(one, kind, place)]
        groups = [Membership(one.id, one.name) for one in matching]
        if named is None:
            groups.append(_membership(member, None))
        return Principal(kind, f"ocid1.{kind}.oc1..any", compartment=place, dynamic_groups=tuple(groups))

    def _name_of_group(self, ocid: str) -> str:
        return str(self._reader.read("Read a group of the caller", "identity", "get_group", ocid).name)


def _is_listed(member: Named | Identified) -> bool:
    """Whether the lists of the tenancy have it: they have no groups of other identity domains."""
    return isinstance(member, Identified) or (member.domain or DEFAULT_DOMAIN).lower() == DEFAULT_DOMAIN.lower()


def _text_of_member(member: Named | Identified) -> str:
    return member.ocid if isinstance(member, Identified) else member.name


def _row_of_member(rows: Sequence[Any], member: Named | Identified) -> Any:
    """The group of the tenancy that a statement names; None if there is none."""
    wanted = _text_of_member(member).lower()
    return next((row for row in rows if wanted in (row.id.lower(), row.name.lower())), None)


def _membership(member: Named | Identified, found: Any) -> Membership:
    if found is not None and _is_listed(member):
        return Membership(found.id, found.name)
    if isinstance(member, Identified):
        return Membership(member.ocid, "")
    return Membership("", member.name, member.domain or DEFAULT_DOMAIN)


def _matches(group: Any, kind: str, compartment: str) -> bool:
    try:
        rule = parse_rule(group.matching_rule)
    except StatementError:
        return False
    return matches_rule(rule, MatchableResource(f"ocid1.{kind}.oc1..any", compartment))


def _named_in_condition(condition: Condition | None) -> dict[str, str]:
    """The values for which a statement of the plan is meant: a bucket's name, a repository's."""
    match condition:
        case AllOf(parts):
            return {name: value for part in parts for name, value in _named_in_condition(part).items()}
        case Comparison(variable, "=", (Text(text),)):
            return {variable: text}
    return {}
