# SPDX-License-Identifier: Apache-2.0
"""How clients of OpenPAI come to a local cloud."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from localcloud.clients import PlatformClients
from localcloud.openpai.accounts import account_variables

if TYPE_CHECKING:
    from localcloud.control import Cloud


class OpenPaiClients(PlatformClients):
    def variables(self, cloud: Cloud, profile: str) -> Mapping[str, str]:
        return account_variables(cloud.home, profile)

    def profile_of_caller(self, cloud: Cloud, environment: Mapping[str, str]) -> str | None:
        return environment.get("OPENPAI_USER") if environment.get("OPENPAI_URI") == cloud.endpoint else None

    def place(self, cloud: Cloud) -> str:
        return f"OpenPAI: {cloud.endpoint}, users deployer and user"

    def facts(self, cloud: Cloud) -> Mapping[str, str]:
        return {"openpaiUri": cloud.endpoint}


CLIENTS = OpenPaiClients()
