# SPDX-License-Identifier: Apache-2.0
"""If a tag can be pushed again, a run that starts again may run another image."""

from policies.rule import RequiredValue, value_rule

RULE = value_rule(
    id="mutable-repository",
    # Advisory, because a stack may choose it: people try images out under one tag.
    level="advisory",
    asks="A tag of an image means the same image for ever.",
    remedy="set `trainyard:registry: { immutable: true }`, or name images by digest",
    because="a tag can be pushed again",
    where={
        "oci:Artifacts/containerRepository:ContainerRepository": RequiredValue(
            "isImmutable", True, {"immutable": True}, {"OCI's default": None}
        ),
        "aws:ecr/repository:Repository": RequiredValue(
            "imageTagMutability",
            # AWS also has `IMMUTABLE_WITH_EXCLUSION`.
            lambda value: str(value).startswith("IMMUTABLE"),
            {"immutable on AWS": "IMMUTABLE"},
            {"AWS's default": None},
        ),
    },
)
