# SPDX-License-Identifier: Apache-2.0
"""The examples of the policy rules, as messages of the engine and as a snapshot of a review."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from components.platform.review import UNKNOWN, ReviewedResource, Snapshot
from policies.pack import analyzer_pb2
from policies.rule import JudgedResource, Unknown

# The engine's placeholder for a string that is not known in a preview.
LATER = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"


def named(resources: Iterable[JudgedResource], prefix: str) -> tuple[JudgedResource, ...]:
    """The same resources with unique names and URNs, as in one stack."""
    given = [replace(one, name=f"{prefix}-{number}") for number, one in enumerate(resources)]
    return tuple(replace(one, urn=f"urn:pulumi:dev::vision::{one.type}::{one.name}") for one in given)


def written(value: Any, unknown: Any) -> Any:
    """Properties, with `unknown` in place of unknown values."""
    if isinstance(value, Unknown):
        return unknown
    if isinstance(value, Mapping):
        return {key: written(item, unknown) for key, item in value.items()}
    return [written(item, unknown) for item in value] if isinstance(value, list | tuple) else value


def asked(resource: JudgedResource) -> Any:
    """The engine's request to analyse a resource before it is made."""
    message = analyzer_pb2.AnalyzeRequest(type=resource.type, name=resource.name, urn=resource.urn)
    message.properties.update(written(resource.properties, LATER))
    message.options.protect = resource.protect
    _name_provider(message, resource)
    return message


def _name_provider(message: Any, resource: JudgedResource) -> None:
    """The engine names the provider of all but components."""
    if not resource.is_component:
        message.provider.type = f"pulumi:providers:{resource.type.partition(':')[0]}"


def asked_of_stack(resources: Sequence[JudgedResource]) -> Any:
    """The engine's request to analyse the whole stack at the end."""
    listed = []
    for one in resources:
        message = analyzer_pb2.AnalyzerResource(type=one.type, name=one.name, urn=one.urn)
        message.properties.update(written(one.properties, LATER))
        message.options.protect = one.protect
        _name_provider(message, one)
        listed.append(message)
    return analyzer_pb2.AnalyzeStackRequest(resources=listed)


def configured(**config: Any) -> Any:
    """The engine's message with the stack's configuration."""
    texts = {f"trainyard:{key}": one if isinstance(one, str) else json.dumps(one) for key, one in config.items()}
    return analyzer_pb2.AnalyzerStackConfigureRequest(stack="dev", config=texts)


def snapshot(resources: Iterable[JudgedResource], **plan: Any) -> Snapshot:
    reviewed = tuple(
        ReviewedResource(
            one.type,
            one.name,
            one.urn,
            "",
            written(one.properties, UNKNOWN),
            protect=one.protect,
            custom=not one.is_component,
        )
        for one in resources
    )
    return Snapshot("dev", "oci", plan, reviewed)
