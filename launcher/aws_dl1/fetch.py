#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Signs requests to AWS as this machine's role, and fetches the launcher.

This file stands alone: user data brings it to a machine that has nothing else of ours. It has to be small, because
user data is. The launcher signs with it, too. It runs on Python 3.7, so a machine can say that its own is too old.
"""

from __future__ import annotations

import calendar
import hashlib
import hmac
import http.client
import json
import os
import shutil
import subprocess
import sys
import tarfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any
from urllib.parse import parse_qsl, quote, urlsplit

SETTINGS, PROGRAMS, PROGRAM = "/etc/trainyard/node.json", "/opt/trainyard/launchers", "launcher.aws_dl1.machine"
UNSIGNED = "UNSIGNED-PAYLOAD"
_METADATA = "http://169.254.169.254"
_ROLE = "/latest/meta-data/iam/security-credentials/"
_TOKEN, _TOKEN_SECONDS = "x-aws-ec2-metadata-token", 21600
# AWS renews a role's credentials long before they end.
_RENEW_SECONDS = 300
# Access that was just given comes into force some minutes later.
_PATIENCE, _LONGEST_PAUSE = 300.0, 15.0


class AwsError(Exception):
    """A refusal, with AWS's own error code. Status 0: no answer."""

    def __init__(self, status: int, name: str, text: str) -> None:
        super().__init__(f"{status} {name}: {text}" if name else f"{status} {text}")
        self.status, self.name = status, name


@dataclass(frozen=True)
class Credentials:
    """`until`: when they expire, in seconds since 1970; 0: never."""

    key: str
    secret: str
    token: str = ""
    until: float = 0.0


class Metadata:
    """The instance's metadata service, version 2 only: each request carries a token."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._base = urlsplit(environment.get("AWS_EC2_METADATA_SERVICE_ENDPOINT") or _METADATA)
        self._token, self._until = "", 0.0

    def get(self, path: str) -> str | None:
        """The content at a path; None if there is none."""
        for _ in range(2):
            if time.monotonic() >= self._until:
                seconds = str(_TOKEN_SECONDS)
                status, self._token = self._ask("PUT", "/latest/api/token", {f"{_TOKEN}-ttl-seconds": seconds})
                if status != 200:
                    raise AwsError(status, "", "the metadata service gives no token")
                self._until = time.monotonic() + _TOKEN_SECONDS / 2
            status, text = self._ask("GET", path, {_TOKEN: self._token})
            if status != 401:
                break
            self._until = 0.0
        if status not in (200, 404):
            raise AwsError(status, "", f"the metadata service does not say {path}")
        return text if status == 200 else None

    def _ask(self, method: str, path: str, headers: Mapping[str, str]) -> tuple[int, str]:
        connection = http.client.HTTPConnection(self._base.netloc, timeout=5)
        try:
            connection.request(method, self._base.path.rstrip("/") + path, headers=dict(headers))
            answer = connection.getresponse()
            return answer.status, answer.read().decode(errors="replace")
        finally:
            connection.close()


class Identity:
    """Who this program is to AWS: its environment says so, otherwise the role of the instance."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.environment = environment
        self.metadata = Metadata(environment)
        self._kept: Credentials | None = None

    @property
    def region(self) -> str:
        """The region of this machine."""
        named = self.environment.get("AWS_REGION") or self.environment.get("AWS_DEFAULT_REGION")
        return named or self.metadata.get("/latest/meta-data/placement/region") or ""

    def credentials(self) -> Credentials:
        """Credentials that are valid now: they are renewed before they expire."""
        key, secret, token = (
            self.environment.get(name, "")
            for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
        )
        if key and secret:
            return Credentials(key, secret, token)
        if self._kept is None or time.time() >= self._kept.until - _RENEW_SECONDS:
            self._kept = self._of_role()
        return self._kept

    def renew(self) -> None:
        """Forgets credentials that AWS has called expired."""
        self._kept = None

    def _of_role(self) -> Credentials:
        role = (self.metadata.get(_ROLE) or "").strip().partition("\n")[0]
        text = self.metadata.get(_ROLE + quote(role)) if role else None
        if not text:
            raise AwsError(404, "NoRole", "the instance has no role: give it an instance profile")
        answer = json.loads(text)
        until = calendar.timegm(time.strptime(answer["Expiration"], "%Y-%m-%dT%H:%M:%SZ"))
        return Credentials(answer["AccessKeyId"], answer["SecretAccessKey"], answer["Token"], until)


