# SPDX-License-Identifier: Apache-2.0
"""What a container of a training job starts: its words as the framework that starts the same, or as one of bash."""

from __future__ import annotations

import itertools
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from trainyard.bring.launch_lines import LaunchLine, find_launch_lines, read_launch_line
from trainyard.bring.notes import is_secret_text
from trainyard.bring.shell_text import replace_secrets, without_braces

_SHELLS = frozenset({"sh", "bash", "dash", "zsh"})
# `$(NAME)` of Kubernetes, and `$$`, which stands for one.
_EXPANDED = re.compile(r"\$\$|\$\(([A-Za-z_][A-Za-z0-9_.-]*)\)")
# What a stack or the launcher would fill in.
_BRACES = re.compile(r"\{[a-z_]+(?:[.:][A-Za-z0-9_.:-]+)?\}|\$\{")
_OPERATORS = re.compile(r"[|&;<>`$]")
_DISTRIBUTION = re.compile(r"--(?:nnodes|node[_-]rank|master[_-]\w+|rdzv[_-]\w+|nproc[_-]per[_-]node)")
_SETS = re.compile(r"set\s+[-+]\S+(\s+\w+)?")
# Launchers of catalog/first_stacks.toml -> the framework that does the same.
_LAUNCHERS = {"torchrun": "torchrun", "accelerate": "accelerate", "horovodrun": "horovod", "mpirun": "horovod"}
_TORCHRUN = re.compile(r"\btorchrun\b|torch\.distributed\.(?:run|launch)\b")


@dataclass(frozen=True, slots=True)
class StartedProgram:
    """`framework`: the one whose launcher stood before the script, or empty. `processes`: on each node, if it says so;
    0 means one for each accelerator. `script`: the file that it starts. `dropped`: words that are left out. `secrets`:
    the variables that stand in place of secrets in plain text."""

    command: str
    framework: str = ""
    processes: int | None = None
    script: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    dropped: tuple[str, ...] = ()
    has_secret: bool = False
    secrets: tuple[str, ...] = ()


def expand_variables(text: str, values: Mapping[str, str]) -> str:
    """`$(NAME)` filled in where the file says the value. Others are left."""

    def expanded(match: re.Match[str]) -> str:
        if match[0] == "$$":
            return "$"
        return values.get(match[1], match[0])

    return _EXPANDED.sub(expanded, text)


def variables_left_in(text: str) -> list[str]:
    """The names in `$(NAME)`."""
    return [match[1] for match in _EXPANDED.finditer(text) if match[1]]


def read_started_program(
    words: Sequence[str], values: Mapping[str, str], nodes: int, per_node: str, file: str
) -> StartedProgram:
    """`values`: the container's variables whose values the file says. `per_node`: how many processes the job says that
    torchrun starts."""
    known = [expand_variables(word, values) for word in words]
    script = _script_of_shell(known)
    if script is None:
        line = read_launch_line(_without_distribution(known), file, 0)
        if line is not None and _takes_whole_line(line):
            return _program_of_line(line, known, nodes)
        left = [name for word in known for name in variables_left_in(word)]
        if not left and not any(_BRACES.search(word) for word in known) and not replace_secrets(shlex.join(known))[1]:
            return StartedProgram(shlex.join(known), script=_python_script(known))
        script = "exec " + " ".join(_shell_word(word) for word in known)
    else:
        single = _only_line(script)
        line = read_launch_line(single, file, 0) if single else None
        if line is not None and _takes_whole_line(line):
            return _program_of_line(line, single, nodes)
    for line in find_launch_lines(script, file):
        if _LAUNCHERS.get(line.launchers[0]) == "horovod":
            # MPI itself is not there: its processes are Horovod's.
            others = [text for text in script.splitlines() if text.strip() and line.script not in text]
            program = _program_of_line(line, shlex.split(script, comments=True), nodes)
            return StartedProgram(
                program.command, "horovod", program.processes, program.script, program.environment,
                tuple(others), program.has_secret,
            )  # fmt: skip
    script, names = replace_secrets(_with_torchrun_variables(script, nodes, per_node))
    return StartedProgram(f"bash -c {shlex.quote(without_braces(script))}", secrets=tuple(names))


