# SPDX-License-Identifier: Apache-2.0
"""A batch script of Slurm as a job. The script itself stays as it is: it runs on every node, where `speaks: [slurm]`
gives it the variables and programs that it knows. What its `#SBATCH` lines ask for becomes the job's keys."""

from __future__ import annotations

import itertools
import math
import posixpath
import re
import shlex
from collections.abc import Mapping
from typing import Any

from components.platform.new_stacks import MachineNeeds
from trainyard.bring.model import LONGEST_MINUTES, BroughtJob, gpu_named_in, name_for_stack
from trainyard.bring.notes import CHOICE, LEFT_OUT, NO_EFFECT, UNREADABLE, NoteTaker, is_secret_text
from trainyard.bring.slurm_directives import Directives, read_directives
from trainyard.bring.slurm_script import (
    ScriptPorts,
    downloads_in,
    note_calls,
    note_paths,
    ports_in_script,
    read_image,
    script_lines,
)
from trainyard.bring.source_text import SourceText

SYSTEM = "slurm"
# As many runs as `each` may make.
_MOST_RUNS = 64
# Slurm itself starts a job again this often at most.
_REQUEUES = 5
# The framework's own ranges, and ports that each process of a node needs for its connections.
_DATA_FIRST, _DATA_SIZE, _PORTS_OF_PROCESS = 29500, 64, 8
_SPAN = re.compile(r"(\d+)(?:-(\d+)(?::(\d+))?)?")


def read_batch_script(source: SourceText) -> tuple[BroughtJob, NoteTaker]:
    """BringError if no stack can do what it asks for."""
    taker = NoteTaker(source.name)
    lines = source.text.split("\n")
    if "\r" in source.text:
        # sbatch refuses it, too.
        line = next(number for number, text in enumerate(lines, 1) if "\r" in text)
        message = "its lines end as on DOS, so no shell can run it, and sbatch refuses it"
        raise taker.refuse(UNREADABLE, line, message, f"run: sed -i 's/\\r$//' {shlex.quote(source.name)}")
    if not lines[0].startswith("#!"):
        message = "it does not begin with `#!`, so sbatch does not take it as a batch script"
        raise taker.refuse(UNREADABLE, 1, message, "begin it with the line #!/bin/bash")
    if source.has_bom:
        taker.note(NO_EFFECT, 1, "it begins with a byte order mark, which hides its `#!`", "save it without one")
    directives = read_directives(lines, taker)
    script = script_lines(lines)
    nodes = _node_count(directives)
    ports = ports_in_script(script, taker) if nodes > 1 else None
    note_calls(script, nodes, taker)
    note_paths(script, taker)
    name = directives.values.get("job-name") or posixpath.basename(source.name)
    image, image_line = directives.values.get("container-image", ""), directives.line("container-image")
    if not image:
        image, image_line = read_image(script)
    fetches = downloads_in(script)
    if fetches:
        message = "it fetches something from the internet, so the network gets a way out (`nat`)"
        taker.note(CHOICE, fetches, message, "remove `nat` if the image has what it fetches")
    job = BroughtJob(
        name=name_for_stack(name),
        keys=_job_keys(source, directives, ports, nodes),
        needs=_machine_needs(directives, nodes),
        image=_image_name(image, image_line, taker),
        image_line=image_line,
        machine_line=directives.line("gres", "gpus-per-node", "gpus", "gpus-per-task", "constraint", "nodes"),
        network={"nat": True} if fetches else {},
    )
    return job, taker


def _node_count(directives: Directives) -> int:
    """As sbatch counts them: `--nodes`, or as many as `--ntasks` fills."""
    text = directives.values.get("nodes", "")
    least, joined, _ = text.partition("-")
    tasks, per_node = directives.number("ntasks"), directives.number("ntasks-per-node")
    if joined:
        directives.values["nodes"] = least
        message = f"`--nodes={text}` lets Slurm choose, and a run has as many nodes as its file says"
        directives.taker.note(CHOICE, directives.lines["nodes"], message, f"{least} of `roles`, or more")
    nodes = directives.number("nodes")
    if nodes is None:
        nodes = math.ceil(tasks / per_node) if tasks and per_node else 1
    if nodes < 1:
        raise directives.senseless("nodes", "asks for no node")
    return min(nodes, tasks) if tasks else nodes


def _tasks_of_node(directives: Directives, nodes: int) -> int:
    per_node, tasks = directives.number("ntasks-per-node"), directives.number("ntasks")
    return per_node or math.ceil((tasks or nodes) / nodes)


def _gpus_in(text: str, directives: Directives, name: str) -> tuple[int, str]:
    """How many GPUs `gpu:a100:4`, `a100:4` or `4` are, and their name."""
    for part in text.removeprefix("gres/").split(","):
        words = [word for word in re.split(r"[:(=]", part) if word]
        if name == "gres" and words[:1] != ["gpu"]:
            directives.taker.note(
                LEFT_OUT,
                directives.lines[name],
                f"`--gres={part[:40]}` was left out: it is no GPU",
                "choose the `shape`",
            )
            continue
        words = words[1:] if words[:1] == ["gpu"] else words
        number = next((int(word) for word in words[:2] if word.isdigit() and len(word) < 6), 1)
        return number, next((word for word in words[:1] if not word.isdigit()), "")
    return 0, ""


