# SPDX-License-Identifier: Apache-2.0
"""How clients of AWS come to a local cloud."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from localcloud.aws import account
from localcloud.clients import PlatformClients

if TYPE_CHECKING:
    from localcloud.control import Cloud


class AwsClients(PlatformClients):
    def variables(self, cloud: Cloud, profile: str) -> Mapping[str, str]:
        return account.aws_client_variables(cloud.home, cloud.endpoint, profile)

    def profile_of_caller(self, cloud: Cloud, environment: Mapping[str, str]) -> str | None:
        return account.profile_of_caller(cloud.home, environment)

    def place(self, cloud: Cloud) -> str:
        return f"AWS: account {account.ACCOUNT}, region {account.REGION}"

    def facts(self, cloud: Cloud) -> Mapping[str, str]:
        return account.account_facts()


CLIENTS = AwsClients()
