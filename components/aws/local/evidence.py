# SPDX-License-Identifier: Apache-2.0
"""The results of a rehearsal, read from AWS's API: objects, last lines of logs, and the rules and policies in force."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from components.aws.client.aws_session import DEPLOYER, USER, ask_aws, local_aws_regions, local_aws_session
from components.aws.client.tickets import RunId
from components.aws.iam.decide import AwsPrincipal, InForce, Need, decide_aws_call
from components.aws.iam.documents import PolicyDocument, document_texts, statement_bodies, statements_of
from components.aws.plan import AwsDl1Plan, aws_dl1_plan
from components.aws.statements import aws_policies
from components.plan.model import INTERNET, Plan
from components.platform.calls import LocalCloud, ProviderError
from components.platform.evidence import (
    LostCall,
    PlannedNeeds,
    PlannedStatement,
    PolicyInForce,
    RecordedCall,
    StatementMutation,
    read_decision,
)
from components.platform.local import Outputs
from components.platform.rehearsal import Artifact, People, RehearsalPlatform, StartedRun
from components.platform.runs import NodeRun
from components.platform.traffic import RuleInForce
from components.values.protocols import TCP, parse_protocol, protocol_name
from components.values.security_rules import DIRECTIONS, Direction, Ports, SecurityRule, address_block
from localcloud import admin
from policies.rule import JudgedResource, refusing_rules

_OUTPUT = "output/"
# A policy: its name, its ARN (empty for an inline policy), and its statements.
_Held = tuple[str, str, tuple[str, ...]]
EVERYTHING = "*"
_AWS_ARN = "arn:aws:iam::aws:policy/"
_HTTPS = (443, 443)
_RULE = "aws:vpc/securityGroup{}Rule:SecurityGroup{}Rule"
_POLICY = "aws:iam/policy:Policy"
_BETWEEN = "everything between the nodes, as EFA needs it"


class AwsEvidence(RehearsalPlatform):
    """What a rehearsal reads from the local AWS, and what it compares with it."""

    def planned_needs(self, plan: Plan, network_of: Plan, access_of: Plan) -> PlannedNeeds:
        """The needs of the plans, independent of what the cloud has."""
        network, access = aws_dl1_plan(network_of), aws_dl1_plan(access_of)
        statements = tuple(
            PlannedStatement(recorded_statement(statement.document()), statement.why)
            for policy in aws_policies(access)
            for statement in policy.statements
        )
        return AwsPlannedNeeds(
            least=access.access.mode == "least-privilege" and network.network.make_security_group,
            rules=tuple(_planned_group_rules(network)),
            statements=statements,
            list_tags=network.tags,
            policy_tags=access.tags,
        )

    def artifacts(self, cloud: LocalCloud, who: People, outputs: Outputs, started: StartedRun) -> Iterator[Artifact]:
        folder = str(started.run.nodes[0].launch.get("folder") or "").partition("/")[2]
        run = RunId.parse(started.nodes[0].id) if started.nodes else None
        if not folder or run is None:
            return
        prefix = f"{folder}/s{run.number:08}/{_OUTPUT}"
        list_objects = partial(who.session.client("s3").list_objects_v2, Bucket=str(outputs["bucket"]), Prefix=prefix)
        try:
            listed = ask_aws(lambda line: None, "List its output", list_objects)
        except ProviderError:
            return
        for one in listed.get("Contents", ()):
            yield Artifact(one["Key"].removeprefix(prefix), int(one["Size"]))

    def hosts(self, outputs: Outputs, job: str, nodes: Iterable[NodeRun]) -> Mapping[str, str]:
        """The instance of each node. It stays, and runs one run after another."""
        instances = outputs["jobs"][job]["instances"]
        return {node.id: str(instances[node.name]) for node in nodes}

    def peers(self, cloud: LocalCloud, outputs: Outputs) -> Mapping[str, str]:
        """Security groups and prefix lists by their names."""
        ec2 = local_aws_session(cloud, DEPLOYER, str(outputs["region"])).client("ec2")
        groups = ec2.describe_security_groups()["SecurityGroups"]
        lists = ec2.describe_managed_prefix_lists()["PrefixLists"]
        return {row["GroupId"]: row["GroupName"] for row in groups} | {
            row["PrefixListId"]: row["PrefixListName"] for row in lists
        }

    def judged_calls(self, cloud: LocalCloud) -> list[Mapping[str, Any]]:
        """The calls of users and nodes. Calls of the deployer, who is an administrator, are left out: no policy of the
        stack applies to them."""
        return [row for row in admin.list_calls(cloud, of="aws") if row["principal"]["name"] != DEPLOYER]

    def read_call(self, row: Mapping[str, Any], names: Mapping[str, str]) -> RecordedCall:
        """`names`: names of users by their ARN, and of nodes by their instance, which is the name of their role's
        session."""
        fields, target = row["principal"], row["target"]
        is_user, session = fields["type"] == "user", fields["id"].rpartition("/")[2]
        principal = AwsPrincipal(fields["id"], **{"user" if is_user else "role": fields["name"]})
        (action,) = row["permissions"]
        keys = {name: tuple(values) for name, values in target["variables"].items()}
        who = names.get(fields["id"]) or names.get(session) or f"{fields['type']} {fields['name']}"
        missing = (f"{name} on {target['resource']}" for name in row["missing"])
        return read_decision(row, principal, who, Need(action, target["resource"], keys), missing)

    def access_facts(self, cloud: LocalCloud) -> AwsAccessFacts:
        """The policies in force for users and nodes, read as the deployer."""
        iam = local_aws_session(cloud, DEPLOYER, local_aws_regions()[0]).client("iam")
        held = {f"role/{row['RoleName']}": _held_by(iam, "role", row["RoleName"]) for row in iam.list_roles()["Roles"]}
        groups = iam.list_groups_for_user(UserName=USER)["Groups"]
        own = [one for group in groups for one in _held_by(iam, "group", group["GroupName"])]
        held[f"user/{USER}"] = own
        statements = {name: texts for rows in held.values() for name, _, texts in rows}
        by_aws = frozenset(name for rows in held.values() for name, arn, _ in rows if arn.startswith(_AWS_ARN))
        return AwsAccessFacts(
            tuple(PolicyInForce(name, "", statements[name]) for name in sorted(statements)),
            {holder: frozenset(name for name, _, _ in rows) for holder, rows in held.items()},
            by_aws,
        )


@dataclass(frozen=True, slots=True)
class AwsAccessFacts:
    """Implements `components.platform.evidence.AccessFacts`.

    `held`: the names of the policies of each user and role, as `role/name`. `kept_by_aws`: names of policies that AWS
    manages, which only AWS changes.
    """

    policies: tuple[PolicyInForce, ...]
    held: Mapping[str, frozenset[str]]
    kept_by_aws: frozenset[str] = frozenset()

    def refused(self, calls: Sequence[RecordedCall], policies: Iterable[PolicyInForce]) -> tuple[LostCall, ...]:
        documents = [
            PolicyDocument(
                policy.name, statements_of(json.dumps({"Statement": [json.loads(text) for text in policy.statements]}))
            )
            for policy in policies
        ]
        names = {one.name for one in self.policies}
        refused = []
        for call in calls:
            # What a bucket's or a repository's own policy allows does not depend on the policies of users and nodes.
            if not call.allowed or not {name for _, name, _ in call.by} <= names:
                continue
            held = self.held.get(f"{call.principal.kind}/{call.principal.name}", frozenset())
            own = [one for one in documents if one.name in held]
            if not decide_aws_call(call.target, call.principal, InForce(own)).allowed:
                refused.append(LostCall(call, call.permissions))
        return tuple(refused)

    def mutations(self) -> Iterator[StatementMutation]:
        for policy in (one for one in self.policies if one.name not in self.kept_by_aws):
            for text in policy.statements:
                yield StatementMutation("deleted", policy.name, text, None, f"{policy.name} without {text}")
                statement, wider = json.loads(text), {}
                if "Condition" in statement:
                    rest = {key: value for key, value in statement.items() if key != "Condition"}
                    wider["without its condition"] = rest
                if statement.get("Resource", EVERYTHING) != EVERYTHING:
                    wider["on every resource"] = {**statement, "Resource": EVERYTHING}
                for how, after in wider.items():
                    words = f"{policy.name}, {text}: {how}"
                    yield StatementMutation("widened", policy.name, text, recorded_statement(after), words)

    def inferred(self, call: RecordedCall) -> tuple[str, ...]:
        """Nothing is inferred: actions and their resources are from AWS's reference."""
        return ()


