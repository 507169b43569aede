# SPDX-License-Identifier: Apache-2.0
"""The unsigned answer by which our clients recognize a local cloud. No real endpoint gives it."""

from __future__ import annotations

from catalog.version import VERSION
from localcloud.api import tenancy
from localcloud.api.operations import LocalCloud
from localcloud.aws import account

PATH = "/.trainyard"
CLOUD = "trainyard-local"


def marker(cloud: LocalCloud) -> dict[str, str]:
    return {
        "cloud": CLOUD,
        "version": VERSION,
        "home": str(cloud.home),
        "region": tenancy.REGION,
        "tenancy": tenancy.TENANCY,
        "compartment": tenancy.COMPARTMENT,
        "namespace": tenancy.NAMESPACE,
        "awsAccount": account.ACCOUNT,
        "awsRegion": account.REGION,
        "openpaiUri": cloud.endpoint,
    }
