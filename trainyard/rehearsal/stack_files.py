# SPDX-License-Identifier: Apache-2.0
"""Writes the stack files of a rehearsal, and the code that they name, into a temporary folder."""

from __future__ import annotations

import json
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from components.plan.build import plan_file, plan_of
from components.plan.model import Plan
from components.platform.calls import Tell
from components.platform.rehearsal import RehearsedConfig
from localcloud import control, files
from schemas.job_code import LEFT_OUT
from schemas.judge import judge_config
from schemas.scalars import has_secret
from schemas.source import read_source
from trainyard.engine.trusted import private_folder
from trainyard.local.local_stack import PROJECT, local_stacks_home
from trainyard.rehearsal.mapping import JOBS, Machines, map_config, stand_in_stack, without_runs

# Built-in programs that train for a few seconds in place of a team's code, by framework or framework/strategy.
PROGRAMS: Mapping[str, str] = {
    "accelerate": "stacks/examples/accelerate",
    "dask": "rehearsal/programs/dask",
    "horovod/pytorch": "stacks/examples/horovod-pytorch",
    "horovod/tensorflow": "stacks/examples/horovod-tensorflow",
    "lightning": "stacks/examples/lightning",
    "pytorch": "stacks/examples/pytorch-ddp",
    "ray": "stacks/examples/ray",
    "tensorflow/mirrored": "stacks/examples/tensorflow-mirrored",
    "tensorflow/multi-worker-mirrored": "stacks/examples/tensorflow-multi-worker",
    "tensorflow/parameter-server": "stacks/examples/tensorflow-parameter-server",
    "torchrun": "stacks/examples/torchrun",
}
FRAMEWORKS = "trainyard:frameworks"
OWNER = "owner.json"
_FOLDER = "rehearsals"


@dataclass(frozen=True)
class PreparedStack:
    """A stack as it is rehearsed: its file with and without runs, and their differences from the team's file."""

    name: str
    plan: Plan
    mapped: RehearsedConfig
    secret_keys: frozenset[str]


def prepare_stack(
    file: Path, plan: Plan, home: Path, most_nodes: int | None, built_in: bool, machines: Machines
) -> PreparedStack:
    """Writes the stack file without runs, and copies of the code. The runs to rehearse are in `mapped`."""
    stacks = home / "stacks"
    stacks.mkdir(exist_ok=True)
    written = read_source(file).data["config"]
    programs = {
        name: f"./code/{name}" for name, job in plan.jobs.items() if built_in or not (job.code and job.code.folder)
    }
    made = map_config(
        written, plan, most_nodes, {name: path for name, path in programs.items() if program_of(plan, name)}, machines,
    )  # fmt: skip
    for name, job in plan.jobs.items():
        made.config[JOBS][name].pop("requirements", None)
        program = program_of(plan, name) if name in programs else None
        folder = program or (file.parent / job.code.folder if job.code and job.code.folder else None)
        if folder is None:
            why = "there is no built-in program for its framework"
            if job.by_shell:
                why = "no built-in program can take the place of commands that a shell runs as they are written"
            made.not_rehearsed.setdefault(name, []).append(f"its code is in git or in the image, and {why}")
            continue
        ignored = shutil.ignore_patterns(*LEFT_OUT, "*.pyc")
        shutil.copytree(folder, stacks / "code" / name, ignore=ignored, dirs_exist_ok=True)
        made.config[JOBS][name]["code"] = f"./code/{name}"
        if job.packages and program is None:
            # The packages are the same, so an environment that was made for the team's file is used again.
            packages_file = Path("requirements", f"{name}.txt")
            (stacks / packages_file).parent.mkdir(exist_ok=True)
            (stacks / packages_file).write_text("\n".join((*job.packages.lines, "")), "utf-8")
            requirements = {"file": f"./{packages_file}", "build": list(job.packages.build)}
            made.config[JOBS][name]["requirements"] = requirements
    for name, path in (made.config.get(FRAMEWORKS) or {}).items():
        target = stacks / "frameworks" / f"{name}.toml"
        target.parent.mkdir(exist_ok=True)
        shutil.copyfile(file.parent / path, target)
        made.config[FRAMEWORKS][name] = f"./frameworks/{name}.toml"
    write_stack_file(stacks, plan.stack, without_runs(made.config))
    secret = frozenset(key for key, value in written.items() if has_secret(value))
    return PreparedStack(plan.stack, plan, made, secret)


