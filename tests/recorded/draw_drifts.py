# SPDX-License-Identifier: Apache-2.0
"""Draws what a cloud answers after changes without Pulumi: other rules, statements, settings and runs, resources that
are gone, and resources that nobody declared."""

from __future__ import annotations

import copy
import json
from random import Random
from typing import Any

from components.platform.review import ReviewedResource
from tests.recorded.drifts import DRIFTS, declared_state, write_drift

SEED, DRAWN = 39, 20
STATES = (("0.2.0", "oci"), ("0.2.0-aws-dl1", "aws-dl1"), ("0.2.0-node-groups", "oci"), ("0.2.0-aws-dl1", "aws-dl1"),
          ("0.2.0-openpai", "openpai"))  # fmt: skip
ANYWHERE = ("0.0.0.0/0", "198.51.100.0/24", "10.0.0.0/8")
Answers = dict[str, Any]


def draw_drifts() -> None:
    DRIFTS.mkdir(exist_ok=True)
    for number in range(1, DRAWN + 1):
        state, platform = STATES[number % len(STATES)]
        chance, declared = Random(SEED * 1000 + number), declared_state(state, platform)
        live: Answers = {"changed": {}, "missing": [], "undeclared": [], "unread": []}
        resources = [one for one in declared.snapshot.resources if one.id and not one.type.startswith("trainyard:")]
        for _ in range(chance.choice((1, 2, 3)) if resources else 0):
            chance.choice((_open, _open, _grant, _grant, _set, _set, _remove))(chance, resources, live)
        runs = {"/".join(run): chance.choice((state, state, "CANCELED")) for run, state in declared.runs.items()}
        if chance.random() < 0.3:
            runs.popitem()
        write_drift(f"{number:02}.json", {"state": state, "platform": platform, "live": live, "runs": runs})


def _open(chance: Random, resources: list[ReviewedResource], live: Answers) -> None:
    """Opens a port, or closes one, in the form of the platform's own rules."""
    port, source = chance.randrange(1, 65535), chance.choice(ANYWHERE)
    rules = [one for one in resources if one.type == "oci:Core/securityList:SecurityList"]
    if rules:
        (rule_list,) = rules
        key = chance.choice(("ingressSecurityRules", "egressSecurityRules"))
        end = "source" if key.startswith("ingress") else "destination"
        rule = {"protocol": chance.choice(("6", "17")), end: source, f"{end}Type": "CIDR_BLOCK"}
        rule["tcpOptions" if rule["protocol"] == "6" else "udpOptions"] = {"min": port, "max": port}  # type: ignore[assignment]
        before = list(rule_list.inputs.get(key) or [])
        live["changed"].setdefault(rule_list.urn, {})[key] = chance.choice(([*before, rule], before[1:]))
        return
    groups = [one for one in resources if one.type == "aws:ec2/securityGroup:SecurityGroup"]
    kind = chance.choice(("Ingress", "Egress"))
    live["undeclared"].append({
        "type": f"aws:vpc/securityGroup{kind}Rule:SecurityGroup{kind}Rule", "id": f"sgr-drawn{port}",
        "words": "" if chance.random() < 0.5 else f"a rule for port {port}",
        "inputs": {"securityGroupId": chance.choice(groups).id, "ipProtocol": chance.choice(("tcp", "udp")),
                   "fromPort": port, "toPort": port, "cidrIpv4": source},
    })  # fmt: skip


def _grant(chance: Random, resources: list[ReviewedResource], live: Answers) -> None:
    """Widens, adds or removes statements."""
    policies = [one for one in resources if one.type in ("oci:Identity/policy:Policy", "aws:iam/policy:Policy")]
    policy = chance.choice(policies)
    if policy.type.startswith("oci:"):
        texts = list(policy.inputs["statements"])
        index = chance.randrange(len(texts))
        widened = texts[index].partition(" where ")[0]
        more = f"Allow any-user to read objects in compartment id {policy.inputs['compartmentId']}"
        choices = ([*texts[:index], widened, *texts[index + 1 :]], [*texts, more], texts[:index] + texts[index + 1 :])
        live["changed"].setdefault(policy.urn, {})["statements"] = chance.choice(choices)
        return
    document = json.loads(policy.inputs["policy"])
    statement = {"Effect": "Allow", "Action": chance.choice(("s3:*", "ec2:RunInstances", "*")), "Resource": "*"}
    rows = document["Statement"]
    document["Statement"] = chance.choice(([*rows, statement], rows[1:], [{**rows[0], "Resource": "*"}, *rows[1:]]))
    live["changed"].setdefault(policy.urn, {})["policy"] = json.dumps(document)


def _set(chance: Random, resources: list[ReviewedResource], live: Answers) -> None:
    """Changes one simple value of a resource, at any depth."""
    resource = chance.choice(resources)
    inputs = copy.deepcopy(
        {key: value for key, value in resource.inputs.items() if key not in ("policy", "statements")}
    )
    key = chance.choice(sorted(inputs))
    holder: Any = inputs
    place: Any = key
    while isinstance(holder[place], dict | list) and holder[place]:
        holder = holder[place]
        place = chance.choice(sorted(holder) if isinstance(holder, dict) else range(len(holder)))
    before = holder[place]
    holder[place] = not before if isinstance(before, bool) else before + 1 if isinstance(before, int) else "drawn"
    live["changed"].setdefault(resource.urn, {})[key] = inputs[key]


def _remove(chance: Random, resources: list[ReviewedResource], live: Answers) -> None:
    """A resource is gone, or its kind may not be read."""
    resource = chance.choice(resources)
    if chance.random() < 0.7:
        live["missing"].append(resource.urn)
    else:
        live["unread"].append(f"the {resource.name}: not authorized")
