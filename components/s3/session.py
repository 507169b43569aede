# SPDX-License-Identifier: Apache-2.0
"""Sessions for AWS: endpoint, region and credentials, found as AWS's own clients find them (docs/contracts.md)."""

import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from components.platform.calls import ProviderError
from components.s3.calls import refusal

# In this order: AWS's own clients disagree about the name.
REGION_VARIABLES = ("AWS_REGION", "AWS_DEFAULT_REGION")
_SECONDS_TO_CONNECT, _SECONDS_TO_READ = 10, 60
# Connections to one service: at most this many threads call it at once.
_CONNECTIONS = 64
_LOGIN = (
    "Make some with `aws configure` or `aws sso login`, or name a profile with AWS_PROFILE. "
    "For the local cloud, use --local, or the variables that `trainyard cloud env` prints."
)


@dataclass
class Session:
    """Botocore's clients for one set of credentials, made when first used.

    Without explicit values botocore reads its environment variables and files, as in every AWS client.
    """

    region: str | None = None
    profile: str | None = None
    config_file: str | None = None
    credentials_file: str | None = None
    endpoint: str | None = None
    _clients: dict[tuple[str, str], Any] = field(default_factory=dict, repr=False)
    _botocore: Any = field(default=None, repr=False)
    _account: str = ""
    _lock: threading.RLock = field(default_factory=threading.RLock, repr=False)

    @classmethod
    def of(cls, config: Mapping[str, Any], environment: Mapping[str, str] | None = None) -> "Session":
        """Takes the provider's configuration first, then the environment, then AWS's defaults."""
        given = environment or {}
        variables = os.environ if environment is None else environment
        named = next((variables[name] for name in REGION_VARIABLES if variables.get(name)), None)
        return cls(
            region=config.get("region") or named,
            profile=config.get("profile") or given.get("AWS_PROFILE") or None,
            config_file=config.get("configFile") or variables.get("AWS_CONFIG_FILE"),
            credentials_file=variables.get("AWS_SHARED_CREDENTIALS_FILE"),
            # Botocore reads AWS_ENDPOINT_URL from the environment itself, and first the variables of single services.
            endpoint=config.get("endpoint") or given.get("AWS_ENDPOINT_URL"),
        )

    @property
    def region_name(self) -> str:
        """The region: the session's own, or the profile's."""
        with self._lock:
            region = self.region or self._opened().get_config_variable("region")
        if not region:
            raise ProviderError(
                "No AWS region is set.", "Set `aws:region` in the stack file, or the variable AWS_REGION."
            )
        return str(region)

    @property
    def account(self) -> str:
        """The account's id, which AWS is asked for once."""
        if not self._account:
            try:
                self._account = str(self.client("sts").get_caller_identity()["Account"])
            except Exception as error:
                raise refusal("Ask AWS which account this is", error) from error
        return self._account

    def client(self, service: str, region: str | None = None) -> Any:
        """The client of a service, by botocore's name for it, for `region` or for the session's region.

        Botocore's clients are thread-safe, its sessions are not: hence the lock.
        """
        with self._lock:
            key = (service, region or "")
            if key not in self._clients:
                self._clients[key] = self._make(service, region or self.region_name)
            return self._clients[key]

    def _make(self, service: str, region: str) -> Any:
        from botocore.config import Config
        from botocore.exceptions import BotoCoreError

        config = Config(
            connect_timeout=_SECONDS_TO_CONNECT,
            read_timeout=_SECONDS_TO_READ,
            max_pool_connections=_CONNECTIONS,
            # We retry ourselves (components.platform.calls): visibly, for a limited time, and until Ctrl-C.
            retries={"total_max_attempts": 1, "mode": "standard"},
            # Transfers send their own MD5. A second checksum would only cost time.
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
        )
        try:
            return self._opened().create_client(service, region_name=region, endpoint_url=self.endpoint, config=config)
        except BotoCoreError as error:
            raise self._unusable(error) from error

    def _opened(self) -> Any:
        """Botocore's session. The import takes a quarter of a second, so it is done here, when AWS is used."""
        import botocore.session
        from botocore.exceptions import BotoCoreError

        if self._botocore is None:
            opened = botocore.session.Session(profile=self.profile)
            files = {"config_file": self.config_file, "credentials_file": self.credentials_file}
            for name, file in files.items():
                if file:
                    opened.set_config_variable(name, file)
            try:
                if opened.get_credentials() is None:
                    raise ProviderError("No credentials for AWS were found.", _LOGIN)
            except BotoCoreError as error:
                raise self._unusable(error) from error
            self._botocore = opened
        return self._botocore

    def _unusable(self, error: Exception) -> ProviderError:
        return ProviderError(f"No usable credentials for AWS: {error}", _LOGIN)
