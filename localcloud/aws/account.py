# SPDX-License-Identifier: Apache-2.0
"""The account of the local AWS, its users, and the variables that lead AWS's clients to it. It does not import moto, so
that it loads quickly."""

from __future__ import annotations

import configparser
import io
import secrets
import string
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from localcloud.files import write_secret

# The number in the examples of AWS's documentation. No real account has it.
ACCOUNT = "123456789012"
REGION = "us-east-1"
ADMINISTRATORS = "administrators"
_FOLDER = "aws"
_ID_ALPHABET = string.ascii_uppercase + "234567"
_SECRET_ALPHABET = string.ascii_letters + string.digits + "+/"


def account_facts() -> dict[str, str]:
    """The account's entries in the cloud's marker file."""
    return {"awsAccount": ACCOUNT, "awsRegion": REGION}


@dataclass(frozen=True)
class Person:
    """A user of the account. `managed`: the ARNs of the managed policies of its group."""

    profile: str
    group: str
    managed: tuple[str, ...] = ()


PEOPLE = (
    Person("deployer", ADMINISTRATORS, ("arn:aws:iam::aws:policy/AdministratorAccess",)),
    Person("user", "scientists"),
)
# The groups of a new account.
GROUPS = frozenset(person.group for person in PEOPLE)


@dataclass(frozen=True)
class AccessKeyPair:
    id: str
    secret: str


def aws_folder(home: Path) -> Path:
    return home / _FOLDER


def config_file(home: Path) -> Path:
    return aws_folder(home) / "config"


def credentials_file(home: Path) -> Path:
    return aws_folder(home) / "credentials"


def load_keys(home: Path) -> Mapping[str, AccessKeyPair]:
    """The access key of each user, by profile. Creates missing keys, and writes the files that AWS's clients read."""
    aws_folder(home).mkdir(mode=0o700, exist_ok=True)
    saved = configparser.ConfigParser(interpolation=None)
    saved.read(credentials_file(home))
    keys = {}
    for person in PEOPLE:
        identifier = "AKIA" + "".join(secrets.choice(_ID_ALPHABET) for _ in range(16))
        secret = "".join(secrets.choice(_SECRET_ALPHABET) for _ in range(40))
        if saved.has_section(person.profile):
            section = saved[person.profile]
            identifier, secret = section["aws_access_key_id"], section["aws_secret_access_key"]
        keys[person.profile] = AccessKeyPair(identifier, secret)
    write_sections(credentials_file(home), {
        name: {"aws_access_key_id": key.id, "aws_secret_access_key": key.secret} for name, key in keys.items()
    })  # fmt: skip
    write_sections(config_file(home), {f"profile {name}": {"region": REGION, "output": "json"} for name in keys})
    return keys


def write_sections(path: Path, sections: Mapping[str, Mapping[str, str]]) -> None:
    """Writes a configuration file of AWS's clients, which only its owner can read."""
    config = configparser.ConfigParser(interpolation=None)
    config.read_dict(sections)
    text = io.StringIO()
    config.write(text)
    write_secret(path, text.getvalue().encode())


def aws_client_variables(home: Path, endpoint: str, profile: str) -> dict[str, str]:
    """The environment variables that lead AWS's clients to this cloud. With them, clients do not use `~/.aws`."""
    return {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_CONFIG_FILE": str(config_file(home)),
        "AWS_SHARED_CREDENTIALS_FILE": str(credentials_file(home)),
        "AWS_PROFILE": profile,
        # A user's machine has no metadata service, so clients must not wait for one.
        "AWS_EC2_METADATA_DISABLED": "true",
    }


def profile_of_caller(home: Path, environment: Mapping[str, str]) -> str | None:
    """The value of AWS_PROFILE, if the environment names this cloud's credentials file. Otherwise None."""
    ours = environment.get("AWS_SHARED_CREDENTIALS_FILE") == str(credentials_file(home))
    return environment.get("AWS_PROFILE") if ours else None
