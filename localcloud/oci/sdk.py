# SPDX-License-Identifier: Apache-2.0
"""Oracle's SDK: type tables, read from the source of the installed package `oci`, and variables for its clients.

Importing one service of the package takes a tenth of a second and tens of megabytes.
Reading the few models in use takes a millisecond each.
"""

from __future__ import annotations

import ast
import importlib.util
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from catalog.imports import parse_python
from catalog.tables import table

_SUBTYPE_KEY = re.compile(r"type = object_dictionary\['(\w+)'\]")
_SUBTYPE = re.compile(r"if type == '([^']+)':\s+return '(\w+)'")
_CLIENT_OPERATION = re.compile(r'resource_path = "([^"]+)"\s+method = "(\w+)"\s+operation_name = "(\w+)"')
_BASE_PATH = re.compile(r"'base_path': '([^']+)'")
# Clients by the first part of their paths, so that a refusal can name an operation that is missing here.
_CLIENTS = {
    "/20160918": (
        "core/virtual_network_client", "core/compute_client", "core/blockstorage_client", "identity/identity_client",
        "artifacts/artifacts_client", "work_requests/work_request_client",
    ),
    "/20190101": ("data_science/data_science_client",),
    "/20190729": ("limits/limits_client",),
    "/20181025": ("limits/quotas_client",),
    "/20180608": ("vault/vaults_client",),
    "/20180409": ("resource_search/resource_search_client",),
    "/20190301": ("secrets/secrets_client",),
    "/20200531": ("logging/logging_management_client",),
    "/20200831": ("loggingingestion/logging_client",),
    "/20190909": ("loggingsearch/log_search_client",),
    "/20180401": ("monitoring/monitoring_client",),
    "/n": ("object_storage/object_storage_client",),
    "/workRequests": ("object_storage/object_storage_client",),
}  # fmt: skip


@dataclass(frozen=True)
class Field:
    """An attribute of a model, by its name on the wire."""

    wire: str
    type: str
    required: bool
    allowed: frozenset[str]


@dataclass(frozen=True)
class Model:
    """A model: its fields by their names on the wire, and the field that chooses its subtype."""

    name: str
    fields: Mapping[str, Field]
    discriminator: str
    subtypes: Mapping[str, str]


@cache
def _sdk_package() -> Path:
    spec = importlib.util.find_spec("oci")
    if spec is None or not spec.submodule_search_locations:
        raise RuntimeError("the local cloud validates requests by tables of the package `oci`, which is not installed")
    return Path(spec.submodule_search_locations[0])


@cache
def _model_files(service: str) -> Mapping[str, str]:
    source = (_sdk_package() / service / "models" / "__init__.py").read_text()
    return {name: module for module, name in re.findall(r"from \.(\w+) import (\w+)", source)}


@cache
def sdk_model(service: str, name: str) -> Model:
    """The model `name` of the SDK's package `service`; KeyError if there is none."""
    source = (_sdk_package() / service / "models" / f"{_model_files(service)[name]}.py").read_text()
    body = next(node for node in parse_python(source).body if isinstance(node, ast.ClassDef)).body
    functions = [node for node in body if isinstance(node, ast.FunctionDef)]
    init = next(f for f in functions if f.name == "__init__")
    tables: dict[str, dict[str, str]] = {}
    for node in init.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute):
            attribute = node.targets[0].attr
            if attribute in ("swagger_types", "attribute_map"):
                tables[attribute] = ast.literal_eval(node.value)
    types, wire_names = tables["swagger_types"], tables["attribute_map"]
    required, allowed = set(), {}
    for function in functions:
        if "**[Required]**" in (ast.get_docstring(function) or "")[:40]:
            required.add(function.name)
        for node in function.body:
            target = node.targets[0] if isinstance(node, ast.Assign) else None
            if isinstance(node, ast.Assign) and isinstance(target, ast.Name) and target.id == "allowed_values":
                allowed[function.name] = frozenset(ast.literal_eval(node.value))
    fields = {
        wire: Field(wire, types[attribute], attribute in required, allowed.get(attribute, frozenset()))
        for attribute, wire in wire_names.items()
    }
    key = _SUBTYPE_KEY.search(source)
    return Model(name, fields, key[1] if key else "", dict(_SUBTYPE.findall(source)))


@cache
def client_operations(client: str) -> tuple[tuple[str, str, str], ...]:
    """(method, path, name) of every operation of one client of the SDK, such as `core/virtual_network_client`."""
    source = (_sdk_package() / f"{client}.py").read_text()
    base = _BASE_PATH.search(source)
    prefix = base[1].rstrip("/") if base else ""
    return tuple(
        (method, prefix + path, "".join(part.capitalize() for part in name.split("_")))
        for path, method, name in _CLIENT_OPERATION.findall(source)
    )


def operation_name(method: str, path: str) -> str:
    """OCI's name of the operation of a request for which this cloud has no row."""
    for client in _CLIENTS.get("/" + path.removeprefix("/").partition("/")[0], ()):
        for candidate, template, name in client_operations(client):
            pattern = re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(template))
            if candidate == method and re.fullmatch(pattern, path):
                return name
    return f"{method} {path}"


# The clients of this project, on this machine and on nodes.
OWN_CLIENTS = (
    "oci_artifacts.ArtifactsClient",
    "oci_core.VirtualNetworkClient",
    "oci_datascience.DataScienceClient",
    "oci_identity.IdentityClient",
    "oci_limits.LimitsClient",
    "oci_logging.LoggingManagementClient",
    "oci_loggingingestion.LoggingClient",
    "oci_loggingsearch.LogSearchClient",
    "oci_monitoring.MonitoringClient",
    "oci_object_storage.ObjectStorageClient",
    "oci_resource_search.ResourceSearchClient",
    "oci_secrets.SecretsClient",
    "oci_vault.VaultsClient",
    "oci_work_requests.WorkRequestClient",
)


def provider_clients() -> frozenset[str]:
    """Every client of Oracle's provider. One without an override would call Oracle's own hosts."""
    clients: Mapping[str, str] = table("oci_provider")["clients"]
    return frozenset(f"{package}.{name}" for package, names in clients.items() for name in names.split())


def oci_client_variables(
    endpoint: str, object_storage: str = "", *, more: frozenset[str] = frozenset()
) -> dict[str, str]:
    """The variables that lead OCI's clients to this cloud. They have no credentials, because each run has its own.
    `more`: further clients than this project's own."""
    own = {"oci_object_storage.ObjectStorageClient": object_storage or endpoint}
    clients = (*OWN_CLIENTS, *sorted(more.difference(OWN_CLIENTS)))
    return {
        "CLIENT_HOST_OVERRIDES": ";".join(f"{client}={own.get(client, endpoint)}" for client in clients),
        "OCI_ODSC_SERVICE_ENDPOINT": endpoint,
        "OCI_CLI_ENDPOINT": endpoint,
    }
