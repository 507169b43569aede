# SPDX-License-Identifier: Apache-2.0
"""The console's sections of an account: machines, networks, access, buckets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from components.aws.client import machines
from components.aws.client.tickets import Cluster
from components.aws.iam.documents import UnreadableDocumentError, statements_of
from localcloud.aws.access.policies import attached_policies
from localcloud.aws.account import REGION
from localcloud.aws.additions import machine_view
from localcloud.aws.console.queued_runs import (
    AwsRun,
    StateQueue,
    buckets_by_name,
    instance_of,
    living_objects,
    tags_by_name,
    with_zone,
)
from localcloud.aws.moto_state import moto_backend, moto_backends
from localcloud.console.platform import (
    ENTRIES,
    MANY,
    RULE_COLUMNS,
    Item,
    Points,
    RunContent,
    RunNode,
    Section,
    last_output_lines,
    rule_row,
)
from localcloud.server import http, progress_record

_TITLES = {
    "Machines": "", "Networks": "No network.", "Who may do what": "No policies.", "Buckets": "No buckets."
}  # fmt: skip


EMPTY = tuple(Section(title, (), empty) for title, empty in _TITLES.items())
_LONGEST_CELL = 500
# At most this many objects of a bucket are counted.
_COUNTED = 10_000


def aws_sections(many: int) -> Sequence[Section]:
    living = machine_view.living_instances()
    parts = (_machine_items(living), _vpc_items(living), _aws_access_items(), _aws_bucket_items())
    return tuple(
        Section(title, list(islice(items, many)), _TITLES[title]) for title, items in zip(_TITLES, parts, strict=True)
    )


def _machine_items(living: Iterable[Any]) -> Iterator[Item]:
    """An item for each cluster with its machines, and items for the machines of no job."""
    clusters: dict[tuple[str, str], list[Any]] = {}
    for one in living:
        tags = tags_by_name(one)
        clusters.setdefault((tags.get("stack", ""), tags.get("job", "")), []).append(one)
    for (stack, job), members in clusters.items():
        states = Counter(str(one.state) for one in members)
        rows = []
        for member in sorted(members, key=lambda member: tags_by_name(member).get("node", "")):
            instance = instance_of(member)
            up = instance.state in ("pending", "running")
            rows.append([
                tags_by_name(member).get("node", ""), member.id, member.instance_type, instance.state,
                _reported_state(instance, job) if up else instance.reason,
                http.format_rfc3339(instance.launched.timestamp()) if up else "", member.private_ip or "",
                member.public_ip or "", member.availability_zone or "",
            ])  # fmt: skip
        columns = ["node", "instance", "type", "state", "says", "up since", "address", "public address", "zone"]
        yield {
            "name": job or "machines of no job",
            "state": ", ".join(f"{count} {state}" for state, count in states.items()),
            "facts": [["stack", stack or "none"]],
            "tables": [{"columns": columns, "rows": rows[:MANY]}],
        }


def _reported_state(instance: machines.Instance, job: str) -> str:
    """A machine's report in its cluster's bucket. The report must name this instance, because two stacks may have a job
    of the same name."""
    for name in buckets_by_name() if job and instance.node else ():
        reports = StateQueue(Cluster(name, job)).reports([instance.node])
        report = machines.report_of_this_boot(instance, reports.get(instance.node))
        if report is not None:
            return report.state[:_LONGEST_CELL]
    return ""


def _vpc_items(living: Sequence[Any]) -> Iterator[Item]:
    """All VPCs except unused default ones."""
    used = {one.vpc_id for one in living}
    for backend in machine_view.ec2_backends_in_use():
        for vpc in list(backend.vpcs.values()):
            if vpc.is_default and vpc.id not in used:
                continue
            blocks = ", ".join(row["cidr_block"] for row in vpc.get_cidr_block_association_set())
            ways_out = [one for one in backend.internet_gateways.values() if one.vpc and one.vpc.id == vpc.id]
            nats = [one for one in backend.nat_gateways.values() if one.vpc_id == vpc.id]
            endpoints = [one for one in backend.vpc_end_points.values() if one.vpc_id == vpc.id]
            yield {
                "name": tags_by_name(vpc).get("Name") or vpc.id,
                "state": blocks,
                "facts": [
                    ["id", vpc.id],
                    ["region", backend.region_name],
                    *(["internet gateway", one.id] for one in ways_out),
                    *(["NAT gateway", one.id] for one in nats),
                    *([f"{one.vpc_endpoint_type} endpoint", one.service_name] for one in endpoints),
                ],
                "tables": list(_vpc_tables(backend, vpc)),
            }


def _vpc_tables(backend: Any, vpc: Any) -> Iterator[dict[str, Any]]:
    subnets = [one for zone in backend.subnets.values() for one in zone.values() if one.vpc_id == vpc.id]
    if subnets:
        rows = []
        for subnet in subnets[:MANY]:
            facts = machine_view.subnet_facts(backend, subnet.id)
            routes = [f"{block} to {target}" for block, target in facts.routes if target != "local"] if facts else []
            name = tags_by_name(subnet).get("Name") or subnet.id
            rows.append([name, subnet.cidr_block, subnet.availability_zone, ", ".join(routes)[:_LONGEST_CELL]])
        yield {"columns": ["subnet", "addresses", "zone", "routes"], "rows": rows}
    for group in list(backend.groups.get(vpc.id, {}).values())[:MANY]:
        if group.is_default or group.name == "default":
            continue
        if (rules := machine_view.group_rules(backend, group.id)) is None:
            continue
        rows = []
        for rule in (*rules.ingress, *rules.egress):
            peer = backend.get_security_group_from_id(rule.peer) if rule.peer_kind == "group" else None
            rows.append(rule_row(rule, peer.name if peer else rule.peer))
        yield {"title": f"Security group {group.name}", "columns": RULE_COLUMNS, "rows": rows[:MANY]}


def _aws_access_items() -> Iterator[Item]:
    """Roles and groups, with the statements of their policies."""
    backend = moto_backend("iam")
    owners = [*(("role", one) for one in backend.roles.values()), *(("group", one) for one in backend.groups.values())]
    for kind, owner in owners:
        trust = [("trust", str(owner.assume_role_policy_document or ""))] if kind == "role" else []
        documents = [*trust, *attached_policies(owner)]
        if not documents:
            continue
        rows = [row for name, document in documents for row in _shown_statements(name, document)]
        columns = ["policy", "effect", "who", "actions", "resources", "where"]
        yield {
            "name": owner.name, "state": kind,
            "tables": [{"columns": columns, "rows": rows[:MANY]}],
        }  # fmt: skip


def _shown_statements(name: str, document: str) -> Iterator[list[str]]:
    try:
        statements = statements_of(document)
    except UnreadableDocumentError:
        yield [name, "nothing: it cannot be read", "", "", "", ""]
        return
    for one in statements:
        actions = [*one.actions, *(f"not {each}" for each in one.not_actions)]
        resources = [*one.resources, *(f"not {each}" for each in one.not_resources)]
        who = [f"{kind} {each}" for kind, names in one.principals.items() for each in names]
        where = [f"{operator} {key} {' or '.join(values)}" for operator, key, values in one.conditions]
        cells = (", ".join(each)[:_LONGEST_CELL] for each in (who, actions, resources, where))
        yield [name, "Allow" if one.allows else "Deny", *cells]


def _aws_bucket_items() -> Iterator[Item]:
    for name, bucket in buckets_by_name().items():
        count = size = 0
        rows: list[list[str]] = []
        for key, one in islice(living_objects(bucket), _COUNTED):
            count, size = count + 1, size + one.size
            if len(rows) < MANY:
                rows.append([key, str(one.size), http.format_rfc3339(with_zone(one.last_modified).timestamp())])
        least = "at least " if count == _COUNTED else ""
        yield {
            "name": name,
            "state": f"{least}{count} objects, {least}{size} bytes",
            "facts": [["region", bucket.region_name]],
            "tables": [{"columns": ["object", "bytes", "modified"], "rows": rows}] if rows else [],
        }


def queued_run_content(run: AwsRun, points: Points) -> RunContent:
    cluster = run.ticket.cluster
    facts = [
        ["cluster", cluster.job],
        ["start", run.ticket.start],
        ["accepted", run.ticket.text("createdAt")],
        ["bucket", cluster.bucket],
        ["log group", cluster.log_group or "none"],
    ]
    lines = sorted(line for node in run.nodes for line in _node_lines(run, node))[-ENTRIES:]
    statuses: dict[int, Mapping[str, Any]] = {}
    place = run.place
    for rank in [node.rank for node in run.nodes] if place else ():
        read = StateQueue(Cluster(place.bucket, "")).read(place.status(rank)) if place else None
        statuses[rank] = progress_record.parse_status_object(read[0]) if read else {}
    return RunContent(facts, statuses, points, last_output_lines(run, (entry[2:] for entry in lines)))


def _node_lines(run: AwsRun, node: RunNode) -> Iterator[tuple[int, int, int, str]]:
    """The lines of a node, each with its time and its position."""
    cluster = run.ticket.cluster
    backend = dict.get(moto_backends("logs"), cluster.region or REGION)
    group = backend.groups.get(cluster.log_group) if backend else None
    stream = group.streams.get(run.ticket.stream(node.log)) if group else None
    mark = f"[{node.run.name}] "
    for place, event in enumerate(stream.events[-ENTRIES:] if stream else ()):
        # The launcher's lines begin with the node's name. The console adds it to all lines, so it is removed here.
        yield int(event.timestamp), place, node.rank, str(event.message).removeprefix(mark).rstrip()
