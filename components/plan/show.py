# SPDX-License-Identifier: Apache-2.0
"""A plan as text for people, and as plain values for programs. Neither holds secrets."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from math import isfinite, isnan
from typing import Any, TypeVar

from catalog.platforms import platform_word, platforms, require_capability
from components.plan.model import JobPlan, NetworkPlan, NodePlan, Plan, RolePlan, RunPlan
from components.plan.platform import Planning, Row, Words
from schemas.convert import camel_case
from schemas.model import PortRange, Secret
from schemas.name_suggestions import count_noun

T = TypeVar("T")

SECRET = "(secret)"


def to_plain_values(value: Any) -> Any:
    """Frozen values as values of JSON, with the keys of stack files. Works for every dataclass."""
    if isinstance(value, str | int | None):
        return value  # most values: asked first, as plans of hundreds of jobs have a hundred thousand
    if isinstance(value, Secret):
        return SECRET
    if isinstance(value, PortRange):
        return value.to_shorthand()
    if is_dataclass(value):
        return {key: to_plain_values(getattr(value, name)) for name, key in _keys_of_columns(value.__class__)}
    if isinstance(value, Mapping):
        return {str(key): to_plain_values(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_plain_values(item) for item in value]
    if isinstance(value, float) and not isfinite(value):
        return "NaN" if isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


@cache
def _keys_of_columns(kind: Any) -> tuple[tuple[str, str], ...]:
    return tuple((column.name, camel_case(column.name)) for column in fields(kind))


def json_text(value: Any) -> str:
    """Standard JSON, even if a script reported NaN."""
    return json.dumps(to_plain_values(value), indent=2, allow_nan=False)


def aligned_rows(rows: Iterable[Sequence[str]], indent: str = "  ") -> Iterator[str]:
    """Rows with aligned columns. The last column may have any length."""
    cells = [tuple(row) for row in rows]
    widths = [max(len(row[column]) for row in cells) for column in range(len(cells[0]) - 1)] if cells else []
    for row in cells:
        padded = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        yield (indent + "  ".join([*padded, row[-1]])).rstrip()


def plan_text(plan: Plan) -> str:
    """The whole plan, in the order in which it is brought up."""
    words = require_capability(plan.platform, Planning).words(plan)
    where = f" in {plan.region}" if plan.region else ""
    rows = list(words.place)
    if plan.uses:
        rows.append(("uses", f"{', '.join(plan.taken)} of stack {plan.uses}"))
    rows.append(("tags", ", ".join(f"{key}={value}" for key, value in plan.tags.items())))
    rows += [("waived", f"{rule} until {waiver.until}: {waiver.reason}") for rule, waiver in plan.waivers.items()]
    parts = (
        [f"{plan.stack}: team {plan.team}, environment {plan.environment}, on {platform_word(plan.platform)}{where}"],
        aligned_rows((title, value) for title, value in rows if value),
        _access_lines(plan, words),
        _network_lines(plan.network, words),
        _storage_lines(plan, words),
        *(_job_lines(plan, job, words) for job in plan.jobs.values()),
    )
    return "\n".join(line for part in parts for line in part)


def find_node(plan: Plan, path: str) -> NodePlan:
    """The node that `JOB/RUN/NODE` names; UnknownNameError if there is none."""
    job, run, name = [*path.split("/", 2), "", ""][:3]
    named_job = _choose_by_name("job", job, plan.jobs)
    named_run = _choose_by_name("run", run, named_job.runs)
    return _choose_by_name("node", name, {node.name: node for node in named_run.nodes})


class UnknownNameError(LookupError):
    """A name that is not in the plan. `choices`: the names that are."""

    def __init__(self, kind: str, name: str, choices: Iterable[str]) -> None:
        super().__init__(f"no {kind} `{name}`")
        self.kind, self.name, self.choices = kind, name, tuple(choices)


def _choose_by_name(kind: str, name: str, choices: Mapping[str, T]) -> T:
    if name not in choices:
        raise UnknownNameError(kind, name, choices)
    return choices[name]


def planned_ports_text(ports: PortRange | None) -> str:
    return "all" if ports is None else str(ports)


def made_or_not(create: bool) -> str:
    return "made by this stack" if create else "not made by this stack"


def name_or_owner(plan: Plan, concern: str, name: str) -> str:
    """The name of a resource. If it is taken from another stack, the name is unknown here, so that stack is named."""
    return f"that of {plan.uses}" if concern in plan.taken else name


def _access_lines(plan: Plan, words: Words) -> Iterator[str]:
    access = plan.access
    yield ""
    yield f"Access: {access.mode}, {made_or_not(access.create)}"
    yield from aligned_rows(words.principals)
    if access.create and access.mode != "least-privilege":
        yield "  The statements of this mode grant more than what is needed here; `trainyard access` shows them:"
    elif not access.create and access.grants:
        yield "  What has to be granted:"
    concerns = {plan.bucket.name: "bucket", plan.registry.repository: "registry"}
    rows = (
        (
            grant.who,
            f"{grant.does} {grant.what}",
            name_or_owner(plan, concerns.get(grant.target or "", ""), grant.target or ""),
            grant.why,
        )
        for grant in access.grants
    )
    yield from _titled_table(("WHO", "MAY", "ON", "WHY"), rows)


def _titled_table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """A table with the titles of its columns. Nothing if there are no rows."""
    if cells := list(rows):
        yield from aligned_rows([titles, *cells])


def _network_lines(network: NetworkPlan, words: Words) -> Iterator[str]:
    yield ""
    yield f"Network: {network.mode}, {made_or_not(network.create)}"
    yield from aligned_rows(words.network)
    if not network.create and network.rules:
        yield "  What the subnet has to let through:"
    rows = (
        (rule.source, rule.target, f"{rule.protocol} {planned_ports_text(rule.ports)}", rule.evidence, rule.why)
        for rule in network.rules
    )
    yield from _titled_table(("FROM", "TO", "PORTS", "EVIDENCE", "WHY"), rows)


def _storage_lines(plan: Plan, words: Words) -> Iterator[str]:
    yield ""
    yield "Storage"
    bucket, registry = plan.bucket, plan.registry
    kept = {True: "kept on destroy", False: "removed on destroy"}
    versions = (
        "versioned"
        if bucket.versioning is True
        else f"versioning {bucket.versioning}"
        if bucket.versioning
        else "not versioned"
    )
    own_key = f", encrypted with {bucket.key}" if bucket.key else ""
    made_bucket = f", {versions}, {kept[bucket.keep]}{own_key}" if bucket.create else ""
    made_registry = f", {'immutable, ' if registry.immutable else ''}{kept[registry.keep]}" if registry.create else ""
    rows = {
        "bucket": (
            "bucket",
            f"{name_or_owner(plan, 'bucket', bucket.name)}, {made_or_not(bucket.create)}{made_bucket}",
        ),
        "registry": (
            "repository",
            f"{name_or_owner(plan, 'registry', registry.repository)}, {made_or_not(registry.create)}{made_registry}",
        ),
    }
    yield from aligned_rows([*(row for concern, row in rows.items() if concern not in words.without), *words.storage])


def _rows_at_once(plan: Plan, job: JobPlan) -> Iterator[Row]:
    if len(job.runs) < 2:
        return
    sweeps = Counter(run.turns for run in job.runs.values())
    at_once = sum(min(turns.at_most, runs) if turns else runs for turns, runs in sweeps.items())
    if not require_capability(plan.platform, Planning).runs_at_once:
        yield "at once", f"{count_noun(job.nodes, 'node')}: its runs use them one after the other"
    elif at_once == len(job.runs):
        yield "at once", f"{job.nodes * len(job.runs)} nodes, while all of its runs train"
    else:
        yield "at once", f"{count_noun(job.nodes * at_once, 'node')} at most: the other runs wait in `up` (`atMost`)"


def _job_lines(plan: Plan, job: JobPlan, words: Words) -> Iterator[str]:
    strategy = f" ({job.strategy})" if job.strategy else ""
    nodes = f"{job.nodes} node{'s' if job.nodes != 1 else ''}"
    size = "".join(
        f", {amount:g} {unit}"
        for amount, unit in ((job.shape.ocpus, "OCPU"), (job.shape.memory_gb, "GB of memory"))
        if amount is not None
    )
    has_disk = "block storage" not in words.without and job.block_storage_gb
    disk = f", {job.block_storage_gb} GB of block storage" if has_disk else ""
    stalls = f", or {job.stall_minutes} in which all nodes are idle" if job.stall_minutes else ""
    yield ""
    yield f"Job {job.name}: {job.framework}{strategy}, {nodes} of {job.shape.name}{size}"
    rows = [
        ("name", job.display_name),
        ("image", job.image),
        # If nodes of the platform cannot share a job run, there is only one layout, which is not shown.
        *([] if "node-groups" in platforms()[plan.platform].lacks else [("layout", job.layout)]),
        ("limits", f"{job.maximum_runtime_minutes} minutes{stalls}{disk}"),
    ]
    if job.code:
        git = job.code.git
        version = (git.commit or git.branch or "its default branch") if git else ""
        rows.append(("code", f"{git.url} at {version}" if git else f"folder {job.code.folder}"))
    if job.keep:
        rows.append(("keeps", f"{', '.join(job.keep)} of the working directory, of any size"))
    if job.packages:
        listed = f"{count_noun(len(job.packages.lines), 'package')} of {job.packages.file}"
        rows.append(("packages", listed + (f", built: {', '.join(job.packages.build)}" if job.packages.build else "")))
    rows += [("data", f"{item.bucket or 'the bucket'}/{item.prefix} at {item.mount}") for item in job.inputs]
    rows += [(f"role {role.name}", _role_text(role)) for role in job.roles]
    rows.append(("ranks", job.ranks))
    yield from aligned_rows([*rows, *words.jobs.get(job.name, ()), *_rows_at_once(plan, job)])
    # The framework's environment is the same on every node. Nodes fill in the braces: they know the addresses.
    launches = (node.launch for run in job.runs.values() for node in run.nodes)
    environment: Mapping[str, str] = next((launch["environment"] for launch in launches), {})
    if environment:
        yield "  On each node the launcher adds:"
        yield from (f"      {name}={value}" for name, value in environment.items())
    for run in job.runs.values():
        yield from _run_lines(job, run)


def _role_text(role: RolePlan) -> str:
    listens = ", ".join(
        f"{label} {'reserved' if label in role.reserved else planned_ports_text(ports)}"
        for label, ports in role.ports.items()
    )
    enough = f", {role.minimum_success} must succeed" if role.minimum_success != role.replicas else ""
    return f"{role.replicas} x {role.mode}{enough}, " + (f"listens on {listens}" if listens else "listens on nothing")


def _run_lines(job: JobPlan, run: RunPlan) -> Iterator[str]:
    yield f"  Run {job.name}/{run.name}: {run.display_name}, attempt {run.attempt}, `up` waits until it is {run.until}"
    for node in run.nodes:
        group = f", {node.replicas} replicas" if job.layout == "node-groups" else ""
        yield f"    {node.name}: {node.role}, rank {node.rank}{group}"
        command = node.launch.get("command") or node.launch.get("start") or ()
        if command:
            lines = " ".join(map(str, command)).rstrip().splitlines()
            yield from (f"      {'$' if number == 0 else ' '} {line}" for number, line in enumerate(lines))
        for name, value in node.environment.items():
            yield f"      {name}={SECRET if isinstance(value, Secret) else value}"
