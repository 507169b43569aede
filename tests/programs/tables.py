# SPDX-License-Identifier: Apache-2.0
"""A recording as a readable table: a block per resource, with a line for each input and its dependencies."""

from __future__ import annotations

import json
import re
from base64 import b64decode
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from components.openpai.job import PARAMETER
from tests.support.recorder.client import Recording, Resource

# Tags of every resource are left out: another test checks them.
TAGS = ("freeformTags", "tags", "tagSpecifications")
LAUNCH = "TRAINYARD_LAUNCH"
# Short words for the OCIDs of the examples.
SHARED = {
    "ocid1.tenancy.oc1..aaaaaaaa5ht5rzh6lhj3ybgbqwbxgmdkob7kyfkwpemy6rgxtk3wvnslxbux": "<tenancy>",
    "ocid1.compartment.oc1..aaaaaaaaqa3fdyvnsps4m4cxbrubespqea6ex72r5ddlzdt7f3dgpjyxynbn": "<compartment>",
}
# The engine's marker for the content of a file.
SIGNATURE, ASSET = "4dabf18193072939515e22adb298388d", "c44067f5952c0a294b673a41bacd8c17"
RULES = {"ingressSecurityRules": ("in from", "source"), "egressSecurityRules": ("out to", "destination")}
# The fields of a launch document that are shown. The others repeat the stack file.
LAUNCHED = ("rank", "folder", "peers", "start", "wrap", "command", "environment", "ports")


def table(recording: Recording) -> str:
    """Sorted by type and name, because threads register resources in any order."""
    ordered = sorted(recording.resources, key=lambda one: (not one.custom, one.type, one.name))
    blocks = ["\n".join(_block(resource)) for resource in ordered if resource.custom]
    exports = ["exports", *(f"    {line}" for line in _lines(recording.exports))]
    text = "\n\n".join([*blocks, "\n".join(exports)]) + "\n"
    for ocid, meaning in SHARED.items():
        text = text.replace(ocid, meaning)
    # Digests of archives, which change with every change of the launcher.
    return re.sub(r"[0-9a-f]{16}(?=\.tar\.gz)", "<digest>", text)


def _block(resource: Resource) -> Iterator[str]:
    kept = [word for word, true in {"protected": resource.protect, "retained": resource.retain}.items() if true]
    notes = [*(["provider " + resource.provider] if resource.provider else []), *kept]
    yield f"{resource.type}  {resource.name}" + (f"  ({', '.join(notes)})" if notes else "")
    inputs = {key: value for key, value in resource.inputs.items() if key not in TAGS}
    if "userData" in inputs:
        inputs["userData"] = _settings(inputs["userData"])
    if "protocol" in inputs:
        inputs["protocol"] = _job(inputs["protocol"])
    nodes, expects = inputs.pop("nodes", []), inputs.pop("expects", None)
    rules = {key: inputs.pop(key, []) for key in RULES}
    for line in _lines(inputs):
        yield f"    {line}"
    for key, (word, peer) in RULES.items():
        for rule in rules[key]:
            yield f"    {word} {_rule(rule, peer)}"
    yield from _expects(expects) if expects else ()
    yield from _nodes(nodes)
    if resource.ignored:
        yield f"    changes left to the runs: {', '.join(resource.ignored)}"
    if resource.after:
        yield f"    after: {', '.join(dict.fromkeys(resource.after))}"


def _settings(user_data: Any) -> Any:
    """The node.json in the user data. The rest of the cloud-config is the same for all machines."""
    if not isinstance(user_data, str):
        return user_data
    files = yaml.safe_load(b64decode(user_data))["write_files"]
    return next(json.loads(file["content"]) for file in files if file["path"].endswith("/node.json"))


def _job(protocol: Any) -> Any:
    """A job of OpenPAI, without the archive of its code."""
    if not isinstance(protocol, Mapping):
        return protocol
    parameters = {key: "<packed>" if key == PARAMETER else text for key, text in protocol["parameters"].items()}
    return {**protocol, "parameters": parameters}


