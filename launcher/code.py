# SPDX-License-Identifier: Apache-2.0
"""Code from git: cloned on each node before anything starts, where the stack says so and the image has none."""

from __future__ import annotations

import base64
import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from launcher.document import LaunchError, MissingError
from launcher.oci.connection import BucketError, Connection
from launcher.oci.principal import Signer, secrets_endpoint
from launcher.say import Voice

# The names under which images of ADS are told the same.
URL, BRANCH, COMMIT, SECRET = (f"OCI__RUNTIME_{name}" for name in ("URI", "GIT_BRANCH", "GIT_COMMIT", "GIT_SECRET_ID"))
_SECONDS = 600
_KEY = "repository-key"


def fetch(environment: Mapping[str, str], root: Path, say: Voice) -> str:
    """The folder with the code, empty where none comes from git."""
    url = environment.get(URL)
    if not url:
        return ""
    target = root / "code"
    if target.exists():
        return str(target)
    told = {**environment, "GIT_TERMINAL_PROMPT": "0"}
    secret = environment.get(SECRET)
    if secret:
        told["GIT_SSH_COMMAND"] = _ssh(root, _secret(environment, secret, say))
    branch = ["--branch", environment[BRANCH]] if environment.get(BRANCH) else []
    try:
        _git(["clone", "--quiet", *branch, "--", url, str(target)], told)
    finally:
        (root / _KEY).unlink(missing_ok=True)
    if environment.get(COMMIT):
        _git(["-C", str(target), "checkout", "--quiet", "--detach", environment[COMMIT], "--"], told)
    say(f"code of {url} cloned" + (f" at {environment[COMMIT][:12]}" if environment.get(COMMIT) else ""))
    return str(target)


def _git(words: list[str], environment: Mapping[str, str]) -> None:
    try:
        done = subprocess.run(
            ["git", *words], env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, timeout=_SECONDS, check=False,
        )  # fmt: skip
    except FileNotFoundError:
        raise LaunchError("the code comes from git, and this image has no git: add it, or use `code: FOLDER`") from None
    except subprocess.TimeoutExpired:
        raise MissingError(f"git {words[0]} took longer than {_SECONDS} s: see whether the node may reach it") from None
    if done.returncode:
        said = done.stdout.decode(errors="replace").strip().splitlines()
        raise MissingError(f"the code cannot be had from git: {said[-1] if said else f'code {done.returncode}'}")


def _secret(environment: Mapping[str, str], ocid: str, say: Voice) -> bytes:
    connection = Connection(secrets_endpoint(environment), Signer(environment), say)
    try:
        bundle = json.loads(connection.call("GET", f"/20190301/secretbundles/{ocid}").content)
        return base64.b64decode(bundle["secretBundleContent"]["content"])
    except (BucketError, ValueError, KeyError) as error:
        raise MissingError(f"the secret that opens the code's repository cannot be read: {error}") from None
    finally:
        connection.close()


def _ssh(root: Path, key: bytes) -> str:
    file = root / _KEY
    number = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(number, "wb") as opened:
        opened.write(key.rstrip() + b"\n")
    return f"ssh -i {file} -o IdentitiesOnly=yes -o StrictHostKeyChecking=accept-new -o BatchMode=yes"
