# SPDX-License-Identifier: Apache-2.0
"""OCI for rehearsals, and the results of a rehearsal, read from OCI's API: objects, last lines of logs, the policies in
force."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from catalog.tables import table
from components.oci import iam
from components.oci import rules as oci_rules
from components.oci import statements as oci_statements
from components.oci.client.job_runs import start_of_job_run
from components.oci.client.session import DEPLOYER, USER, session_of
from components.oci.iam.judge import Compartments
from components.oci.iam.parse import parse_statement
from components.oci.local import people
from components.oci.local.evidence import OciAccessFacts, canonical_statement, read_recorded_call
from components.oci.local.people import small_shapes
from components.oci.local.stacks import TARGETS
from components.oci.plan import OciPlan, oci_plan
from components.oci.types.security_rules import PEER_ENDS, PEER_TYPES
from components.plan.model import JobPlan, Plan, RunPlan
from components.platform.calls import LocalCloud, Tell
from components.platform.evidence import (
    Mutation,
    PlannedNeeds,
    PlannedStatement,
    PolicyInForce,
    RecordedCall,
    RuleMutation,
    StatementMutation,
)
from components.platform.local import Outputs, Row
from components.platform.rehearsal import Artifact, People, Placeholders, RehearsalPlatform, RehearsedConfig, StartedRun
from components.platform.traffic import RuleInForce
from components.platform.values import Properties
from components.values.protocols import EVERY_PROTOCOL, protocol_name
from components.values.security_rules import address_block
from localcloud import admin
from policies.rule import JudgedResource, refusing_rules

_OUTPUT = "output/"
_SECURITY_LIST = "oci:Core/securityList:SecurityList"
_POLICY = "oci:Identity/policy:Policy"


class OciRehearsalPlatform(RehearsalPlatform):
    place_keys = ("oci:region", "trainyard:tenancy", "trainyard:compartment")
    impossible_faults: Mapping[str, str] = {"spot notice": "a job run's machines are never taken back with a notice"}

    def machines(self, made: RehearsedConfig, name: str, plan: Plan, entry: dict[str, Any]) -> None:
        small_shapes(made, name, plan, entry)
        target = made.config.get(TARGETS, {}).get(entry.get("computeTarget"), {})
        if "shape" in target:
            # One machine for each node of the job, each of the size that a node requests.
            target |= {"shape": entry["shape"], "instances": max(target.get("instances", 1), plan.jobs[name].nodes)}

    def stand_in_access(self, cloud: LocalCloud, plan: Plan, used: Plan | None) -> tuple[Plan, list[str]]:
        return people.stand_in_access(cloud, oci_plan(plan), used)

    def stand_in_groups(self, cloud: LocalCloud, plan: Plan) -> Iterator[str]:
        return people.stand_in_groups(cloud, oci_plan(plan))

    def people_of(self, cloud: LocalCloud, plan: Plan, granted: Plan, outputs: Outputs) -> People:
        return people.people_of(cloud, oci_plan(plan), oci_plan(granted).access, outputs)

    def planned_needs(self, plan: Plan, network_of: Plan, access_of: Plan) -> PlannedNeeds:
        return planned_needs(oci_plan(plan), oci_plan(network_of), oci_plan(access_of))

    def act_as_people(self, who: People, cloud: LocalCloud, outputs: Outputs) -> None:
        people.act_as_people(who, cloud, outputs)

    def look_after_runs(self, who: People, cloud: LocalCloud, outputs: Outputs) -> None:
        people.look_at_metrics(who, cloud)

    def answers(self, cloud: LocalCloud, outputs: Outputs, rows: Sequence[Row], folder: Path) -> Placeholders:
        return people.placeholder_values(cloud, outputs, rows)

    def inputs(
        self, who: People, plan: Plan, job: JobPlan, run: RunPlan, outputs: Outputs, answers: Placeholders, tell: Tell
    ) -> Properties:
        return people.inputs_of_rehearsed_run(who, oci_plan(plan), job, run, outputs, answers, tell)

    def caller(self, cloud: LocalCloud, who: People) -> str:
        """The OCID of the tenancy's only unprivileged user."""
        return str(session_of(cloud, USER).credentials["user"])

    def artifacts(self, cloud: LocalCloud, who: People, outputs: Outputs, started: StartedRun) -> Iterator[Artifact]:
        """The content of the run's output folder in the bucket, read as the stack's users."""
        folder = str(started.run.nodes[0].launch.get("folder") or "").partition("/")[2]
        if not folder or not started.nodes:
            return
        prefix = f"{folder}/{start_of_job_run(started.nodes[0].id, {})}"
        storage, bucket = who.session.client("object_storage"), str(outputs["bucket"])
        try:
            listed = storage.list_objects(cloud.namespace, bucket, prefix=f"{prefix}/{_OUTPUT}", fields="size")
        except Exception as error:
            if getattr(error, "status", None) is None:
                raise
            return
        for one in listed.data.objects:
            yield Artifact(one.name.removeprefix(f"{prefix}/{_OUTPUT}"), int(one.size or 0))

    def judged_calls(self, cloud: LocalCloud) -> list[Mapping[str, Any]]:
        return list(admin.list_calls(cloud))

    def read_call(self, row: Mapping[str, Any], names: Mapping[str, str]) -> RecordedCall:
        return read_recorded_call(row, names)

    def access_facts(self, cloud: LocalCloud) -> OciAccessFacts:
        """The policies in force, read as the deployer."""
        identity = session_of(cloud, DEPLOYER).client("identity")
        below = identity.list_compartments(cloud.tenancy).data
        places = (cloud.tenancy, cloud.compartment)
        in_force = [policy for place in places for policy in identity.list_policies(place).data]
        policies = tuple(
            PolicyInForce(policy.name, policy.compartment_id, tuple(map(canonical_statement, policy.statements)))
            for policy in in_force
        )
        parents = {one.id: one.compartment_id for one in below}
        compartments = Compartments(cloud.tenancy, parents, {one.id: one.name for one in below})
        return OciAccessFacts(policies, compartments, table("regions")["keys"][cloud.region])

    def without(self, cloud: LocalCloud, mutation: Mutation) -> AbstractContextManager[None]:
        if isinstance(mutation, RuleMutation):
            return _without_rule(cloud, mutation)
        return _without_statement(cloud, mutation)


