# SPDX-License-Identifier: Apache-2.0
"""What only nodes may read, by their role: the cluster's SSH key, and the secret variables of each run."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pulumi
import pulumi_aws as aws

from components.plan.model import NodePlan, RunPlan
from schemas.model import Secret

KEY_PAIR = "trainyard:index:KeyPair"


class KeyPair(pulumi.CustomResource):
    """An RSA key of our own provider, made once. Another `rotation` makes another one."""

    private_key: pulumi.Output[str]

    def __init__(self, name: str, rotation: int, opts: pulumi.ResourceOptions) -> None:
        outputs = {"publicKey": None, "privateKey": None, "fingerprint": None}
        secret = pulumi.ResourceOptions(additional_secret_outputs=["privateKey"])
        super().__init__(KEY_PAIR, name, {**outputs, "rotation": rotation}, pulumi.ResourceOptions.merge(opts, secret))

    @property
    def private(self) -> pulumi.Output[str]:
        return pulumi.Output.secret(pulumi.get(self, "privateKey"))


def keep_secret(
    name: str, called: str, why: str, value: pulumi.Input[str], tags: Mapping[str, str], opts: pulumi.ResourceOptions
) -> tuple[pulumi.Output[str], aws.secretsmanager.SecretVersion]:
    """A secret with its value: its name, and the version that has to be there before nodes read it."""
    secret = aws.secretsmanager.Secret(
        name,
        name=called,
        description=why,
        # A deleted secret would keep its name for days, and the stack could not be made again.
        recovery_window_in_days=0,
        tags=dict(tags),
        opts=opts,
    )
    version = aws.secretsmanager.SecretVersion(
        name, secret_id=secret.id, secret_string=pulumi.Output.secret(value), opts=opts
    )
    return secret.name, version


def secret_variables(run: RunPlan) -> str | None:
    """The secret variables of a run as a JSON object. None if it has none.

    A node reads what all nodes share, and what stands under its own name: `worker-0/HF_TOKEN`.
    """
    own = {node.name: _secrets(node) for node in run.nodes}
    texts: dict[str, str] = {}
    for variable in sorted({name for values in own.values() for name in values}):
        has = {node: values[variable] for node, values in own.items() if variable in values}
        if len(has) == len(own) and len(set(has.values())) == 1:
            texts[variable] = next(iter(has.values()))
        else:
            texts |= {f"{node}/{variable}": text for node, text in has.items()}
    return json.dumps(texts, sort_keys=True) if texts else None


def _secrets(node: NodePlan) -> dict[str, str]:
    return {name: value.value or "" for name, value in node.environment.items() if isinstance(value, Secret)}
