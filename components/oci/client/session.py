# SPDX-License-Identifier: Apache-2.0
"""The cloud's endpoints and our credentials, found as Oracle's own clients find them (docs/contracts.md)."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from components.platform.calls import LocalCloud, ProviderError
from components.platform.client import Where

OVERRIDES_VARIABLES = ("TF_VAR_CLIENT_HOST_OVERRIDES", "OCI_CLIENT_HOST_OVERRIDES", "CLIENT_HOST_OVERRIDES")

# Seconds to connect and to read.
_TIMEOUT = (10.0, 60.0)

CLIENTS: Mapping[str, tuple[str, str]] = {
    "artifacts": ("artifacts", "ArtifactsClient"),
    "core": ("core", "VirtualNetworkClient"),
    "data_science": ("data_science", "DataScienceClient"),
    "identity": ("identity", "IdentityClient"),
    "limits": ("limits", "LimitsClient"),
    "logging": ("logging", "LoggingManagementClient"),
    "log_search": ("loggingsearch", "LogSearchClient"),
    "monitoring": ("monitoring", "MonitoringClient"),
    "object_storage": ("object_storage", "ObjectStorageClient"),
    "resource_search": ("resource_search", "ResourceSearchClient"),
    "vault": ("vault", "VaultsClient"),
    "work_requests": ("work_requests", "WorkRequestClient"),
}
REGION_KEY = "oci:region"
PROFILE_KEY = "oci:configFileProfile"
COMPARTMENT_KEY = "trainyard:compartment"
DEPLOYER, USER = "deployer", "user"


def host_overrides(environment: Mapping[str, str]) -> dict[str, str]:
    """Endpoint by client class, from `oci_core.VirtualNetworkClient=http://127.0.0.1:1;…` (prefixes don't matter)."""
    text = next((environment[name] for name in OVERRIDES_VARIABLES if environment.get(name)), "")
    endpoints = {}
    for entry in filter(None, (part.strip() for part in text.split(";"))):
        key, equals, url = entry.partition("=")
        if not equals or not url.startswith(("http://", "https://")):
            raise ProviderError(
                f"CLIENT_HOST_OVERRIDES has an entry that is not an endpoint: `{entry}`.",
                "An entry is `oci_core.VirtualNetworkClient=http://HOST:PORT`; entries are separated by `;`.",
            )
        endpoints[key.strip().rsplit(".", 1)[-1]] = url.strip().rstrip("/")
    return endpoints


@dataclass
class Session:
    """The SDK's clients for one set of credentials, made when first needed."""

    region: str | None = None
    profile: str | None = None
    config_file: str | None = None
    endpoints: Mapping[str, str] = field(default_factory=dict)
    # For callers without a key file, such as a notebook session.
    signer: Any = field(default=None, repr=False)
    _clients: dict[tuple[str, str], Any] = field(default_factory=dict, repr=False)
    _credentials: dict[str, Any] | None = field(default=None, repr=False)
    _key_signer: Any = field(default=None, repr=False)
    _lock: threading.RLock = field(default_factory=threading.RLock, repr=False)

    @classmethod
    def of(cls, config: Mapping[str, Any], environment: Mapping[str, str] | None = None) -> Session:
        """Reads the provider's configuration first, then the environment, then Oracle's defaults."""
        variables = os.environ if environment is None else environment
        return cls(
            region=config.get("region") or variables.get("OCI_REGION"),
            profile=config.get("profile") or variables.get("OCI_CONFIG_PROFILE"),
            config_file=config.get("configFile") or variables.get("OCI_CONFIG_FILE"),
            endpoints=host_overrides(variables),
        )

    @property
    def credentials(self) -> dict[str, Any]:
        with self._lock:
            if self._credentials is None:
                self._credentials = self._read_credentials()
            return self._credentials

    @property
    def tenancy(self) -> str:
        return str(self.credentials["tenancy"])

    def client(self, name: str, region: str | None = None) -> Any:
        """The named client (a row of CLIENTS) for `region`, or for the session's region."""
        with self._lock:
            key = (name, region or "")
            if key not in self._clients:
                self._clients[key] = self._make(name, region)
            return self._clients[key]

    def _make(self, name: str, region: str | None) -> Any:
        module, class_name = CLIENTS[name]
        own = {"region": self.region} if self.signer is not None else self.credentials
        config = {**own, **({"region": region} if region else {})}
        options: dict[str, Any] = {
            "timeout": _TIMEOUT,
            # components.oci.client.calls retries instead: visibly, for a limited time, and until Ctrl-C.
            "retry_strategy": sdk_module("retry").NoneRetryStrategy(),
            "circuit_breaker_strategy": sdk_module("circuit_breaker").NoCircuitBreakerStrategy(),
        }
        if class_name in self.endpoints:
            options["service_endpoint"] = self.endpoints[class_name]
        signer = self.signer or self._signer(config)
        if signer is not None:
            options["signer"] = signer
        return getattr(sdk_module(module), class_name)(config, **options)

    def _signer(self, config: Mapping[str, Any]) -> Any:
        """One signer for all clients: the SDK would check the private key for each, which takes 70 ms. None if the
        profile names another authentication, which the SDK does itself."""
        if "security_token_file" in config:
            # A profile made by `oci session authenticate` has a token in place of an uploaded key.
            token = Path(config["security_token_file"]).expanduser().read_text(encoding="utf-8").strip()
            key = sdk_module("signer").load_private_key_from_file(config["key_file"], config.get("pass_phrase"))
            return sdk_module("auth.signers").SecurityTokenSigner(token, key)
        if "authentication_type" in config:
            return None
        if self._key_signer is None:
            self._key_signer = sdk_module("signer").Signer(
                config["tenancy"], config["user"], config["fingerprint"], config.get("key_file"),
                pass_phrase=config.get("pass_phrase"), private_key_content=config.get("key_content"),
            )  # fmt: skip
        return self._key_signer

    def _read_credentials(self) -> dict[str, Any]:
        oci_config = sdk_module("config")
        file = self.config_file or oci_config.DEFAULT_LOCATION
        profile = self.profile or oci_config.DEFAULT_PROFILE
        try:
            credentials: dict[str, Any] = dict(oci_config.from_file(file, profile))
            if self.region:
                credentials["region"] = self.region
            if "security_token_file" not in credentials:
                oci_config.validate_config(credentials)
        except Exception as error:  # the SDK raises half a dozen unrelated types here
            # A parser repeats the line that it cannot read, which may be a secret.
            why = "it cannot be parsed" if type(error).__module__ == "configparser" else error
            raise ProviderError(
                f"No usable OCI credentials: profile `{profile}` of {file}: {why}",
                "Make them with `oci setup config`, or name others with OCI_CONFIG_FILE and OCI_CONFIG_PROFILE. "
                "For the local cloud, use --local, or the variables that `trainyard cloud env` prints.",
            ) from error
        return credentials


def session_of_caller(where: Where) -> Session:
    """The session of the caller. The order of profiles: the caller's, the stack file's, that of all OCI clients."""
    if where.cloud is not None:
        return Session.of({"profile": where.profile}, where.cloud.env_of_caller())
    region, profile = where.config.get(REGION_KEY), where.profile or where.config.get(PROFILE_KEY)
    return Session.of({"region": region, "profile": profile})


def compartment_of_caller(where: Where) -> str:
    """The compartment of the caller's runs, or "" if none is named."""
    if where.place:
        return where.place
    return where.cloud.compartment if where.cloud is not None else str(where.config.get(COMPARTMENT_KEY) or "")


def session_of(cloud: LocalCloud, profile: str) -> Session:
    """A session with a profile of the local cloud's own configuration file."""
    return Session(profile=profile, config_file=str(cloud.config_file), endpoints=host_overrides(cloud.env))


_SDK_LOCK = threading.RLock()


def sdk_module(name: str) -> Any:
    """Imports `oci.<name>`, one thread at a time. The SDK's modules import each other in cycles, so two threads could
    get partially initialized modules. The engine asks about many resources in parallel."""
    with _SDK_LOCK:
        return _import_sdk_module(name)


@cache
def _import_sdk_module(name: str) -> Any:
    return import_module(f"oci.{name}")
