# SPDX-License-Identifier: Apache-2.0
"""The user data of an instance as a plan for its boot: what cloud-init would do, as plain values."""

from __future__ import annotations

import base64
import gzip
import zlib
from collections.abc import Mapping
from typing import Any

# EC2 takes 16 KiB. Packed text may become larger, but not as large as it likes.
_LONGEST = 1 << 20
_CONFIG, _SCRIPT = b"#cloud-config", b"#!"
# The keys that are carried out, or that have a note of their own.
_CARRIED_OUT = {"write_files", "bootcmd", "runcmd", "packages"}
_PACKED = ("gz", "gzip", "gz+base64", "gzip+base64", "gz+b64", "gzip+b64")
_ENCODED = ("b64", "base64", *(name for name in _PACKED if "+" in name))


def boot_plan(user_data: bytes) -> Mapping[str, Any]:
    """What a machine does at its first boot. `notes` say what it does not do, and why."""
    empty: dict[str, Any] = {"write_files": [], "bootcmd": [], "runcmd": [], "notes": []}
    try:
        content = _unpacked(user_data) if user_data[:2] == b"\x1f\x8b" else user_data
    except (OSError, EOFError, zlib.error):
        return {**empty, "notes": ["the user data is packed in a way that cannot be unpacked"]}
    if not content.strip():
        return empty
    if content.startswith(_SCRIPT):
        file = {"path": "/var/lib/cloud/instance/script", "permissions": 0o700, "append": False}
        file["content"] = base64.b64encode(content).decode()
        return {**empty, "write_files": [file], "runcmd": [["/var/lib/cloud/instance/script"]]}
    if not content.startswith(_CONFIG):
        return {**empty, "notes": ["the user data is neither cloud-config nor a script: nothing of it is carried out"]}
    return {**empty, **_of_config(content)}


def _of_config(content: bytes) -> Mapping[str, Any]:
    import yaml

    try:
        # "The same again" makes of a short text an endless one.
        if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(content, Loader=yaml.CSafeLoader)):
            return {"notes": ["the user data has aliases of YAML (`*name`): nothing of it is carried out here"]}
        config = yaml.load(content, Loader=yaml.CSafeLoader)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        return {"notes": [f"the user data is not YAML: {' '.join(str(error).split())[:300]}"]}
    if not isinstance(config, dict):
        return {"notes": ["the user data is cloud-config without keys"]}
    notes = [f"{key}: not carried out here" for key in sorted(map(str, config)) if key not in _CARRIED_OUT]
    if packages := config.get("packages"):
        notes.append(f"packages, noted and not installed: {packages}")
    plan: dict[str, Any] = {"notes": notes, "write_files": []}
    for key in ("bootcmd", "runcmd"):
        plan[key] = [_command(item) for item in _list(config.get(key))]
    for number, item in enumerate(_list(config.get("write_files"))):
        try:
            plan["write_files"].append(_file(item))
        except (KeyError, TypeError, ValueError, OSError, zlib.error) as error:
            notes.append(f"write_files, number {number + 1}: {error!r}")
    return plan


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _command(item: Any) -> str | list[str]:
    """A list is a command, a text is a line of a shell."""
    return [str(word) for word in item] if isinstance(item, list) and item else str(item)


def _file(item: Mapping[str, Any]) -> Mapping[str, Any]:
    encoding, text = str(item.get("encoding") or ""), item.get("content") or ""
    content = text if isinstance(text, bytes) else str(text).encode()
    if encoding in _ENCODED:
        content = base64.b64decode(content)
    if encoding in _PACKED:
        content = _unpacked(content)
    permissions = item.get("permissions")
    number = int(permissions, 8) if isinstance(permissions, str) else permissions
    return {
        "path": str(item["path"]), "append": bool(item.get("append")), "permissions": int(number or 0) & 0o7777,
        "content": base64.b64encode(content).decode(),
    }  # fmt: skip


def _unpacked(content: bytes) -> bytes:
    import io

    with gzip.open(io.BytesIO(content)) as opened:
        return opened.read(_LONGEST)
