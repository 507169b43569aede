# SPDX-License-Identifier: Apache-2.0
"""The local tenancy: the resources that it always has, and the keys of its users."""

from __future__ import annotations

import configparser
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from localcloud.files import write_secret
from localcloud.oci.authentication import Caller, Credential, Credentials, key_fingerprint
from localcloud.oci.ocids import fixed_ocid, new_ocid
from localcloud.oci.tenancy_store import StateStore, StoredResource
from localcloud.server import http
from localcloud.server.http import Json

REGION = "us-ashburn-1"
REGION_KEY = "iad"
NAMESPACE = "trainyardlocal"
NAME = "trainyard-local"
TENANCY = fixed_ocid("tenancy", NAME)
COMPARTMENT = fixed_ocid("compartment", "training")
COMPARTMENT_NAME = "training"
ADMINISTRATORS = "Administrators"
# The SDK warns about key files without this last line.
_LABEL = b"OCI_API_KEY\n"
AVAILABILITY_DOMAINS = ("TRYD:US-ASHBURN-AD-1", "TRYD:US-ASHBURN-AD-2", "TRYD:US-ASHBURN-AD-3")
MEMBERSHIP = "user-group-membership"


@dataclass(frozen=True)
class User:
    profile: str
    groups: tuple[str, ...]

    @property
    def id(self) -> str:
        return fixed_ocid("user", self.profile)


def tenancy_facts() -> dict[str, str]:
    """The facts of the tenancy in the cloud's marker."""
    return {"region": REGION, "tenancy": TENANCY, "compartment": COMPARTMENT, "namespace": NAMESPACE}


USERS = (User("deployer", (ADMINISTRATORS,)), User("user", ("scientists",)))
GROUPS = tuple(dict.fromkeys(group for user in USERS for group in user.groups))


def load_credentials(
    home: Path, uploaded: Callable[[str], Credential | None], current: Callable[[Caller], Caller | None]
) -> Credentials:
    """Loads the tenancy's keys, and writes the config file of OCI's clients. The first start generates the keys."""
    names = (*(user.profile for user in USERS), "issuer")
    (home / "keys").mkdir(mode=0o700, exist_ok=True)
    with ThreadPoolExecutor() as pool:  # making a key takes a while, and releases the GIL
        keys = dict(zip(names, pool.map(partial(_user_key, home), names), strict=True))
    users = {}
    for user in USERS:
        public = keys[user.profile].public_key()
        principal = Caller(user.id, user.profile, TENANCY)
        users[f"{TENANCY}/{user.id}/{key_fingerprint(public)}"] = Credential(principal, public)
    config = configparser.ConfigParser()
    for user in USERS:
        profile = {
            "user": user.id,
            "fingerprint": key_fingerprint(keys[user.profile].public_key()),
            "key_file": str(_key_path(home, user.profile).resolve()),
            "tenancy": TENANCY,
            "region": REGION,
        }
        config[user.profile] = profile
        if user is USERS[0]:
            config["DEFAULT"] = profile
    draft = home / f"config.{os.getpid()}.new"
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        config.write(file)
    draft.replace(home / "config")
    return Credentials(users, keys["issuer"], uploaded, current)


def load_private_key(path: Path) -> rsa.RSAPrivateKey:
    # The cloud made these keys itself: checking each would take 40 ms of processor time at every start.
    key = serialization.load_pem_private_key(path.read_bytes(), password=None, unsafe_skip_rsa_key_validation=True)
    if not isinstance(key, rsa.RSAPrivateKey):
        raise TypeError(f"{path} is not an RSA key")
    return key


def private_pem(key: rsa.RSAPrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _key_path(home: Path, name: str) -> Path:
    return home / "keys" / f"{name}.pem"


def _user_key(home: Path, name: str) -> rsa.RSAPrivateKey:
    path = _key_path(home, name)
    if not path.exists():
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        write_secret(path, private_pem(key) + _LABEL)
    return load_private_key(path)


def add_membership(store: StateStore, user: str, group: str, identifier: str = "") -> StoredResource:
    identifier = identifier or new_ocid("groupmembership", "")
    body: Json = {
        "id": identifier,
        "compartmentId": TENANCY,
        "userId": user,
        "groupId": group,
        "timeCreated": http.format_rfc3339(http.current_moment()),
    }
    return store.add(StoredResource(identifier, MEMBERSHIP, TENANCY, user, "ACTIVE", body, parent=group))


def groups_of_user(store: StateStore, user: str) -> list[StoredResource]:
    """The groups that a user is in."""
    groups = (store.get(row.parent) for row in store.live(MEMBERSHIP, name=user))
    return [group for group in groups if group and group.live]