def _machine_needs(directives: Directives, nodes: int) -> MachineNeeds:
    tasks = _tasks_of_node(directives, nodes)
    gpus, called = 0, ""
    for name, share in (("gres", 1.0), ("gpus-per-node", 1.0), ("gpus", 1 / nodes), ("gpus-per-task", float(tasks))):
        if name in directives.values:
            number, kind = _gpus_in(directives.values[name], directives, name)
            gpus, called = max(gpus, math.ceil(number * share)), called or kind
    gpu = gpu_named_in(f"{called} {directives.said.get('constraint', '')} {directives.said.get('partition', '')}")
    cpus = tasks * (directives.number("cpus-per-task") or 1)
    cpus = max(cpus, directives.number("mincpus") or 0, gpus * (directives.number("cpus-per-gpu") or 0))
    memory = max(
        directives.megabytes("mem") or 0,
        cpus * (directives.megabytes("mem-per-cpu") or 0),
        gpus * (directives.megabytes("mem-per-gpu") or 0),
    )
    disk = directives.megabytes("tmp") or 0
    return MachineNeeds(cpus, math.ceil(memory / 1024), gpus, gpu or called, math.ceil(disk / 1024))


def _job_keys(source: SourceText, directives: Directives, ports: ScriptPorts | None, nodes: int) -> Mapping[str, Any]:
    taker = directives.taker
    retry = {"retry": {"count": _REQUEUES}} if "requeue" in directives.values else {}
    roles: dict[str, Any] = {"main": {"replicas": 1, **retry} if retry else 1}
    if nodes > 1:
        roles["worker"] = {"replicas": nodes - 1, **retry} if retry else nodes - 1
    code, path = _code_and_script(source, directives)
    interpreter = source.text.partition("\n")[0].removeprefix("#!").split() or ["/bin/bash"]
    keys: dict[str, Any] = {
        "framework": "pytorch",
        "roles": roles,
        "speaks": [SYSTEM],
        "code": code,
        "command": shlex.join([*interpreter, path]),
    }
    if ports is not None:
        keys |= _port_keys(ports, _tasks_of_node(directives, nodes), taker)
    minutes = directives.minutes("time")
    if minutes is not None:
        if minutes > LONGEST_MINUTES:
            message = f"`--time` is longer than a run may take, so it is {LONGEST_MINUTES} minutes"
            taker.note(CHOICE, directives.lines["time"], message, "save checkpoints, and go on in another run")
        keys["maximumRuntimeMinutes"] = min(minutes, LONGEST_MINUTES)
    elif "time" in directives.values:
        keys["maximumRuntimeMinutes"] = LONGEST_MINUTES
    environment = {**_slurm_variables(directives, nodes, source), **_exported_names(directives)}
    if environment:
        keys["env"] = environment
    keys["runs"] = _array_runs(directives) if "array" in directives.values else {"base": {}}
    return keys


def _code_and_script(source: SourceText, directives: Directives) -> tuple[str, str]:
    """The folder of the code, and the script's path in it. sbatch starts a script in the folder where it is called."""
    folder = directives.values.get("chdir", "")
    path = posixpath.normpath(source.name)
    if folder and posixpath.isabs(folder):
        message = f"`--chdir={folder[:60]}` was left out: nodes do not have this folder"
        directives.taker.note(LEFT_OUT, directives.lines["chdir"], message, "name the folder of the code under `code`")
        folder = ""
    start = posixpath.normpath(folder or ".")
    if posixpath.isabs(path) or path.startswith(".."):
        return posixpath.dirname(path), posixpath.basename(path)
    inside = posixpath.relpath(path, start)
    if inside.startswith(".."):
        return ".", path
    return ("." if start == "." else f"./{start}"), inside


def _port_keys(ports: ScriptPorts, processes: int, taker: NoteTaker) -> Mapping[str, Any]:
    """Moves the range of the data out of the way of the port at which processes meet."""
    if ports.others or ports.needs_all:
        which = f"it names the ports {', '.join(map(str, ports.others[:4]))}, too" if ports.others else ""
        message = which or "what it starts opens ports of its own"
        taker.note(
            CHOICE, ports.needs_all, f"{message}, so nodes may connect on all ports (`data: all`)", "name a range"
        )
        return {"ports": {"rendezvous": ports.rendezvous, "data": "all"}}
    size = max(_DATA_SIZE, processes * _PORTS_OF_PROCESS)
    first = _DATA_FIRST
    if first <= ports.rendezvous < first + size:
        first = ports.rendezvous + 1 if ports.rendezvous + size < 32768 else ports.rendezvous - size
    return {"ports": {"rendezvous": ports.rendezvous, "data": f"{first}-{first + size - 1}"}}