def recorded_statement(statement: Mapping[str, Any]) -> str:
    """The statement in the spelling of the cloud's record."""
    return json.dumps(statement, sort_keys=True)


def _held_by(iam: Any, kind: str, name: str) -> list[_Held]:
    """The policies of a role or group: attached ones, then inline ones."""
    holder = {f"{kind.capitalize()}Name": name}
    held = []
    for row in getattr(iam, f"list_attached_{kind}_policies")(**holder)["AttachedPolicies"]:
        arn = row["PolicyArn"]
        version = iam.get_policy(PolicyArn=arn)["Policy"]["DefaultVersionId"]
        body = iam.get_policy_version(PolicyArn=arn, VersionId=version)["PolicyVersion"]["Document"]
        held.append((row["PolicyName"], arn, _recorded_statements(body)))
    for policy in getattr(iam, f"list_{kind}_policies")(**holder)["PolicyNames"]:
        body = getattr(iam, f"get_{kind}_policy")(**holder, PolicyName=policy)["PolicyDocument"]
        held.append((policy, "", _recorded_statements(body)))
    return held


def _recorded_statements(document: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(map(recorded_statement, statement_bodies(document)))


class AwsPlannedNeeds(PlannedNeeds):
    """The needs of a plan on AWS: rules of security groups, and IAM policies."""

    __slots__ = ()

    def beyond_grants(self, text: str) -> tuple[str, ...]:
        planned = {part for one in self.statements for part in _statement_parts(json.loads(one.text))}
        return tuple(sorted(f"{action} on {on}" for action, on, _ in _statement_parts(json.loads(text)) - planned))

    def refused_list(self, in_force: Iterable[RuleInForce]) -> frozenset[str]:
        return frozenset().union(*(refusing_rules(self._group_rule(rule)) for rule in in_force))

    def refused_policies(self, policies: Iterable[PolicyInForce]) -> frozenset[str]:
        refused: set[str] = set()
        # A policy without statements is ignored.
        for policy in (one for one in policies if one.statements):
            body = {"Version": "2012-10-17", "Statement": [json.loads(text) for text in policy.statements]}
            properties = {"policy": json.dumps(body), "tags": dict(self.policy_tags)}
            refused |= refusing_rules(JudgedResource(_POLICY, properties))
        return frozenset(refused)

    def _group_rule(self, rule: RuleInForce) -> JudgedResource:
        side = rule.direction.capitalize()
        kind = "cidrIpv4" if address_block(rule.peer) else _NAMED[rule.peer.partition("-")[0]]
        protocol = "-1" if rule.protocol is None else protocol_name(rule.protocol)
        ports = {"fromPort": rule.ports[0], "toPort": rule.ports[1]} if rule.ports else {}
        more = {"description": rule.description, "tags": dict(self.list_tags)}
        return JudgedResource(_RULE.format(side, side), {kind: rule.peer, "ipProtocol": protocol, **ports, **more})


_NAMED = {"sg": "referencedSecurityGroupId", "pl": "prefixListId"}


def _planned_group_rules(plan: AwsDl1Plan) -> Iterator[SecurityRule]:
    """The rules of the nodes' security group. None for an existing group, whose rules its owner decides."""
    network, prefix = plan.network, f"{plan.team}-{plan.environment}"
    if not network.create or not network.make_security_group:
        return
    for direction in DIRECTIONS:
        yield SecurityRule(direction=direction, peer=f"{prefix}-nodes", description=_BETWEEN)
    for item in network.ingress:
        yield _planned_rule("ingress", item.cidr, (item.ports.first, item.ports.last), item.why)
    if network.vpc:
        yield _planned_rule("egress", "0.0.0.0/0", _HTTPS, "services of AWS, where the routes of the VPC lead")
        return
    to_bucket = "the bucket, through its gateway endpoint"
    yield _planned_rule("egress", f"com.amazonaws.{plan.region}.s3", _HTTPS, to_bucket)
    if network.endpoints:
        yield _planned_rule("egress", f"{prefix}-endpoints", _HTTPS, "services of AWS, through their endpoints")
    for rule in network.rules:
        if rule.target == INTERNET:
            ports = (rule.ports.first, rule.ports.last) if rule.ports else (0, 65535)
            yield _planned_rule("egress", "0.0.0.0/0", ports, rule.why, parse_protocol(rule.protocol))


def _planned_rule(direction: Direction, peer: str, ports: Ports, why: str, protocol: int | None = TCP) -> SecurityRule:
    return SecurityRule(direction=direction, peer=peer, protocol=protocol, ports=ports, description=why)


def _statement_parts(statement: Mapping[str, Any]) -> set[tuple[str, str, str]]:
    condition = json.dumps(statement.get("Condition", {}), sort_keys=True)
    return {
        (action, on, condition)
        for action in document_texts(statement.get("Action", []))
        for on in document_texts(statement.get("Resource", []))
    }
