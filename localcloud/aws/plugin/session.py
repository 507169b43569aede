# SPDX-License-Identifier: Apache-2.0
"""The plugin's session: botocore's clients and models. Also the tags that the plugin adds to resources."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from components.aws.types.aws_resource_type import ATTEMPT_TAG
from components.platform.calls import ProviderError
from components.platform.values import Properties
from components.s3 import Session
from localcloud.aws.plugin.shapes import ParameterBuilder
from localcloud.plugins.plugin import missing_endpoint_error, require_local_endpoints

_ENDPOINT = "AWS_ENDPOINT_URL"
_OF_AWS = "aws:"


class AwsSession:
    """Botocore's clients for a configuration of the provider."""

    def __init__(self, session: Session, default_tags: Mapping[str, str]) -> None:
        self._session = session
        self.default_tags = default_tags

    @classmethod
    def of(cls, config: Properties) -> AwsSession:
        if not os.environ.get(_ENDPOINT):
            raise missing_endpoint_error("aws", f"{_ENDPOINT} names no endpoint")
        # Botocore prefers the endpoint of a service to the common one, so all endpoints must be local.
        require_local_endpoints("aws", [url for name, url in os.environ.items() if name.startswith(_ENDPOINT) and url])
        tags = parse_nested(config.get("defaultTags")).get("tags") or {}
        return cls(Session.of({key: config.get(key) for key in ("region", "profile")}), tags)

    @property
    def region_name(self) -> str:
        return self._session.region_name

    @property
    def account(self) -> str:
        return self._session.account

    def operation(self, service: str, name: str) -> Any:
        """Botocore's model of an operation."""
        return self._session.client(service, self.region_name).meta.service_model.operation_model(name)

    def ask(self, service: str, region: str, operation: str, parameters: Mapping[str, Any]) -> Properties:
        """Calls an operation by its name in botocore's model."""
        from botocore import xform_name

        client = self._session.client(service, region)
        answer: Properties = getattr(client, xform_name(operation))(**parameters)
        return answer


def parse_nested(value: Any) -> Mapping[str, Any]:
    """Parses nested configuration, which Pulumi passes as JSON."""
    if not isinstance(value, str):
        return value if isinstance(value, Mapping) else {}
    try:
        parsed = json.loads(value)
    except ValueError as error:
        raise ProviderError(f"The configuration of the provider `aws` holds text that is not JSON: {error}") from None
    return parsed if isinstance(parsed, Mapping) else {}


def all_tags(defaults: Mapping[str, str], inputs: Mapping[str, Any]) -> dict[str, Any]:
    """The tags of a resource: the provider's default tags, overridden by its own."""
    return {**defaults, **(inputs.get("tags") or {})}


def visible_tags(tags: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in tags.items() if key != ATTEMPT_TAG and not key.startswith(_OF_AWS)}


def tags_for(shape: Any, kind: str, tags: Mapping[str, str]) -> dict[str, Any]:
    """The parameter of a creation for these tags; {} if it has none."""
    if "TagSpecifications" in shape.members:
        pairs = [{"Key": key, "Value": value} for key, value in tags.items()]
        return {"TagSpecifications": [{"ResourceType": kind, "Tags": pairs}]}
    name = next((name for name in ("Tags", "tags") if name in shape.members), None)
    return {} if name is None else {name: ParameterBuilder().parameters(shape.members[name], dict(tags))}
