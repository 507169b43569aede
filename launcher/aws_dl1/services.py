# SPDX-License-Identifier: Apache-2.0
"""Services of AWS that speak JSON: secrets, logs, the registry."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from launcher.aws_dl1.fetch import Identity, call, endpoint

# By the name that a service signs with: the prefix of its operations, and its host name if that differs.
_TARGETS = {"logs": "Logs_20140328", "ecr": "AmazonEC2ContainerRegistry_V20150921", "secretsmanager": "secretsmanager"}
_HOSTS = {"ecr": "api.ecr"}


def call_json_service(identity: Identity, service: str, operation: str, parameters: Mapping[str, Any]) -> Any:
    """Calls an operation. AwsError: it was refused."""
    headers = {"content-type": "application/x-amz-json-1.1", "x-amz-target": f"{_TARGETS[service]}.{operation}"}
    url = endpoint(identity.environment, _HOSTS.get(service, service), identity.region)
    return json.loads(call(identity, service, "POST", f"{url}/", headers, json.dumps(parameters).encode()) or b"{}")


def read_aws_secret(identity: Identity, name: str) -> str:
    """The current value of a secret of AWS Secrets Manager, by its name or ARN."""
    return str(call_json_service(identity, "secretsmanager", "GetSecretValue", {"SecretId": name})["SecretString"])
