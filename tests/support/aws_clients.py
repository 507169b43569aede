# SPDX-License-Identifier: Apache-2.0
"""AWS's own clients, which find a local cloud as people's clients do: only by its environment variables."""

from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

import botocore.session
from botocore.config import Config
from botocore.exceptions import ClientError

from localcloud.control import Cloud

_ONCE = Config(retries={"total_max_attempts": 1}, read_timeout=60)


@dataclass
class AwsClients:
    """A client for each service, as one profile. Each is made on first use."""

    cloud: Cloud
    profile: str = "deployer"
    region: str = "us-east-1"
    _made: dict[str, Any] = field(default_factory=dict)

    def __getitem__(self, service: str) -> Any:
        if service not in self._made:
            with patch.dict("os.environ", self.cloud.env_for(self.profile)):
                self._made[service] = botocore.session.Session().create_client(
                    service, region_name=self.region, config=_ONCE
                )
        return self._made[service]

    def with_keys(self, key: str, secret: str, token: str | None = None) -> "AwsClients":
        """New clients with other credentials."""
        return _WithKeys(self.cloud, self.profile, self.region, credentials=(key, secret, token))


@dataclass
class _WithKeys(AwsClients):
    credentials: tuple[str, str, str | None] = ("", "", None)

    def __getitem__(self, service: str) -> Any:
        if service not in self._made:
            key, secret, token = self.credentials
            with patch.dict("os.environ", self.cloud.env_for(self.profile)):
                self._made[service] = botocore.session.Session().create_client(
                    service, region_name=self.region, config=_ONCE,
                    aws_access_key_id=key, aws_secret_access_key=secret, aws_session_token=token,
                )  # fmt: skip
        return self._made[service]


def refused(call: Any, *args: Any, **named: Any) -> tuple[str, str]:
    """The code and message of a call that must be refused."""
    try:
        call(*args, **named)
    except ClientError as error:
        return error.response["Error"]["Code"], error.response["Error"].get("Message", "")
    raise AssertionError(f"{call.__name__} was allowed")
