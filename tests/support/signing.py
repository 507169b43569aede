# SPDX-License-Identifier: Apache-2.0
"""Requests that are signed here, because the official SDK would not send them."""

import base64
from email.utils import formatdate
from pathlib import Path
from urllib.parse import urlsplit

import oci
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15

from localcloud.control import Cloud
from localcloud.oci.authentication import sign_request, signing_string
from localcloud.oci.tenancy import load_private_key


class Signing:
    """A client with its own implementation of signatures, so that it can also make wrong ones."""

    def __init__(self, cloud: Cloud, profile_name: str = "deployer") -> None:
        profile = oci.config.from_file(str(cloud.config_file), profile_name)
        self.key_id = f"{profile['tenancy']}/{profile['user']}/{profile['fingerprint']}"
        self.key = load_private_key(Path(profile["key_file"]))
        self.cloud = cloud
        self.host = urlsplit(cloud.endpoint).netloc

    def headers(self, method: str, target: str, body: bytes = b"", date: str = "") -> dict[str, str]:
        return sign_request(method, target, self.host, body, self.key_id, self.key, date)

    def without_body(self, method: str, target: str) -> dict[str, str]:
        """A signature that does not cover the body, as for uploads."""
        named = ("date", "(request-target)", "host")
        headers = {"date": formatdate(usegmt=True), "host": self.host}
        signed = self.key.sign(signing_string(method, target, headers, named), PKCS1v15(), hashes.SHA256())
        return headers | {
            "authorization": f'Signature version="1",keyId="{self.key_id}",algorithm="rsa-sha256",'
            f'headers="{" ".join(named)}",signature="{base64.b64encode(signed).decode()}"'
        }
