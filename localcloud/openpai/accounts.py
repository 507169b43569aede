# SPDX-License-Identifier: Apache-2.0
"""The users of the local OpenPAI, and the file with their tokens for clients: `openpai.json` in the cloud's folder."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from localcloud.files import write_secret

_FILE = "openpai.json"


@dataclass(frozen=True)
class Person:
    """A user of the cluster, and the virtual clusters that the user may use."""

    name: str
    admin: bool
    virtual_clusters: tuple[str, ...]


PEOPLE = (Person("deployer", True, ("default", "reserved")), Person("user", False, ("default",)))


@dataclass(frozen=True)
class Accounts:
    """The accounts for clients: the cluster's address, and a token and a password for each user name."""

    uri: str
    tokens: Mapping[str, str] = field(default_factory=dict)
    passwords: Mapping[str, str] = field(default_factory=dict)


def find_person(name: str) -> Person | None:
    return next((each for each in PEOPLE if each.name == name), None)


def openpai_folder(home: Path) -> Path:
    return home / "openpai"


def accounts_file(home: Path) -> Path:
    return home / _FILE


def read_accounts(home: Path) -> Accounts:
    """The accounts of this cloud. Its first start creates them."""
    content = json.loads(accounts_file(home).read_text())
    return Accounts(content["uri"], content["tokens"], content["passwords"])


def write_accounts(home: Path, accounts: Accounts) -> None:
    content = {"uri": accounts.uri, "tokens": dict(accounts.tokens), "passwords": dict(accounts.passwords)}
    write_secret(accounts_file(home), (json.dumps(content, indent=2) + "\n").encode())


def new_password() -> str:
    return secrets.token_urlsafe(18)


def account_variables(home: Path, profile: str) -> dict[str, str]:
    """The variables for OpenPAI's clients: this cloud's address, and a user with a token."""
    try:
        accounts = read_accounts(home)
        return {"OPENPAI_URI": accounts.uri, "OPENPAI_USER": profile, "OPENPAI_TOKEN": accounts.tokens[profile]}
    except (OSError, ValueError, KeyError):  # a cloud of an earlier release
        return {}