def _script_of_shell(words: Sequence[str]) -> str | None:
    """The text that a shell gets by `-c`; what follows it are its arguments."""
    if not words or words[0].rpartition("/")[2] not in _SHELLS:
        return None
    for place, word in enumerate(words[1:], 1):
        if re.fullmatch(r"-[a-z]*c", word) and place + 1 < len(words):
            return words[place + 1]
        if not word.startswith("-"):
            break
    return None


def _only_line(script: str) -> list[str]:
    """The words of a script that has one command, and nothing that a shell would do with it."""
    lines = [line.strip() for line in script.replace("\\\n", " ").splitlines()]
    lines = [line for line in lines if line and not line.startswith("#") and not _SETS.fullmatch(line)]
    try:
        words = _without_distribution(shlex.split(lines[0].removeprefix("exec "))) if len(lines) == 1 else []
    except ValueError:
        return []
    return [] if any(_OPERATORS.search(word) for word in words) else words


def _without_distribution(words: Sequence[str]) -> list[str]:
    """The words without the values by which torchrun finds the other nodes: the launcher tells it these."""
    found: list[str] = []
    for word in words:
        name, joined, value = word.partition("=")
        if joined and "$" in value and _DISTRIBUTION.fullmatch(name):
            found.append(f"{name}=auto")
        else:
            found.append("auto" if found and "$" in word and _DISTRIBUTION.fullmatch(found[-1]) else word)
    return found


def _takes_whole_line(line: LaunchLine | None) -> bool:
    """Whether a launcher takes all of the line."""
    return (
        line is not None
        and not line.left_out
        and not line.has_secret
        and not any(_BRACES.search(word) for word in line.arguments)
    )


def _program_of_line(line: LaunchLine, words: Sequence[str], nodes: int) -> StartedProgram:
    launcher = line.launchers[0]
    framework = _LAUNCHERS.get(launcher, "")
    if launcher == "python":
        return StartedProgram(shlex.join(words), script=_python_script(words), has_secret=line.has_secret)
    processes = 0 if line.per_accelerator or launcher == "deepspeed" else line.processes
    if processes and line.nodes is None and launcher in ("mpirun", "horovodrun", "accelerate"):
        processes = max(1, processes // nodes)
    # `-x NAME=value` of Open MPI.
    given = [following for word, following in itertools.pairwise(words) if word == "-x" and "=" in following]
    pairs = [text.split("=", 1) for text in given] if framework == "horovod" else []
    environment = {name: value for name, value in pairs if not is_secret_text(name, value)}
    start = f"python -m {line.script}" if line.as_module else shlex.quote(line.script)
    command = " ".join([start, *map(shlex.quote, line.arguments)])
    return StartedProgram(
        command, framework, processes, "" if line.as_module else line.script, environment, line.left_out,
        line.has_secret or len(environment) < len(pairs),
    )  # fmt: skip


def _python_script(words: Sequence[str]) -> str:
    return next((word for word in words[:3] if word.endswith(".py")), "")


def _shell_word(word: str) -> str:
    """A word of bash, in which `$(NAME)` of Kubernetes is a variable."""
    parts, end = list[str](), 0
    for match in _EXPANDED.finditer(word):
        if match[1]:
            parts += [shlex.quote(word[end : match.start()]) if word[end : match.start()] else "", f'"${match[1]}"']
            end = match.end()
    return "".join([*parts, shlex.quote(word[end:]) if word[end:] or not parts else ""])


def _with_torchrun_variables(script: str, nodes: int, per_node: str) -> str:
    """torchrun reads what the operator tells it from variables, where its options do not say it."""
    if not _TORCHRUN.search(script):
        return script
    processes = f" PET_NPROC_PER_NODE={per_node}" if per_node else ""
    told = (
        f"PET_NNODES={nodes} PET_NODE_RANK=$RANK PET_MASTER_ADDR=$MASTER_ADDR PET_MASTER_PORT=$MASTER_PORT{processes}"
    )
    return f"export {told}\n{script}"