def _slurm_variables(directives: Directives, nodes: int, source: SourceText) -> Mapping[str, str]:
    """What Slurm tells a script of its options. The launcher computes the other variables from these."""
    values, found = directives.values, dict[str, str]()
    name = values.get("job-name") or posixpath.basename(source.name)
    if name != name_for_stack(name):
        found["SLURM_JOB_NAME"] = name
    for option, variable in (
        ("ntasks-per-node", "SLURM_NTASKS_PER_NODE"), ("cpus-per-task", "SLURM_CPUS_PER_TASK"),
        ("ntasks", "SLURM_NTASKS"),
    ):  # fmt: skip
        if number := directives.number(option):
            found[variable] = str(number)
    for option, variable in (
        ("mem", "SLURM_MEM_PER_NODE"), ("mem-per-cpu", "SLURM_MEM_PER_CPU"), ("mem-per-gpu", "SLURM_MEM_PER_GPU"),
    ):  # fmt: skip
        if size := directives.megabytes(option):
            found[variable] = str(size)
    for option, variable in (
        ("gpus", "SLURM_GPUS"), ("gpus-per-node", "SLURM_GPUS_PER_NODE"), ("gpus-per-task", "SLURM_GPUS_PER_TASK"),
        ("cpus-per-gpu", "SLURM_CPUS_PER_GPU"), ("distribution", "SLURM_DISTRIBUTION"), ("signal", "SBATCH_SIGNAL"),
    ):  # fmt: skip
        if values.get(option):
            found[variable] = values[option]
    if gpus := _machine_needs(directives, nodes).gpus:
        found["SLURM_GPUS_ON_NODE"] = str(gpus)
    return found


def _exported_names(directives: Directives) -> Mapping[str, str]:
    """The variables that `--export` gives. Whoever submits has others, which nodes have not."""
    found: dict[str, str] = {}
    for part in directives.values.get("export", "").split(","):
        name, given, value = part.partition("=")
        if given and is_secret_text(name, value):
            message = f"`{name}` of `--export` was left out: it is a secret in plain text"
            remedy = "write it with `trainyard secret set`, under `env` of the job"
            directives.taker.note(LEFT_OUT, directives.lines["export"], message, remedy)
        elif given:
            found[name] = value
        elif part and part not in ("ALL", "NONE", "NIL"):
            message = f"`{part[:40]}` of `--export` was left out: its value is known to whoever submits"
            directives.taker.note(LEFT_OUT, directives.lines["export"], message, "write it under `env`")
    return found


def _array_runs(directives: Directives) -> Mapping[str, Any]:
    """A run for each value of an array: `1,3-7:2%4`."""
    text, line = directives.values["array"], directives.lines["array"]
    spans, _, most = text.partition("%")
    values, steps = list[int](), list[int]()
    for span in spans.split(","):
        match = _SPAN.fullmatch(span.strip())
        if not match or len(span) > 30 or (most and not most.isdigit()):
            raise directives.senseless("array", "is not an array such as 0-15%4")
        first, last, step = int(match[1]), int(match[2] or match[1]), int(match[3] or 1)
        if last - first > 10 * _MOST_RUNS * max(step, 1) or step < 1:
            last = first + (_MOST_RUNS + 1) * max(step, 1)
        values += range(first, last + 1, max(step, 1))
    values = sorted(set(values))
    if len(values) > _MOST_RUNS:
        message = f"`--array={text[:40]}` makes more than {_MOST_RUNS} runs, and a stack's run has {_MOST_RUNS} at most"
        raise directives.taker.refuse("TB002", line, message, "let each run do several values, or bring it in parts")
    steps = [second - first for first, second in itertools.pairwise(values)]
    each = {
        "SLURM_ARRAY_TASK_ID": "${each.task}",
        "SLURM_ARRAY_TASK_COUNT": str(len(values)),
        "SLURM_ARRAY_TASK_MAX": str(values[-1]),
        "SLURM_ARRAY_TASK_MIN": str(values[0]),
        "SLURM_ARRAY_TASK_STEP": str(steps[0] if steps and len(set(steps)) == 1 else 1),
    }
    limit = {"atMost": min(int(most), _MOST_RUNS)} if most and int(most) else {}
    return {"array": {"each": {"task": values}, **limit, "env": each}}


def _image_name(text: str, line: int, taker: NoteTaker) -> str:
    """The image that pyxis starts, as registries name it: `nvcr.io#nvidia/pytorch:24.01-py3` has another form there."""
    name = re.sub(r"^(?:docker|dockerd|oci)://", "", text).replace("#", "/")
    if name and ("$" in name or name.startswith(("/", ".")) or name.endswith((".sqsh", ".sif"))):
        message = f"the image `{text[:60]}` is a file, or known only when the script runs"
        taker.note(LEFT_OUT, line, message, "push the image to a registry, and write its name under `image`")
        return ""
    return name if not name or ":" in name.rpartition("/")[2] or "@" in name else f"{name}:latest"
