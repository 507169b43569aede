# SPDX-License-Identifier: Apache-2.0
"""Reads the configuration files of clouds' own clients."""

from __future__ import annotations

import configparser
from collections.abc import Mapping
from pathlib import Path

from schemas.name_suggestions import suggest_name

# A configuration file has a few lines for each profile.
_LARGEST = 1_000_000


class ConfigProblemError(Exception):
    """A configuration file cannot be used. The text is for its user, and has no value of the file."""


def read_config_section(file: Path, section: str, is_named: bool) -> Mapping[str, str]:
    """The values of a section. Empty if there is no such file or section, unless somebody named it (`is_named`).

    Reads no key: the file only says where it is. Raises ConfigProblemError.
    """
    parser = configparser.ConfigParser(interpolation=None)
    try:
        exists = file.exists()
        if exists:
            with file.open(encoding="utf-8-sig") as content:
                parser.read_string(content.read(_LARGEST))
    except OSError as error:
        raise ConfigProblemError(f"{file} cannot be read: {error.strerror}") from error
    except (configparser.Error, ValueError) as error:
        # The error of a parser quotes the line, which may be a passphrase.
        line = getattr(error, "lineno", None) or next((number for number, _ in getattr(error, "errors", ())), None)
        raise ConfigProblemError(f"{file}{f':{line}' if line else ''}: this is not a configuration file") from None
    if section not in parser and is_named:
        there = f": {suggest_name(section, parser.sections())}" if parser.sections() else ""
        raise ConfigProblemError(f"{file} {'has no' if exists else 'does not exist, so it has no'} [{section}]{there}")
    return {key: value.strip() for key, value in parser[section].items()} if section in parser else {}