def _rule(rule: Mapping[str, Any], peer: str) -> str:
    """A security rule on one line, with all of its fields."""
    ports = rule.get("tcpOptions")
    span = "every port" if ports is None else _span(ports["min"], ports["max"])
    state = "stateless" if rule["stateless"] else "stateful"
    rest = set(rule) - {"protocol", peer, f"{peer}Type", "stateless", "description", "tcpOptions"}
    assert not rest, rest
    kind = "" if rule[f"{peer}Type"] == "CIDR_BLOCK" else f" ({rule[f'{peer}Type']})"
    return f"{rule[peer]}{kind}, protocol {rule['protocol']}, {span}, {state}: {rule['description']}"


def _lines(value: Any, path: str = "") -> Iterator[str]:
    """`a.b[0].c = value`, a line each; lists of plain values on one."""
    if value == {} or value == []:
        return
    if isinstance(value, Mapping) and value.get(SIGNATURE) == ASSET:
        value = value["path"]
    if isinstance(value, Mapping) and set(value) != {"(secret)"}:
        for key, item in sorted(value.items()):
            yield from _lines(item, f"{path}.{key}" if path else key)
    elif isinstance(value, list) and value and (path.endswith(("statements", "commands")) or _nested(value)):
        for index, item in enumerate(value):
            yield from _lines(item, f"{path}[{index}]")
    else:
        shown = "(secret)" if isinstance(value, Mapping) and "(secret)" in value else value
        yield f"{path} = {shown if isinstance(shown, str) else json.dumps(shown)}"


def _expects(expects: Mapping[str, Any]) -> Iterator[str]:
    """What the launcher tests, one line for each label. The reasons are those of the rules."""
    where = expects.get("rules", {"place": "no rules", "peer": "nobody"})
    yield f"    preflight {expects['preflight']}; {where['place']}, for {where['peer']}"
    for node in expects.get("nodes", ()):
        has = ", ".join(f"{key} {value}" for key, value in node.items() if key != "roles")
        yield f"    expects of {', '.join(node['roles'])}: {has}"
    for row in expects["connections"]:
        yield f"    expects {', '.join(row['from'])} -> {', '.join(row['to'])} on {row['label']}"


def _nested(value: list[Any]) -> bool:
    return any(isinstance(item, Mapping | list) for item in value)


def _nodes(nodes: list[Mapping[str, Any]]) -> Iterator[str]:
    """Each node, with the values that differ from those of the first node of its role."""
    first: dict[str, tuple[str, list[str]]] = {}
    for node in nodes:
        lines = list(_node(node))
        role = node["role"]
        if role in first:
            named, known = first[role]
            yield f"    node {node['name']}: as {named}, but"
            lines = [line for line in lines if line not in known]
        else:
            first[role] = (node["name"], lines)
            yield f"    node {node['name']}:"
        for line in lines:
            yield f"        {line}"


def _node(node: Mapping[str, Any]) -> Iterator[str]:
    environment = dict(node.get("environment") or {})
    launch = environment.pop(LAUNCH, None)
    yield from _lines({key: value for key, value in node.items() if key not in ("name", "role", "environment")})
    yield from _lines(environment)
    if launch is None:
        return
    document = json.loads(launch) if isinstance(launch, str) else None
    if document is None:
        yield "launch: (unknown)"
        return
    told = {key: document[key] for key in LAUNCHED if document[key] not in (None, [], {})}
    for key in ("start", "command"):
        if key in told:
            told[key] = " ".join(told[key])
    if "ports" in told:
        told["ports"] = {label: _port(port) for label, port in told["ports"].items()}
    yield from _lines(told, "launch")


def _span(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}-{last}"


def _port(port: Mapping[str, Any]) -> str:
    span = "any" if port["range"] is None else _span(*port["range"])
    return f"{span}, {'listens' if port['listens'] else 'connects'}, {port['pinned']}"