def prepare_used(
    file: Path, plan: Plan, home: Path, tell: Tell, machines: Machines, place_keys: Sequence[str]
) -> str | None:
    """Writes the file of the stack that this one uses, or of a stand-in if the file is not in the folder. Returns a
    remark on a stand-in."""
    used = (plan.uses or "").rpartition("/")[2]
    beside = file.with_name(f"Pulumi.{used}.yaml")
    if beside.is_file():
        prepare_stack(beside, plan_file(beside, tell), home, None, False, machines)
        return None
    written = read_source(file).data["config"]
    stand_in = stand_in_stack(plan, written, place_keys)
    for name, path in (stand_in.get(FRAMEWORKS) or {}).items():
        stand_in[FRAMEWORKS][name] = str(Path("frameworks", f"{name}.toml"))
        target = home / "stacks" / "frameworks" / f"{name}.toml"
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file.parent / path, target)
    (home / "stacks").mkdir(exist_ok=True)
    write_stack_file(home / "stacks", used, stand_in)
    return f"the stack {used}: its file is not here; one with the defaults stands in for {', '.join(plan.taken)}"


def plan_with_runs(config: Mapping[str, Any], prepared: PreparedStack, home: Path) -> Plan:
    """The plan of the stack that is up, together with the runs to start."""
    jobs = {
        name: {**job, "runs": prepared.mapped.config[JOBS][name].get("runs") or {}}
        for name, job in (config.get(JOBS) or {}).items()
    }
    whole = {**config, **({JOBS: jobs} if jobs else {})}
    texts = {key: value if isinstance(value, str) else json.dumps(value) for key, value in whole.items()}
    file = home / "stacks" / f"Pulumi.{prepared.name}.yaml"
    return plan_of(judge_config(texts, prepared.secret_keys, prepared.name, file))


def program_of(plan: Plan, name: str) -> Path | None:
    """The built-in program for a job's framework and strategy. None if the job runs shell commands of its own."""
    job = plan.jobs[name]
    if job.by_shell:
        return None
    named = PROGRAMS.get(f"{job.framework}/{job.strategy}") or PROGRAMS.get(job.framework)
    return PROJECT / named if named else None


def write_stack_file(stacks: Path, name: str, config: Mapping[str, Any]) -> None:
    text = yaml.safe_dump({"config": dict(config)}, sort_keys=False, width=10_000)
    (stacks / f"Pulumi.{name}.yaml").write_text(text, "utf-8")
    # Makes the folder a project: code must be inside of one.
    (stacks / "Pulumi.yaml").write_text("name: trainyard\nruntime: python\n", "utf-8")


@contextmanager
def temporary_home(stack: str, keep: bool = False) -> Iterator[Path]:
    """A folder for everything that a rehearsal makes. At the end, or on a signal, its cloud is stopped and the folder
    removed."""
    root = private_folder(local_stacks_home().resolve() / _FOLDER)
    remove_abandoned(root)
    home = Path(tempfile.mkdtemp(prefix=f"{stack[:40]}-", dir=root))
    me = {"pid": os.getpid(), "started": files.process_start_time(os.getpid())}
    (home / OWNER).write_text(json.dumps(me))
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield home
    finally:
        signal.signal(signal.SIGTERM, before)
        if keep:
            (home / OWNER).unlink()
        else:
            _remove_home(home)


def remove_abandoned(root: Path) -> None:
    """Removes the folders of rehearsals that were killed: their process does not exist any more."""
    for home in root.iterdir():
        try:
            owner = json.loads((home / OWNER).read_text())
            alive = files.is_same_process(int(owner["pid"]), str(owner["started"]))
        except (OSError, ValueError, KeyError):
            continue  # kept on purpose, or just being made
        if not alive:
            _remove_home(home)


def _remove_home(home: Path) -> None:
    """Stops the cloud and removes the folder. Ignores signals: a second Ctrl-C would leave the cloud running."""
    held = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        with suppress(OSError):
            control.stop_cloud(home / "cloud")
        shutil.rmtree(home, ignore_errors=True)
    finally:
        for number, handler in held.items():
            signal.signal(number, handler)
