# SPDX-License-Identifier: Apache-2.0
"""Changes every input of the local cloud's `oci` plugin: it can be read back, replaces the resource, or is refused."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, get_origin

import pytest

from components.oci.client.session import Session
from components.oci.types import SERVED_TYPES
from components.platform.values import Properties
from components.values.resource_types import resource_types_of_provider
from localcloud.control import Cloud
from localcloud.oci.plugin.convert import from_model
from localcloud.oci.plugin.plugin import LocalOci
from localcloud.oci.plugin.table import MAPS, OciResource
from tests.flows.changed_values import JOB, NSG_RULE, OBJECT, SECRET, SUBNET, Key, changes, input_types, official
from tests.support.call_record import change_of, listening
from tests.support.plugin_world import BUCKET, CASES, VCN, World, plugin_world
from tests.support.provider_client import Failed, Resource

_IPV6 = "IPv4 only"
_UNCHANGEABLE = "cannot change"
# Changes that Oracle's provider makes in place and the local cloud refuses, with words of the error.
REFUSED: Mapping[Key, str] = {
    **{(VCN, name): _UNCHANGEABLE for name in ("byoipv6cidrDetails", "ipv6privateCidrBlocks", "isIpv6enabled")},
    (VCN, "isOracleGuaAllocationEnabled"): _UNCHANGEABLE,
    (SUBNET, "ipv6cidrBlock"): _IPV6,
    (SUBNET, "ipv6cidrBlocks"): _IPV6,
    (SUBNET, "ipv4cidrBlocks"): _UNCHANGEABLE,  # A subnet has one block, which is `cidrBlock`.
    (OBJECT, "object"): _UNCHANGEABLE,
    (OBJECT, "storageTier"): _UNCHANGEABLE,
    (SECRET, "enableAutoGeneration"): "generates no secrets",
    (SECRET, "secretGenerationContext"): "generates no secrets",
}
# Inputs that only the provider reads, for a deletion.
OWN = frozenset({(JOB, "deleteRelatedJobRuns"), (OBJECT, "deleteAllObjectVersions")})
# Inputs that the plugin does not support (test_plugin_types says why).
NOT_TAKEN = frozenset({(BUCKET, "retentionRules"), (OBJECT, "opcSseKmsKeyId"), (OBJECT, "sourceUriDetails")})
# Inputs that cannot be removed again, by Oracle's schema and the API.
KEPT = frozenset({(SECRET, "replicationConfig")})


@pytest.fixture(scope="module")
def world(shared_cloud: Cloud, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with plugin_world(shared_cloud, tmp_path_factory.mktemp("world")) as made:
        yield made


def replaces(token: str, name: str) -> bool:
    """Whether every change of this input replaces the resource."""
    return any(path.split(".")[0] == name for path in resource_types_of_provider("oci")[token].replaced_by)


def read(world: World, token: str, made: Resource) -> Properties:
    """The resource as the official SDK reads it, with Pulumi's names."""
    row, ours = SERVED_TYPES[token], LocalOci().resource(token)
    assert isinstance(ours, OciResource)
    session = Session.of({}, world.cloud.env)
    client = session.client(row.service)
    if token == NSG_RULE:
        listed = client.list_network_security_group_security_rules(made.inputs["networkSecurityGroupId"]).data
        return dict(from_model(next(rule for rule in listed if made.id.endswith(rule.id))))
    if token == OBJECT:
        return dict(client.head_object(*(made.inputs[key] for key in ("namespace", "bucket", "object"))).headers)
    live = ours.outputs_of(getattr(client, f"get_{row.noun}")(*ours.call_path(made.id, made.inputs)).data, {})
    return {**live, **(content_of(world, made) if token == SECRET else {})}


def content_of(world: World, secret: Resource) -> Properties:
    """A secret's content is not in its model, so it is read as a run reads it."""
    import oci

    config = oci.config.from_file(str(world.cloud.config_file), "deployer")
    client = oci.secrets.SecretsClient(config, service_endpoint=world.cloud.endpoint)
    held = client.get_secret_bundle(secret.id).data.secret_bundle_content
    assert base64.b64decode(held.content)
    return {"secretContent": {"contentType": held.content_type, "content": held.content}}