def signed(
    method: str, host: str, target: str, headers: Mapping[str, str], digest: str, service: str, region: str,
    credentials: Credentials, now: float,
) -> dict[str, str]:  # fmt: skip
    """The headers with AWS's signature, version 4. `digest` is that of the body, as hexadecimal SHA-256."""
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now))
    every = {name.lower(): value.strip() for name, value in headers.items()}
    every.update({"host": host, "x-amz-date": stamp, "x-amz-content-sha256": digest})
    if credentials.token:
        every["x-amz-security-token"] = credentials.token
    path, _, query = target.partition("?")
    pairs = sorted((_encoded(key), _encoded(value)) for key, value in parse_qsl(query, keep_blank_values=True))
    names = ";".join(sorted(every))
    asked = "\n".join((
        method, path, "&".join(f"{key}={value}" for key, value in pairs),
        *(f"{name}:{every[name]}" for name in sorted(every)), "", names, digest,
    ))  # fmt: skip
    scope = f"{stamp[:8]}/{region}/{service}/aws4_request"
    text = f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{hashlib.sha256(asked.encode()).hexdigest()}"
    key = f"AWS4{credentials.secret}".encode()
    for word in (stamp[:8], region, service, "aws4_request"):
        key = hmac.new(key, word.encode(), hashlib.sha256).digest()
    signature = hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
    name = f"AWS4-HMAC-SHA256 Credential={credentials.key}/{scope}"
    return {**every, "authorization": f"{name}, SignedHeaders={names}, Signature={signature}"}


def _encoded(text: str) -> str:
    return quote(text, safe="-_.~")


def endpoint(environment: Mapping[str, str], service: str, region: str) -> str:
    """The endpoint of a service: AWS's own variables may name another one."""
    named = environment.get(f"AWS_ENDPOINT_URL_{service.upper().replace(' ', '_')}")
    named = named or environment.get("AWS_ENDPOINT_URL")
    return named.rstrip("/") if named else f"https://{service}.{region}.amazonaws.com"


def bucket_place(environment: Mapping[str, str], bucket: str, region: str) -> tuple[str, str]:
    """A bucket's endpoint, and what its objects' paths begin with. A name with dots fits no certificate of AWS."""
    base = endpoint(environment, "s3", region)
    if "." in bucket or not base.endswith(f"s3.{region}.amazonaws.com"):
        return base, f"/{bucket}"
    return base.replace("://", f"://{bucket}."), ""


def call(
    identity: Identity, service: str, method: str, url: str, headers: Mapping[str, str], body: bytes = b"",
    into: IO[bytes] | None = None,
) -> bytes:  # fmt: skip
    """One request; its answer, or AwsError."""
    parts = urlsplit(url)
    target = parts.path + (f"?{parts.query}" if parts.query else "")
    digest = hashlib.sha256(body).hexdigest()
    named = signed(
        method, parts.netloc, target, headers, digest, service, identity.region, identity.credentials(), time.time()
    )
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = kind(parts.netloc, timeout=30)
    try:
        connection.request(method, target, body=body or None, headers=named)
        answer = connection.getresponse()
        if answer.status >= 300:
            raise _refusal(answer.status, answer.read(65536))
        if into is None:
            return answer.read()
        shutil.copyfileobj(answer, into)
        return b""
    finally:
        connection.close()


def _refusal(status: int, content: bytes) -> AwsError:
    """Reads an error of AWS: S3 writes XML, other services JSON."""
    text = content.decode(errors="replace")
    try:
        answer: Any = json.loads(text)
        name, reason = answer["__type"].rpartition("#")[2], answer.get("message") or answer.get("Message")
        return AwsError(status, name, str(reason))
    except (ValueError, KeyError, TypeError, AttributeError):
        name, reason = (text.partition(f"<{tag}>")[2].partition(f"</{tag}>")[0] for tag in ("Code", "Message"))
        return AwsError(status, name, reason or "refused")


