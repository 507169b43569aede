# SPDX-License-Identifier: Apache-2.0
"""The import contracts of pyproject.toml, for any platform: `{platform}` in them stands for the home of each row of
catalog/platforms.toml. A home that does not exist is left out, because a platform need not have all three."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from importlinter.contracts.forbidden import ForbiddenContract
from importlinter.contracts.layers import LayersContract
from importlinter.contracts.protected import ProtectedContract
from importlinter.domain.contract import Contract

from catalog.platforms import platform_folder, platforms

ROOT = Path(__file__).resolve().parents[1]
_ANY = "{platform}"


def modules_of_platforms(pattern: str) -> list[str]:
    """`components.{platform}` as the modules that exist. A text without `{platform}` stays as it is."""
    if _ANY not in pattern:
        return [pattern]
    # The home on nodes has the platform's own name, the others that of its folder.
    homes = dict.fromkeys(home for name in platforms() for home in (platform_folder(name), name.replace("-", "_")))
    names = [pattern.replace(_ANY, home) for home in homes]
    files = {name: ROOT.joinpath(*name.split(".")) for name in names}
    return [name for name, file in files.items() if file.is_dir() or file.with_suffix(".py").is_file()]


def with_platforms(contract: dict[str, Any]) -> dict[str, Any]:
    """The options of a contract, with the modules of all platforms. Those of one layer are independent."""
    whole = dict(contract)
    for option, value in contract.items():
        if option == "layers":
            whole[option] = [" | ".join(modules_of_platforms(layer)) for layer in value]
        elif isinstance(value, list):
            whole[option] = [module for pattern in value for module in modules_of_platforms(pattern)]
    return whole


class _ForEveryPlatform(Contract):
    def __init__(self, name: str, session_options: dict[str, Any], contract_options: dict[str, Any]) -> None:
        super().__init__(name, session_options, with_platforms(contract_options))


class PlatformLayers(_ForEveryPlatform, LayersContract):
    pass


class PlatformForbidden(_ForEveryPlatform, ForbiddenContract):
    pass


class PlatformProtected(_ForEveryPlatform, ProtectedContract):
    pass
