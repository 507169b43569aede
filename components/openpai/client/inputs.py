# SPDX-License-Identifier: Apache-2.0
"""The inputs that only runs on OpenPAI have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from components.openpai.client.session import address_problem
from components.openpai.client.written import without_forms
from components.platform.calls import InputFailure
from components.platform.inputs import OwnInputs, RunInput
from components.platform.values import UNKNOWN, Properties, Secret, canonical

KEYS = ("uri", "user", "virtualCluster")
_TEXT = {"type": "string"}


def _failures(inputs: Properties) -> Iterator[InputFailure]:
    yield from _cluster_failures(inputs.get("cluster"))
    yield from _protocol_failures(inputs)


def _cluster_failures(cluster: Any) -> Iterator[InputFailure]:
    if cluster is None or cluster is UNKNOWN:
        return
    if not isinstance(cluster, Mapping):
        yield InputFailure("cluster", f"This is an object: {', '.join(KEYS)}.")
        return
    for key in KEYS:
        if cluster.get(key) in (None, ""):
            yield InputFailure(f"cluster.{key}", f"`{key}` is missing.")
    for key in sorted(set(cluster) - set(KEYS)):
        yield InputFailure(f"cluster.{key}", f"A cluster has no `{key}`; it has {', '.join(KEYS)}.")
    uri = cluster.get("uri")
    if isinstance(uri, str) and uri and (problem := address_problem(uri)):
        yield InputFailure("cluster.uri", f"`{uri}` is not the address of a cluster: {problem}.")


def _protocol_failures(inputs: Properties) -> Iterator[InputFailure]:
    protocol = inputs.get("protocol")
    if protocol is None or protocol is UNKNOWN or isinstance(protocol, Secret):
        return
    roles = protocol.get("taskRoles") if isinstance(protocol, Mapping) else None
    if roles is UNKNOWN:
        return
    if not isinstance(roles, Mapping) or not roles:
        yield InputFailure("protocol", "This is a job of OpenPAI's protocol, version 2, with `taskRoles`.")
        return
    nodes = inputs.get("nodes")
    for index, node in enumerate(nodes if isinstance(nodes, list) else ()):
        role = node.get("role") if isinstance(node, Mapping) else UNKNOWN
        if role is not UNKNOWN and role not in roles:
            yield InputFailure(f"nodes[{index}].role", f"The job has no task role `{role}`; it has {', '.join(roles)}.")


def _with_hidden(old: Properties, new: Properties) -> Properties:
    """A cluster masks all secrets of a job as one text. Image and runtime are in the protocol, too. What trainyard
    itself writes into a job is no difference."""
    before, after = old.get("protocol"), new.get("protocol")
    old = {**{key: new[key] for key in ("image", "maximumRuntimeMinutes") if new.get(key)}, **old}
    if not (isinstance(before, Mapping) and isinstance(after, Mapping)):
        return old
    if isinstance(before.get("secrets"), str):
        before = {**before, "secrets": after.get("secrets")}
    same = canonical(without_forms(before)) == canonical(without_forms(after))
    return {**old, "protocol": after if same else before}


INPUTS = OwnInputs(
    inputs={
        "cluster": RunInput(
            {"type": "object", "additionalProperties": _TEXT, "description": f"Text by name: {', '.join(KEYS)}"},
            required=True,
            connects=True,
        ),
        "token": RunInput(
            {**_TEXT, "secret": True, "description": "A token of the user; OPENPAI_TOKEN comes before it"},
            may_change=True,
            connects=True,
        ),
        "certificate": RunInput(
            {**_TEXT, "description": "Authorities that sign the portal's certificate: PEM, or the path of a file"},
            may_change=True,
            connects=True,
        ),
        "protocol": RunInput({"type": "object", "additionalProperties": {"$ref": "pulumi.json#/Any"}}, required=True),
    },
    stands_on="cluster",
    failures=_failures,
    with_hidden=_with_hidden,
    access_comes_late=False,
)
