# SPDX-License-Identifier: Apache-2.0
"""A key pair as a resource of our own provider (docs/contracts.md)."""

from __future__ import annotations

from typing import cast

import pulumi

TYPE = "trainyard:index:KeyPair"
_NAMES = {"publicKey": "public_key", "privateKey": "private_key"}


class KeyPair(pulumi.CustomResource):
    """An RSA key of 4096 bits in OpenSSH's formats. It is made once; another `rotation` makes another one."""

    def __init__(self, name: str, rotation: pulumi.Input[int] = 1, opts: pulumi.ResourceOptions | None = None) -> None:
        outputs = {"public_key": None, "private_key": None, "fingerprint": None}
        secret = pulumi.ResourceOptions(additional_secret_outputs=["private_key"])
        super().__init__(TYPE, name, {**outputs, "rotation": rotation}, pulumi.ResourceOptions.merge(secret, opts))

    @property
    @pulumi.getter(name="publicKey")
    def public_key(self) -> pulumi.Output[str]:
        """As a line of authorized_keys."""
        return cast("pulumi.Output[str]", pulumi.get(self, "public_key"))

    @property
    @pulumi.getter(name="privateKey")
    def private_key(self) -> pulumi.Output[str]:
        """A secret, also in the state."""
        return cast("pulumi.Output[str]", pulumi.get(self, "private_key"))

    @property
    @pulumi.getter
    def fingerprint(self) -> pulumi.Output[str]:
        return cast("pulumi.Output[str]", pulumi.get(self, "fingerprint"))

    def translate_output_property(self, prop: str) -> str:
        return _NAMES.get(prop, prop)