class OciPlannedNeeds(PlannedNeeds):
    """The needs of a plan on OCI: security lists and policy statements."""

    __slots__ = ()

    def beyond_grants(self, text: str) -> tuple[str, ...]:
        """The permissions of a statement that no planned statement gives to the same subject in the same location."""
        statement = parse_statement(text)
        needed: set[str] = set()
        for one in self.statements:
            other = parse_statement(one.text)
            covers = other.condition is None or other.condition == statement.condition
            if covers and (other.subject, other.location) == (statement.subject, statement.location):
                needed |= iam.permissions_of_grant(other.grant)
        return tuple(sorted(iam.permissions_of_grant(statement.grant) - needed))

    def refused_list(self, in_force: Iterable[RuleInForce]) -> frozenset[str]:
        """The ids of the policy pack's rules that refuse a security list with these rules."""
        listed: dict[str, list[dict[str, Any]]] = {"ingress": [], "egress": []}
        for rule in in_force:
            end, kind = PEER_ENDS[rule.direction], PEER_TYPES["addresses" if address_block(rule.peer) else "services"]
            protocol = EVERY_PROTOCOL if rule.protocol is None else str(rule.protocol)
            ports = (
                {f"{protocol_name(rule.protocol)}Options": {"min": rule.ports[0], "max": rule.ports[1]}}
                if rule.ports
                else {}
            )
            listed[rule.direction].append({end: rule.peer, f"{end}Type": kind, "protocol": protocol, **ports})
        sides = {f"{side}SecurityRules": rows for side, rows in listed.items()}
        return refusing_rules(JudgedResource(_SECURITY_LIST, {**sides, "freeformTags": dict(self.list_tags)}))

    def refused_policies(self, policies: Iterable[PolicyInForce]) -> frozenset[str]:
        refused: set[str] = set()
        for policy in policies:
            tags = dict(self.policy_tags)
            refused |= refusing_rules(
                JudgedResource(_POLICY, {"statements": list(policy.statements), "freeformTags": tags})
            )
        return frozenset(refused)


def planned_needs(plan: OciPlan, network_of: OciPlan | None = None, access_of: OciPlan | None = None) -> PlannedNeeds:
    """What plans need, independent of what the cloud made. The other plans are those of stacks that this one uses."""
    net, access = network_of or plan, access_of or plan
    network, lines = oci_rules.security_rules(net.network), oci_statements.policy_lines(access)
    return OciPlannedNeeds(
        least=access.access.mode == "least-privilege" and net.network.mode == "least",
        rules=(*network.ingress, *network.egress),
        statements=tuple(PlannedStatement(line.text, line.why) for line in lines),
        list_tags={**net.tags, **oci_rules.list_tags(net.network)},
        policy_tags={**access.tags, **oci_statements.policy_tags(access, lines)},
    )


@contextmanager
def _without_rule(cloud: LocalCloud, mutation: RuleMutation) -> Iterator[None]:
    network, models = session_of(cloud, DEPLOYER).client("core"), import_module("oci.core.models")
    rule = mutation.before
    field = f"{rule.direction}_security_rules"
    whole = getattr(network.get_security_list(rule.list).data, field)
    rest = [one for index, one in enumerate(whole) if index != rule.index]
    network.update_security_list(rule.list, models.UpdateSecurityListDetails(**{field: rest}))
    try:
        yield
    finally:
        network.update_security_list(rule.list, models.UpdateSecurityListDetails(**{field: whole}))


@contextmanager
def _without_statement(cloud: LocalCloud, mutation: StatementMutation) -> Iterator[None]:
    identity, models = session_of(cloud, DEPLOYER).client("identity"), import_module("oci.identity.models")
    places = (cloud.tenancy, cloud.compartment)
    (policy,) = (one for place in places for one in identity.list_policies(place, name=mutation.policy).data)
    rest = [text for text in policy.statements if canonical_statement(text) != mutation.before]
    # A policy must not be empty: this statement allows a call that does not matter here.
    kept = rest or ["Allow group Administrators to inspect tag-namespaces in tenancy"]
    identity.update_policy(policy.id, models.UpdatePolicyDetails(statements=kept))
    try:
        yield
    finally:
        identity.update_policy(policy.id, models.UpdatePolicyDetails(statements=policy.statements))


REHEARSAL = OciRehearsalPlatform()
