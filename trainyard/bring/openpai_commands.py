# SPDX-License-Identifier: Apache-2.0
"""The commands of an OpenPAI job, with what its templates name: parameters, secrets and prerequisites. A secret becomes
a variable, whose value nobody but the stack's own `secure:` knows."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from schemas.checks.env_checks import OWNED
from trainyard.bring.notes import CHOICE, LEFT_OUT, SENSELESS, NoteTaker, is_secret_text, note_secret_words
from trainyard.bring.openpai_plugins import commands_around, note_plugins_elsewhere
from trainyard.bring.shell_text import Quote, read_variable, replace_in_shell, replace_secrets
from trainyard.bring.slurm_script import ScriptLine, downloads_in, note_paths
from trainyard.bring.yaml_text import Path, YamlDocument

# `<% $parameters.lr %>`, and the older `$$parameters.lr$$`.
_TEMPLATE = re.compile(
    r"<%\s*\$(?P<what>parameters|secrets|data|script|output)(?P<path>[.\[][^%<>]*?)\s*%>"
    r"|\$\$(?P<old>parameters|secrets)(?P<old_path>\.\w+)\$\$"
)
_STEP = re.compile(r"\.?([^.\[\]]+)|\[(\d+)\]")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# The options with which its runtime starts a command.
STRICT_BASH = "bash -o errexit -o nounset -o pipefail -c"


class OpenPaiCommands:
    """`parameters`: those that programs may read as variables. Others stand in the commands by their values. `fetches`:
    the first line that fetches something from the internet, once the command for other platforms is made."""

    def __init__(self, document: YamlDocument, taker: NoteTaker) -> None:
        self._document, self._taker = document, taker
        self.fetches = 0
        self.parameters: Mapping[str, str] = dict(self._read_parameters())

    def _read_parameters(self) -> Iterator[tuple[str, str]]:
        for key in self._document.table("parameters"):
            text, line = _javascript_text(self._document, "parameters", key), self._document.line("parameters", key)
            owned = next((why for name, why in _OWNED.items() if _is_owned(str(key), name)), "")
            if is_secret_text(str(key), text):
                remedy = "write it with `trainyard secret set`, under `env` of the job"
                self._taker.note(LEFT_OUT, line, f"the parameter `{key}` was left out: it is a secret", remedy)
            elif owned or not _NAME.fullmatch(str(key)) or key == "secure" or "<%" in text:
                why = f"is reserved ({owned})" if owned else "cannot be a variable's name, or has a template"
                message = f"the parameter `{str(key)[:40]}` stands in the commands by its value, because it {why}"
                self._taker.note(CHOICE, line, message, "change it there")
            else:
                yield str(key), text

    def script(self, role: str) -> str:
        """The commands of a role for OpenPAI, which fills in parameters and prerequisites itself."""
        lines = ((self._fill(text, role, line, stays=True), line) for text, line in self._own_commands(role))
        return "\n".join(self._without_secrets(text, line) for text, line in lines)

    def command_of_all(self, roles: Sequence[str]) -> str:
        """One command for the tasks of all roles, without templates."""
        note_plugins_elsewhere(self._document, self._taker)
        commands = {role: list(self._commands_elsewhere(role)) for role in roles}
        lines = [line for own in commands.values() for line in own]
        note_paths(lines, self._taker)
        self.fetches = downloads_in(lines)
        scripts = {role: "\n".join(line.text for line in own) for role, own in commands.items()}
        if len(set(scripts.values())) == 1:
            return f"{STRICT_BASH} {shlex.quote(scripts[roles[0]])}"
        cases = "".join(f"{role})\n{script}\n;;\n" for role, script in scripts.items())
        by_role = f'case "$PAI_CURRENT_TASK_ROLE_NAME" in\n{cases}esac'
        return f"{STRICT_BASH} {shlex.quote(by_role)}"

    def _commands_elsewhere(self, role: str) -> Iterator[ScriptLine]:
        before, after = commands_around(self._document, role)
        for text, line in (*before, *self._own_commands(role), *after):
            yield ScriptLine(line, self._without_secrets(self._fill(text, role, line, stays=False), line))

    def _own_commands(self, role: str) -> Iterator[tuple[str, int]]:
        """The lines of a role with those of the chosen deployment, as the cluster joins them."""
        chosen, document = self._document.text("defaults", "deployment"), self._document
        places: list[Path] = [("taskRoles", role, "commands")]
        for index, item in enumerate(document.items("deployments")):
            if isinstance(item, Mapping) and item.get("name") == chosen:
                around = ("deployments", index, "taskRoles", role)
                places = [(*around, "preCommands"), *places, (*around, "postCommands")]
        for path in places:
            for number, text in enumerate(document.items(*path)):
                if not isinstance(text, str):
                    message = f"a command of {role} is no text"
                    raise self._taker.refuse(SENSELESS, document.line(*path, number), message, "put it into quotes")
                yield text.strip(), document.line(*path, number)
        if not document.items("taskRoles", role, "commands"):
            line = document.line("taskRoles", role)
            raise self._taker.refuse(SENSELESS, line, f"the task role {role[:60]} has no commands", "write them")

    def _fill(self, text: str, role: str, line: int, stays: bool) -> str:
        def filled(match: re.Match[str], quote: Quote) -> str:
            what, steps = match["what"] or match["old"], _template_steps(match["path"] or match["old_path"])
            name = "_".join(map(str, steps))
            if what == "secrets" or (what == "parameters" and self._is_secret(name)):
                return read_variable(self.note_secret(name, line), quote)
            if what == "parameters":
                if stays and name in self.parameters and match["what"]:
                    return match[0]
                value = _javascript_text(self._document, "parameters", *steps)
                known = self._document.at("parameters", *steps) is not None
            else:
                if stays:
                    return match[0]
                index = self._prerequisite(what, self._document.text("taskRoles", role, what))
                known = index is not None and self._document.at("prerequisites", index, *steps) is not None
                value = _javascript_text(self._document, "prerequisites", index or 0, *steps)
            if not known:
                message = f"nothing says `{match[0][:60]}`, so it stays as it is"
                self._taker.note(CHOICE, line, message, "correct its name")
            return value if known else match[0]

        return replace_in_shell(text, _TEMPLATE, filled)

    def _is_secret(self, name: str) -> bool:
        return is_secret_text(name, self._document.text("parameters", name))

    def for_runtime(self, text: str, line: int) -> str:
        """A command that the runtime fills in before variables are set. It sees secrets of a stack in Base64."""

        def filled(match: re.Match[str], quote: Quote) -> str:
            what, steps = match["what"] or match["old"], _template_steps(match["path"] or match["old_path"])
            name = "_".join(map(str, steps))
            if what == "secrets" or (what == "parameters" and self._is_secret(name)):
                return f"$(echo <% $secrets.{self.note_secret(name, line)} %> | base64 -d)"
            if what == "parameters" and name not in self.parameters:
                return _javascript_text(self._document, "parameters", *steps) or match[0]
            return match[0]

        return self._without_secrets(replace_in_shell(text, _TEMPLATE, filled), line)

    def _without_secrets(self, text: str, line: int) -> str:
        text, names = replace_secrets(text)
        note_secret_words(names, line, self._taker)
        return text

    def note_secret(self, name: str, line: int) -> str:
        """The name of the variable that a secret becomes, with a note on its value."""
        is_free = _NAME.fullmatch(name) and not any(_is_owned(name, owned) for owned in _OWNED)
        variable = name if is_free else "SECRET_" + re.sub(r"[^A-Za-z0-9_]", "_", name)
        message = f"the secret `{name[:40]}` was left out: the commands read it as ${variable}"
        remedy = f"write it with `trainyard secret set`, as `{variable}` under `env` of the job"
        self._taker.note(LEFT_OUT, line, message, remedy)
        return variable

    def _prerequisite(self, kind: str, name: str) -> int | None:
        for index, item in enumerate(self._document.items("prerequisites")):
            if isinstance(item, Mapping) and (item.get("type"), item.get("name")) == (kind, name):
                return index
        return None


_OWNED: Mapping[str, str] = {**OWNED, **dict.fromkeys(("PAI_", "FC_", "USER_CMD"), "OpenPAI sets it")}


def _is_owned(name: str, owned: str) -> bool:
    return name.upper() == owned or (owned.endswith("_") and name.upper().startswith(owned))


def _template_steps(path: str) -> list[str | int]:
    return [int(index) if index else name.strip() for name, index in _STEP.findall(path)]


def _javascript_text(document: YamlDocument, *path: str | int) -> str:
    """A value as a cluster fills it in, which reads `yes` as a text and writes 2.0 as 2."""
    value: Any = document.at(*path)
    if isinstance(value, list):
        return ",".join(_javascript_text(document, *path, index) for index in range(len(value)))
    written = document.text(*path)
    if isinstance(value, bool):
        return written.lower() if written.lower() in ("true", "false") else written
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value) if isinstance(value, int | float) else written
