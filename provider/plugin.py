# SPDX-License-Identifier: Apache-2.0
"""The Pulumi provider `trainyard`, and its resource `KeyPair`, which lives in the state only. Nodes of a cluster use
its key to log in to each other."""

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from catalog.version import VERSION
from components.platform.calls import Call, InputFailure, ProviderError
from components.platform.client import RunPlatforms
from components.platform.inputs import able_platforms, own_inputs
from components.platform.values import UNKNOWN, DiffRules, Properties
from provider.base.resource import (
    CheckedInputs,
    CreatedResource,
    Function,
    LiveResource,
    Plugin,
    ProviderResource,
    unknown_where_missing,
)
from provider.runs.resource import RunResource

BITS = 4096
INPUTS = frozenset({"rotation"})
OUTPUTS = ("publicKey", "privateKey", "fingerprint")
_DEFAULTS: Mapping[str, Any] = {"rotation": 1}


class KeyPairResource(ProviderResource):
    """A key pair, made once. Another `rotation` makes another pair before the old one is deleted."""

    rules = DiffRules(replace=INPUTS)
    secret_outputs = frozenset({"privateKey"})

    def check(self, call: Call, old: Properties, new: Properties) -> CheckedInputs:
        inputs = {**_DEFAULTS, **{key: value for key, value in new.items() if value is not None}}
        return CheckedInputs(inputs, tuple(_key_pair_failures(inputs)))

    def preview(self, inputs: Properties, old_outputs: Properties | None) -> Properties:
        return unknown_where_missing({**(old_outputs or {}), **inputs}, OUTPUTS)

    def create(self, call: Call, inputs: Properties) -> CreatedResource:
        call.report.status(f"making an RSA key of {BITS} bits")
        pair = make_pair()
        return CreatedResource(pair["fingerprint"], {**inputs, **pair})

    def read(self, call: Call, id: str, outputs: Properties, inputs: Properties) -> LiveResource | None:  # noqa: A002
        if not all(outputs.get(name) for name in OUTPUTS):
            raise ProviderError(
                f"The key pair {id} cannot be imported: only the state that made it has its private key.",
                "Let `up` make another one.",
            )
        return LiveResource(id, outputs, inputs)

    def update(self, call: Call, id: str, outputs: Properties, old: Properties, new: Properties) -> Properties:  # noqa: A002
        return {**outputs, **new}

    def delete(self, call: Call, id: str, outputs: Properties, inputs: Properties) -> None:  # noqa: A002
        """Does nothing: a key pair exists only in the state, from which the engine removes it."""


def make_pair() -> Properties:
    """A new RSA key in OpenSSH's formats. Its fingerprint is written as `ssh-keygen -l` writes it."""
    import base64
    import hashlib

    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    key = rsa.generate_private_key(public_exponent=65537, key_size=BITS)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()
    )
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    digest = hashlib.sha256(base64.b64decode(public.split()[1])).digest()
    return {
        "publicKey": public.decode(),
        "privateKey": private.decode(),
        "fingerprint": f"SHA256:{base64.b64encode(digest).decode().rstrip('=')}",
    }


def _key_pair_failures(inputs: Properties) -> Iterator[InputFailure]:
    for key in sorted(set(inputs) - INPUTS - {"__defaults"}):
        yield InputFailure(key, f"A key pair has no input `{key}`; it has {', '.join(sorted(INPUTS))}.")
    rotation = inputs["rotation"]
    if rotation is not UNKNOWN and (isinstance(rotation, bool) or not isinstance(rotation, int) or rotation < 1):
        yield InputFailure("rotation", f"`{rotation}` is not a positive whole number.")


_CONFIGURATION = ("region", "profile", "configFile")


class Trainyard(Plugin):
    name = "trainyard"
    version = VERSION

    def __init__(self) -> None:
        self._configured: RunPlatforms | None = None
        self._resources: Mapping[str, ProviderResource] = {
            "trainyard:index:KeyPair": KeyPairResource(),
            "trainyard:index:Run": RunResource(self._platforms),
        }

    def configure(self, config: Properties) -> None:
        self._configured = RunPlatforms({key: config[key] for key in _CONFIGURATION if config.get(key)})

    def replacing_config(self, old: Properties, new: Properties) -> Iterable[str]:
        # Another profile or file may lead to the same account, but another region never has the same runs.
        return [key for key in ("region",) if old.get(key) and new.get(key) and old[key] != new[key]]

    def resource(self, token: str) -> ProviderResource | None:
        return self._resources.get(token)

    def function(self, token: str) -> Function | None:
        return self._platforms().function(token)

    def schema(self) -> Mapping[str, Any]:
        described: dict[str, Any] = json.loads((Path(__file__).parent / "schema.json").read_text(encoding="utf-8"))
        run = described["resources"]["trainyard:index:Run"]["inputProperties"]
        node = described["types"]["trainyard:index:Node"]["properties"]
        for own in filter(None, map(own_inputs, able_platforms())):
            run |= {name: row.shape for name, row in own.inputs.items()}
            node |= own.node
        return {**described, "version": self.version}

    def _platforms(self) -> RunPlatforms:
        if self._configured is None:
            raise ProviderError(
                "The provider `trainyard` was not configured.", "This is a bug of the engine or the host."
            )
        return self._configured
