# SPDX-License-Identifier: Apache-2.0
"""A port that stays open after its job is gone is open for whatever listens there next."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from catalog import frameworks
from catalog.reason_tags import OPEN_PORT, OPENED_FOR
from components.values.projections import security_rules_of, types_with_rules
from components.values.protocols import WITH_PORTS
from policies.jobs import EVERY_PORT, Ports, jobs_of, launch_tag, ports_of_run, ports_of_tag
from policies.openpai_jobs import RUN
from policies.rule import (
    PASS,
    JudgedResource,
    JudgedStack,
    NotKnownError,
    PolicyVerdict,
    StackRule,
    StackVerdict,
    Unknown,
    fail_because,
    unknown_because,
    verdict_on_every,
    verdicts_on_each,
)

LIST = "oci:Core/securityList:SecurityList"
GROUP_RULE = "oci:Core/networkSecurityGroupSecurityRule:NetworkSecurityGroupSecurityRule"
INGRESS_RULE = "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule"
GROUP = "aws:ec2/securityGroup:SecurityGroup"
NOT_JUDGED = (
    "aws:ec2/defaultSecurityGroup:DefaultSecurityGroup",
    "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule",
)
TYPES = types_with_rules(*NOT_JUDGED)
# For others than nodes: people, if the stack wants it, or endpoints of services.
REASONS = ("chosen", "endpoints")


@dataclass(frozen=True, slots=True)
class Used:
    """Ports that jobs use. `unknown`: why jobs may use others; empty if all are known."""

    ports: tuple[Ports, ...]
    unknown: str

    def covers(self, opened: Ports) -> bool:
        """Whether jobs use each of these ports: several ranges may touch one another."""
        at, last = opened
        for first, end in sorted(self.ports):
            if first <= at <= end:
                at = end + 1
        return at > last


def judge_unused_ports(stack: JudgedStack) -> Iterator[StackVerdict]:
    used = used_ports(stack)
    yield from verdicts_on_each(lambda resource: judge_resource(resource, used), stack.of_types(TYPES))


def judge_resource(resource: JudgedResource, used: Used) -> PolicyVerdict:
    if resource.tags.get(OPEN_PORT) in REASONS:
        return PASS
    # Frameworks whose jobs are in other stacks use ports too.
    named = str(resource.tags.get(OPENED_FOR) or "")
    names = [name for name in named.replace(",", " ").split() if name]
    own = [name for name in names if name not in frameworks.framework_names()]
    ports = [ports for name in names if name not in own for ports in _framework_ports(name)]
    unknowns = [used.unknown, f"the catalog does not know {', '.join(own)}" if own else ""]
    lent = Used((*used.ports, *ports), "; ".join(filter(None, unknowns)))

    def judge_ports(opened: Ports) -> PolicyVerdict:
        # Another rule judges whether all ports may be open (all-tcp).
        if opened[1] - opened[0] >= EVERY_PORT[1] - 1 or lent.covers(opened):
            return PASS
        shown = str(opened[0]) if opened[0] == opened[1] else f"{opened[0]}-{opened[1]}"
        return (
            unknown_because(f"{shown}: {lent.unknown}")
            if lent.unknown
            else fail_because(f"{shown} is open, and no job uses it")
        )

    return verdict_on_every(judge_ports, [*opened_by(resource)])


def opened_by(resource: JudgedResource) -> Iterator[Ports]:
    """The port ranges that a resource allows in. A rule for every port of a protocol has (0, 65535)."""
    for rule in security_rules_of(resource.type, resource.properties):
        # Members of a group of AWS may reach one another on all ports: EFA needs it.
        if rule.direction != "ingress" or (rule.peer_kind == "group" and resource.type.startswith("aws:")):
            continue
        if rule.protocol in WITH_PORTS:
            first, last = rule.ports or EVERY_PORT
            yield int(first), int(last)


def used_ports(stack: JudgedStack) -> Used:
    ports: list[Ports] = []
    missing: list[str] = []
    for job in jobs_of(stack):
        try:
            for run in job.runs:
                ports += ports_of_run(run)
            if job.job is not None and not job.runs:
                ports_text = launch_tag(job.job).get("ports")
                ports += ports_of_tag(ports_text or "")
                missing += [] if ports_text is not None else [f"nothing says what ports the job `{job.name}` uses"]
        except NotKnownError:
            missing.append(f"the ports of the job `{job.name}` are not known yet")
    return Used(tuple(ports), "; ".join(missing))


def _framework_ports(name: str) -> Iterator[Ports]:
    strategies = (None, *frameworks.framework_document(name).get("strategies", {}))
    for row in (row for strategy in strategies for row in frameworks.framework_row(name, strategy).ports):
        yield from ports_of_tag(str(row.default))


def _port_list(*ports: Sequence[Any], source: str = "10.20.0.0/24", **tags: str) -> JudgedResource:
    rules = [{"source": source, "protocol": "6", "tcpOptions": {"min": first, "max": last}} for first, last in ports]
    return JudgedResource(LIST, {"ingressSecurityRules": rules, "freeformTags": tags}, "rules")


def _port_run(launch: Any = None, **ports: Sequence[int] | None) -> JudgedResource:
    document = {"retry": {"count": 0}, "ports": {name: {"range": numbers} for name, numbers in ports.items()}}
    environment = {"TRAINYARD_LAUNCH": json.dumps(document) if launch is None else launch}
    inputs = {"nodes": [{"name": "main-0", "environment": environment}], "tags": {"job": "resnet"}}
    return JudgedResource(RUN, inputs, "resnet/base")


def _tagged_job(**tags: str) -> JudgedResource:
    return JudgedResource("oci:DataScience/job:Job", {"freeformTags": {"job": "resnet", **tags}}, "resnet")


def _port_rule(**more: Any) -> JudgedResource:
    return JudgedResource(
        INGRESS_RULE, {"ipProtocol": "tcp", "fromPort": 6006, "toPort": 6006, "cidrIpv4": "10.0.0.0/16", **more}, "in"
    )


RULE = StackRule(
    id="unused-ports",
    # Advisory, because the documents of a framework name ports that not every job uses.
    level="advisory",
    asks="Every open port is one that a job uses.",
    remedy="close it (`trainyard:network: { mode: least }` opens what jobs use), or say who uses it: frameworks of"
    f" other stacks in the tag `{OPENED_FOR}`, people on AWS by the tag `{OPEN_PORT}: chosen`",
    types=TYPES,
    judge=judge_unused_ports,
    passes={
        "a job's port": JudgedStack((_port_list((29400, 29400)), _port_run(rendezvous=[29400, 29400]))),
        "two ranges that touch": JudgedStack(
            (_port_list((29400, 29563)), _port_run(a=[29400, 29499], b=[29500, 29563]))
        ),
        "a job without runs": JudgedStack(
            (_port_list((29400, 29400)), _tagged_job(launch="nodes=2 ports=29400,29500-29563"))
        ),
        "a job that uses every port": JudgedStack((_port_list((29400, 29400)), _port_run(data=None))),
        "every port, which is another rule's": JudgedStack((_port_list((None, None)),)),
        "for a framework's jobs elsewhere": JudgedStack((_port_list((8786, 8786), **{OPENED_FOR: "dask"}),)),
        "within a group of AWS": JudgedStack((_port_rule(cidrIpv4=None, referencedSecurityGroupId="sg-0a1b2c3d"),)),
        "for people, by choice": JudgedStack((_port_rule(tags={OPEN_PORT: "chosen"}),)),
    },
    fails={
        "no job": JudgedStack((_port_list((29400, 29400)),)),
        "another port": JudgedStack((_port_list((22, 22)), _port_run(rendezvous=[29400, 29400]))),
        "a wider range": JudgedStack((_port_list((29400, 29563)), _port_run(a=[29400, 29400], b=[29500, 29563]))),
        "another port than a framework's": JudgedStack((_port_list((22, 22), **{OPENED_FOR: "dask"}),)),
        "a rule of AWS": JudgedStack((_port_rule(),)),
        "by a group's own rules": JudgedStack(
            (
                JudgedResource(
                    GROUP,
                    {"ingress": [{"protocol": "tcp", "fromPort": 22, "toPort": 22, "cidrBlocks": ["10.0.0.0/8"]}]},
                ),
            )
        ),
        "into a group of OCI": JudgedStack(
            (
                JudgedResource(
                    GROUP_RULE,
                    {
                        "direction": "INGRESS",
                        "protocol": "17",
                        "udpOptions": {"destinationPortRange": {"min": 53, "max": 53}},
                    },
                    "dns",
                ),
            )
        ),
    },
    unknown={
        "a port decided elsewhere": JudgedStack((_port_list((Unknown("min"), 9000)),)),
        "a run that is told later": JudgedStack((_port_list((22, 22)), _port_run(Unknown("TRAINYARD_LAUNCH")))),
        "a job that does not say its ports": JudgedStack((_port_list((29400, 29400)), _tagged_job())),
        "a framework of the team's own": JudgedStack((_port_list((9999, 9999), **{OPENED_FOR: "ray-of-ours"}),)),
    },
)
