# SPDX-License-Identifier: Apache-2.0
"""Secrets of OCI Vault."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping

from launcher.connections import Connection
from launcher.errors import MissingError
from launcher.oci.principal import Signer, secrets_endpoint
from launcher.say import Voice
from launcher.stores import StoreError


def read(environment: Mapping[str, str], ocid: str, say: Voice) -> bytes:
    """The content of a secret's current version."""
    connection = Connection(secrets_endpoint(environment), Signer(environment), say)
    try:
        bundle = json.loads(connection.call("GET", f"/20190301/secretbundles/{ocid}").content)
        return base64.b64decode(bundle["secretBundleContent"]["content"])
    except (StoreError, ValueError, KeyError) as error:
        raise MissingError(f"the secret with the key of the code's repository cannot be read: {error}") from None
    finally:
        connection.close()