def get_object(identity: Identity, bucket: str, key: str, path: Path) -> None:
    """Writes an object to a file, whole or not at all."""
    base, prefix = bucket_place(identity.environment, bucket, identity.region)
    draft = path.with_name(path.name + ".part")
    with draft.open("wb") as file:
        call(identity, "s3", "GET", f"{base}{prefix}/{quote(key)}", {}, into=file)
    draft.replace(path)


def unpacked(identity: Identity, bucket: str, key: str, place: Path) -> Path:
    """The folder of an archive, which is fetched unless it is there already. An archive's name is its digest."""
    folder = place / key.rpartition("/")[2].partition(".tar")[0]
    if folder.is_dir():
        return folder
    place.mkdir(parents=True, exist_ok=True)
    draft = place / f".{folder.name}-{os.getpid()}"
    draft.mkdir()
    try:
        archive = draft / "archive.tar.gz"
        get_object(identity, bucket, key, archive)
        with tarfile.open(archive) as opened:
            for member in opened:
                _extract(opened, member, draft / "content")
        (draft / "content").rename(folder)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return folder


def _extract(opened: tarfile.TarFile, member: tarfile.TarInfo, content: Path) -> None:
    """Extracts only files and folders, and nothing outside of `content`."""
    target = content / member.name.lstrip("/")
    if ".." in target.parts:
        return
    if member.isdir():
        target.mkdir(parents=True, exist_ok=True)
    source = opened.extractfile(member) if member.isfile() else None
    if source is not None:
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("wb") as file:
            shutil.copyfileobj(source, file)
        target.chmod(0o755 if member.mode & 0o100 else 0o644)
        os.utime(target, (member.mtime, member.mtime))


def main(words: list[str]) -> int:
    """Becomes the machine's program. If it cannot, it reports why, in the bucket too, and retries."""
    root = os.environ.get("TRAINYARD_MACHINE_ROOT", "")
    settings = json.loads(Path(root + SETTINGS).read_text("utf-8"))
    identity = Identity({"AWS_REGION": settings["region"], **os.environ})
    idle, serves = (settings["stopWhenIdleMinutes"] or 0) * 60, words == ["serve"]
    began, pause = time.monotonic(), 1.0
    while True:
        try:
            place, certain = unpacked(identity, settings["bucket"], settings["launcher"], Path(root + PROGRAMS)), True
            problem = flaw(str(place)) if serves else ""
            if not problem:
                os.execv(sys.executable, program_words(str(place), *words))
        except Exception as error:
            problem = f"the launcher {settings['launcher']} cannot be fetched: {error!a}"
            certain = getattr(error, "status", 0) == 404
        print(f"unfit: {problem}", file=sys.stderr, flush=True)
        waited = time.monotonic() - began
        if not serves and waited > _PATIENCE:
            return 75
        if serves and (certain or waited > _PATIENCE):
            _report(identity, settings, problem)
        if serves and 0 < idle < waited:
            subprocess.call(["shutdown", "-h", "now"])
        time.sleep(pause)
        pause = min(pause * 2, _LONGEST_PAUSE)


def program_words(place: str, *words: str) -> list[str]:
    """The command of the machine's program. It imports nothing from PYTHONPATH or the current folder."""
    start = f"import runpy, sys; sys.path.insert(0, {place!r}); runpy.run_module({PROGRAM!r}, None, '__main__', True)"
    return [sys.executable, "-I", "-c", start, *words]


def flaw(place: str) -> str:
    """Why the program does not start here; empty if it does. Without arguments it exits with 64."""
    done = subprocess.run(program_words(place), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    last = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
    version = sys.version.partition(" ")[0]
    return "" if done.returncode == 64 else f"the launcher does not start on Python {version}: {last}"


def _report(identity: Identity, settings: Mapping[str, Any], problem: str) -> None:
    """Puts the problem where the program would put its report, for those who wait for this machine."""
    try:
        name, instance = (
            identity.metadata.get(f"/latest/meta-data/{key}") for key in ("tags/instance/node", "instance-id")
        )
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        report = {"instance": instance, "state": "failed", "reason": problem, "at": at}
        base, prefix = bucket_place(identity.environment, settings["bucket"], identity.region)
        key = quote(f".trainyard/clusters/{settings['job']}/nodes/{name}.json")
        call(identity, "s3", "PUT", f"{base}{prefix}/{key}", {}, json.dumps(report).encode())
    except Exception as error:
        print(f"the bucket does not take the report: {error!a}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
