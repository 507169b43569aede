# SPDX-License-Identifier: Apache-2.0
"""Checks of the files with the caller's credentials, without the SDK and without network: who may read them, whether
key and fingerprint belong together, and when a token ends."""

from __future__ import annotations

import base64
import errno
import json
import os
import time
from collections.abc import Iterator, Mapping
from functools import partial
from hashlib import md5
from pathlib import Path

from components.oci.client.session import Session
from components.platform.config_files import ConfigProblemError, read_config_section
from components.platform.prerequisites import Problem, check_private_file

_NEW = "`oci setup config` makes one, or name another file in OCI_CONFIG_FILE"
_TOKEN, _KEY = "security_token_file", "key_file"
_REQUIRED = ("tenancy", "user", "fingerprint", _KEY)
# More than anybody writes.
_LARGEST = 1 << 20
_unusable = partial(Problem, stops=True)
# The SDK's own defaults, without its import.
_FILE, _PROFILE = "~/.oci/config", "DEFAULT"


def check_key_files(session: Session, is_needed: bool) -> Iterator[Problem]:
    """`is_needed`: a missing file is a problem."""
    file, name = Path(session.config_file or _FILE).expanduser(), session.profile or _PROFILE
    if not is_needed and not os.path.lexists(file):
        return
    yield from check_private_file(file, "the configuration of OCI's clients", _NEW)
    if not file.is_file() or not os.access(file, os.R_OK):
        return  # said already
    try:
        profile = read_config_section(file, name, is_named=name != _PROFILE)
    except ConfigProblemError as error:
        yield _unusable(str(error), "Correct it, or use --profile; " + _NEW)
        return
    wanted = ("tenancy", _KEY) if _TOKEN in profile else () if "authentication_type" in profile else _REQUIRED
    missing = [key for key in wanted if not profile.get(key) and not (key == _KEY and profile.get("key_content"))]
    if missing:
        yield _unusable(f"the profile `{name}` of {file} has no `{missing[0]}`", "Add it; " + _NEW)
        return
    if profile.get(_KEY):
        yield from _check_key(Path(profile[_KEY]).expanduser(), profile, name)
    if _TOKEN in profile:
        yield from _check_token(Path(profile[_TOKEN]).expanduser(), name)


def _read_small_file(path: Path) -> bytes:
    """Only of a file: a pipe may have no writer. Raises OSError."""
    if not path.is_file():
        raise OSError(errno.EINVAL, "it is not a file")
    with path.open("rb") as opened:
        return opened.read(_LARGEST)


def _check_key(path: Path, profile: Mapping[str, str], name: str) -> Iterator[Problem]:
    found = list(check_private_file(path, "the private key", "Copy it there, or correct `key_file`; " + _NEW))
    yield from found
    try:
        text = _read_small_file(path)
    except OSError:
        return
    # Imported here, because it takes a while.
    from cryptography.hazmat.primitives import serialization

    phrase = profile.get("pass_phrase")
    try:
        key = serialization.load_pem_private_key(
            text, phrase.encode() if phrase else None, unsafe_skip_rsa_key_validation=True
        )
    except TypeError:  # encrypted, and there is no passphrase, or the reverse, which the SDK takes
        if not phrase:
            remedy = "Add `pass_phrase` to the profile, or use a key without one"
            yield _unusable(f"the private key {path} is encrypted, and the profile `{name}` has no passphrase", remedy)
        return
    except ValueError:
        remedy = "Name the file that begins with BEGIN PRIVATE KEY, or correct `pass_phrase`"
        yield _unusable(f"{path} is not a private key that the profile `{name}` can open", remedy)
        return
    public = key.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )  # fmt: skip
    digest = md5(public, usedforsecurity=False).hexdigest()
    fingerprint = ":".join(digest[at : at + 2] for at in range(0, len(digest), 2))
    if _TOKEN not in profile and profile.get("fingerprint", "").lower() != fingerprint:
        yield _unusable(
            f"the private key {path} does not belong to the fingerprint of the profile `{name}`",
            f"Its own is {fingerprint}: write that, if the key is uploaded (Console: your profile, API keys), or "
            "correct `key_file`",
        )


def _check_token(path: Path, name: str) -> Iterator[Problem]:
    remedy = f"`oci session authenticate --profile-name {name}` gets a new one"
    try:
        claims = _read_small_file(path).decode().strip().split(".")[1]
        ends = json.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))["exp"]
        late = time.time() - float(ends)
    except OSError as error:
        yield _unusable(f"the token of the profile `{name}` cannot be read: {path}: {error.strerror}", remedy)
    except (ValueError, IndexError, KeyError, TypeError):
        yield _unusable(f"the token of the profile `{name}` is not a session token: {path}", remedy)
    else:
        if late > 0:
            yield _unusable(f"the token of the profile `{name}` expired {late / 60:.0f} minutes ago", remedy)