def differs(asked: Any, live: Any, path: str) -> Iterator[str]:
    """The requested values that differ. Values that the cloud fills in do not count."""
    if isinstance(asked, Mapping) and isinstance(live, Mapping):
        if path in MAPS and asked.keys() != live.keys():
            yield f"{path}: asked for the keys {sorted(asked)}, and the cloud has {sorted(live)}"
        for key, item in asked.items():
            yield from differs(item, live.get(key), f"{path}.{key}")
    elif isinstance(asked, list) and isinstance(live, list) and len(asked) == len(live):
        for number, (one, other) in enumerate(zip(asked, live, strict=True)):
            yield from differs(one, other, f"{path}[{number}]")
    elif asked != live and not (asked in (None, [], {}) and live in (None, [], {})):
        yield f"{path}: asked for {asked!r}, and the cloud has {live!r}"


class Changing:
    """One resource whose inputs change one after another."""

    def __init__(self, world: World, token: str) -> None:
        self.world, self.token = world, token
        self.made = world.engine.create(token, "changing", CASES[token].inputs(world))
        self.wrong: list[str] = []

    def change(self, name: str) -> None:
        """Changes one input, and asserts that exactly the expected happens."""
        change = changes(self.world, self.token, name, self.made.inputs)
        wanted = {**self.made.inputs, **change}
        if (self.token, name) in NOT_TAKEN:
            _, failures = self.world.engine.check(self.token, "changing", wanted, self.made.inputs)
            self.wrong += [] if failures else [f"{name}: taken, though the table says that it is not"]
            return
        try:
            diff = self.world.engine.diff(self.made, wanted)
            if replaces(self.token, name):
                self.wrong += [] if diff.replaces else [f"{name}: makes no new resource"]
                return
            self.wrong += [f"{name}: makes a new resource"] if diff.replaces else []
            self.wrong += [] if diff.detailedDiff else [f"{name}: {change[name]!r} is no change"]
            self._update(name, change, wanted)
        except Failed as error:
            self._refused(name, str(error))

    def _update(self, name: str, change: Properties, wanted: Properties) -> None:
        with listening(self.world.cloud) as made:
            self.made = self.world.engine.update(self.made, wanted)
        expected = change_of(SERVED_TYPES[self.token], name, wanted)
        if (self.token, name) not in OWN and made.names not in expected:
            self.wrong.append(f"{name}: called {sorted(made.names)}, not {expected}")
        if (self.token, name) in REFUSED:
            self.wrong.append(f"{name}: changed, though the table says that it is refused")
        elif (self.token, name) not in OWN:
            live = read(self.world, self.token, self.made)
            for key, value in change.items():
                self.wrong += differs(value, live.get(key), key)

    def one_less(self, name: str) -> None:
        """A list or a map with one element less. A list keeps at least one element, because some must not be empty."""
        was = self.made.inputs.get(name)
        if not was or (isinstance(was, list) and len(was) == 1):
            return
        less = was[:-1] if isinstance(was, list) else dict(list(was.items())[:-1])
        wanted = {**self.made.inputs, name: less}
        if not self.world.engine.diff(self.made, wanted).detailedDiff:
            self.wrong.append(f"{name}: one less is no change")
        else:
            self._update(name, {name: less}, wanted)

    def _refused(self, name: str, words: str) -> None:
        expected = REFUSED.get((self.token, name))
        if expected is None or expected not in words:
            self.wrong.append(f"{name}: refused: {words}")

    def leave_out(self, name: str) -> None:
        """Leaves the input out: a value that OCI fills in stays, any other is removed."""
        wanted = {key: value for key, value in self.made.inputs.items() if key != name}
        was = self.made.inputs[name]
        if not self.world.engine.diff(self.made, wanted).detailedDiff:
            return
        try:
            self.made = self.world.engine.update(self.made, wanted)
        except Failed as error:
            refused = (self.token, name) in KEPT and _UNCHANGEABLE in str(error)
            self.wrong += [] if refused else [f"without {name}: refused: {error}"]
            return
        if read(self.world, self.token, self.made).get(name) == was not in (None, [], {}):
            self.wrong.append(f"without {name}: the cloud still has {was!r}")


@pytest.mark.parametrize("token", SERVED_TYPES)
def test_a_change_is_made_or_replaces_or_is_refused(world: World, token: str) -> None:
    changing = Changing(world, token)
    types = input_types(official(token, "Args"))
    needed = set(CASES[token].inputs(world)) | {"compartmentId"}
    try:
        for name in types:
            changing.change(name)
            if not replaces(token, name) and get_origin(types[name]) in (Mapping, Sequence):
                changing.one_less(name)
        for name in sorted(set(types) & changing.made.inputs.keys() - needed):
            if not replaces(token, name) and (token, name) not in OWN:
                changing.leave_out(name)
    finally:
        world.engine.delete(changing.made)
    assert not changing.wrong, "\n".join(changing.wrong)
