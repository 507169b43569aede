# SPDX-License-Identifier: Apache-2.0
"""What only nodes may read, by their role: the cluster's SSH key, and the secret variables of each run."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pulumi
import pulumi_aws as aws

from components.plan.model import JobPlan, RunPlan
from components.refusal import RefusedError
from schemas.checks.registry import Wrong, at
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


def secret_variables(job: JobPlan, run: RunPlan) -> str | None:
    """The secret variables of a run as a JSON object. None if it has none."""
    values: dict[str, str] = {}
    for node in run.nodes:
        for variable, value in node.environment.items():
            if not isinstance(value, Secret):
                continue
            text = value.value or ""
            if values.setdefault(variable, text) != text:
                message = f"`{variable}` is a secret with another value for `{node.role}`, but a run has one of a name"
                raise RefusedError([Wrong(at("jobs", job.name, "roles"), message, "give one of them another name")])
    return json.dumps(values, sort_keys=True) if values else None
