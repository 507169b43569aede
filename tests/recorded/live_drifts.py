# SPDX-License-Identifier: Apache-2.0
"""Recorded drifts from calls on: a local cloud's answers to the clients of `trainyard drift`, after drawn changes.

`live/PLATFORM` has the state of a stack, its stack file, `answers.json` with the answers of an unchanged cloud, and for
each change a file with the answers that differ and with the drift that was found.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from difflib import unified_diff
from itertools import groupby
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from catalog.platforms import platform_in
from localcloud.aws.account import load_keys
from localcloud.control import Cloud
from tests.recorded.cloud_answers import key_of, serving
from trainyard.cli.drift import drift_json
from trainyard.cli.run_selection import config_of, where_of
from trainyard.drift.declared import of_export, with_names
from trainyard.drift.find_drift import find_drift

LIVE = Path(__file__).parent / "live"
_PROFILES = ("DEFAULT", "deployer")


def find_live_drift(cloud: Cloud, file: Path, state: str) -> dict[str, Any]:
    """What `trainyard drift` finds in this cloud, for a stack with this state."""
    stack, config = file.stem.removeprefix("Pulumi."), config_of(file)
    declared = with_names(of_export(state, stack, platform_in(config)), config)
    return drift_json(find_drift(declared, where_of(file, cloud, None, None)))


def live_changes() -> list[str]:
    """The recorded changes, such as `oci/03.json`."""
    return sorted(str(file.relative_to(LIVE)) for file in LIVE.glob("*/[0-9]*.json"))


def live_differences(names: Iterable[str], home: Path) -> list[str]:
    """The differences from the recorded drifts as diffs. Empty if every byte is the same."""
    found = []
    for name, drift in replayed(names, home).items():
        recorded = json.loads((LIVE / name).read_text("utf-8"))["drift"]
        before, now = (json.dumps(one, indent=1, sort_keys=True).splitlines() for one in (recorded, drift))
        found += ["\n".join(unified_diff(before, now, f"recorded/{name}", "now"))] if before != now else []
    return found


def renew_live(home: Path) -> None:
    """Writes the drifts that the recorded answers have now. The answers stay as they are."""
    for name, drift in replayed(live_changes(), home).items():
        write_json(LIVE / name, {**json.loads((LIVE / name).read_text("utf-8")), "drift": drift})


def write_json(file: Path, content: Any) -> None:
    file.write_text(json.dumps(content, indent=1, sort_keys=True) + "\n", "utf-8")


def replayed(names: Iterable[str], home: Path) -> dict[str, dict[str, Any]]:
    """The drift of each of these changes, such as `oci/03.json`."""
    by_platform = groupby(sorted(names), key=lambda name: name.partition("/")[0])
    found: dict[str, dict[str, Any]] = {}
    for platform, of_platform in by_platform:
        found |= _replay(LIVE / platform, list(of_platform), home / platform)
    return found


def _replay(folder: Path, names: Sequence[str], home: Path) -> dict[str, dict[str, Any]]:
    """The drift of each change of a platform."""
    base, facts = (json.loads((folder / name).read_text("utf-8")) for name in ("answers.json", "cloud.json"))
    (file,) = folder.glob("Pulumi.*.yaml")
    state = (folder / "state.json").read_text("utf-8")
    _write_credentials(home, facts)
    current: dict[str, Any] = {}

    def answer(handler: Any, body: bytes) -> Mapping[str, Any]:
        key = key_of(handler.command, handler.path, body, handler.headers.get("X-Amz-Target", ""))
        found: Mapping[str, Any] = current.get(key) or base.get(key) or _not_recorded(key)
        return found

    found = {}
    with serving(answer) as port:
        places = {name: facts[name] for name in ("tenancy", "compartment", "namespace", "region")}
        cloud = Cloud(home, 0, f"http://127.0.0.1:{port}", **places)
        for name in names:
            current.clear()
            current.update(json.loads((LIVE / name).read_text("utf-8"))["answers"])
            found[name] = find_live_drift(cloud, file, state)
    return found


def _not_recorded(key: str) -> Mapping[str, Any]:
    return {"status": 400, "headers": {"content-type": "application/json"},
            "json": {"code": "NotRecorded", "message": f"not in the recording: {key}"}}  # fmt: skip


def _write_credentials(home: Path, facts: Mapping[str, str]) -> None:
    """Credentials for the recorded users. Nobody checks their signatures."""
    home.mkdir(parents=True)
    load_keys(home)
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
    (home / "key.pem").write_bytes(pem)
    rows = {name: facts[name] for name in ("user", "fingerprint", "tenancy", "region")}
    lines = "\n".join(f"{name}={value}" for name, value in {**rows, "key_file": str(home / "key.pem")}.items())
    (home / "config").write_text("\n".join(f"[{profile}]\n{lines}\n" for profile in _PROFILES))
