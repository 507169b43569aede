# SPDX-License-Identifier: Apache-2.0
"""The environment variables that lead OCI's clients to this cloud."""

from __future__ import annotations

OVERRIDABLE = (
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
    "oci_secrets.SecretsClient",
    "oci_vault.VaultsClient",
    "oci_work_requests.WorkRequestClient",
)


def client_variables(endpoint: str, object_storage: str = "") -> dict[str, str]:
    """The endpoints, without credentials: a run has its own."""
    own = {"oci_object_storage.ObjectStorageClient": object_storage or endpoint}
    return {
        "CLIENT_HOST_OVERRIDES": ";".join(f"{client}={own.get(client, endpoint)}" for client in OVERRIDABLE),
        "OCI_ODSC_SERVICE_ENDPOINT": endpoint,
        "OCI_CLI_ENDPOINT": endpoint,
    }
