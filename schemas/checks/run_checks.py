# SPDX-License-Identifier: Apache-2.0
"""Checks of code and input data, and of the time that runs may take. Platforms' own checks use the same bounds."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterator

from schemas.checks.command_checks import command_words, job_commands
from schemas.each import LONGEST_KEY, MOST_RUNS, count_runs, each_names_in, each_value_text, keys_of
from schemas.facts import CodeFolder, Facts
from schemas.findings import Path, Wrong, at, rule
from schemas.job_on_platform import JobOnPlatform
from schemas.model import STALL_MINUTES, Job, Run, Stack
from schemas.name_suggestions import count_noun, nearest_name, quoted_list

# The longest reasonable wait of a deployment: a day.
LONGEST_WAIT = 24 * 60
LARGEST_CODE = 100_000_000
_SYSTEM_FOLDERS = ("/bin", "/dev", "/etc", "/lib", "/proc", "/sys", "/usr")
_SCRIPT = re.compile(r"[\w./-]+\.(?:py|sh)")
DAY = 24 * 60


@rule("TY802", "a deployment would wait too long for a run", severity="warning")
def long_wait(stack: Stack, _: Facts) -> Iterator[Wrong]:
    for name, job in stack.jobs.items():
        for run, spec in job.runs.items():
            if spec.until == "finished" and job.maximum_runtime_minutes > LONGEST_WAIT:
                hours = job.maximum_runtime_minutes // 60
                message = f"`pulumi up` waits until the run has finished, which may take {hours} hours"
                remedy = f"use `until: started`, or `maximumRuntimeMinutes: {LONGEST_WAIT}` or less"
                yield Wrong(at("jobs", name, "runs", run, "until"), message, remedy)


@rule("TY825", "a stall limit that ends no run", severity="warning")
def useless_stall_limit(stack: Stack, facts: Facts) -> Iterator[Wrong]:
    for name, job in stack.jobs.items():
        framework = facts.framework(job)
        if framework is None or job.stall_minutes in (0, STALL_MINUTES):
            continue
        if not JobOnPlatform.of(stack, job, framework).is_watched:
            message = "ends no run here: only runs whose nodes all depend on one another are ended for it"
            remedy = "after that time it is only said that no node does anything; `maximumRuntimeMinutes` stops the run"
            yield Wrong(at("jobs", name, "stallMinutes"), message, remedy)


def _code_folders(stack: Stack, facts: Facts) -> Iterator[tuple[str, Job, str, CodeFolder]]:
    for name, job in stack.jobs.items():
        if job.code and job.code.folder and job.code.folder in facts.folders:
            yield name, job, job.code.folder, facts.folders[job.code.folder]


@rule("TY804", "a code folder that does not exist")
def missing_folder(stack: Stack, facts: Facts) -> Iterator[Wrong]:
    for name, _, path, folder in _code_folders(stack, facts):
        if not folder.exists:
            remedy = "create it, or correct the path, which starts at the folder of the stack file"
            yield Wrong(at("jobs", name, "code"), f"`{path}` does not exist", remedy)
        elif not folder.is_folder:
            yield Wrong(at("jobs", name, "code"), f"`{path}` is not a folder", "name the folder that it is in")
        elif folder.inside and folder.complete and not folder.files:
            yield Wrong(at("jobs", name, "code"), f"`{path}` is empty", "put the training code into it")


@rule("TY805", "a code folder outside the project")
def code_outside_project(stack: Stack, facts: Facts) -> Iterator[Wrong]:
    for name, _, path, folder in _code_folders(stack, facts):
        if folder.exists and not folder.inside:
            message = f"`{path}` is outside the project: other people's checkouts do not have it"
            yield Wrong(at("jobs", name, "code"), message, "move the code beside the stack file, or use git")


@rule("TY806", "a code folder that is too large")
def code_too_large(stack: Stack, facts: Facts) -> Iterator[Wrong]:
    for name, _, path, folder in _code_folders(stack, facts):
        if folder.bytes > LARGEST_CODE or not folder.complete:
            size = f"{folder.bytes / 1e6:.0f} MB in {len(folder.files)} files"
            message = f"`{path}` has {size}{'' if folder.complete else ' and more'}; the limit is 100 MB"
            yield Wrong(at("jobs", name, "code"), message, "keep data in the bucket, or put the code into the image")


@rule("TY807", "code from a folder and from git")
def two_sources(stack: Stack, _: Facts) -> Iterator[Wrong]:
    for name, job in stack.jobs.items():
        if job.code and job.code.folder and job.code.git:
            message = "names a folder and a git repository"
            yield Wrong(at("jobs", name, "code"), message, "keep one of them")


@rule("TY808", "code from git without a fixed commit", severity="warning")
def moving_code(stack: Stack, _: Facts) -> Iterator[Wrong]:
    for name, job in stack.jobs.items():
        if job.code and job.code.git and job.code.git.commit is None:
            what = f"the branch `{job.code.git.branch}`" if job.code.git.branch else "the default branch"
            message = f"takes {what}, which moves: nodes may get different code, and runs cannot be repeated"
            yield Wrong(at("jobs", name, "code", "git"), message, "add `commit`")


@rule("TY809", "the command's script is not in the code folder")
def missing_script(stack: Stack, facts: Facts) -> Iterator[Wrong]:
    for name, job, path, folder in _code_folders(stack, facts):
        if not (folder.inside and folder.complete and folder.files):
            continue
        for where, command in job_commands(name, job):
            words = command_words(command)
            if words and words[0] in ("python", "python3", "bash", "sh"):
                words = words[1:]
            relative = bool(words) and not words[0].startswith("/") and ".." not in words[0].split("/")
            script = words[0] if relative and _SCRIPT.fullmatch(words[0]) else None
            if script is not None and script.removeprefix("./") not in folder.files:
                close = nearest_name(script, folder.files)
                remedy = f"did you mean `{close}`?" if close else f"put it into `{path}`"
                yield Wrong(where, f"`{script}` is not in `{path}`", remedy)


@rule("TY810", "a command that cannot be read")
def unreadable_command(stack: Stack, _: Facts) -> Iterator[Wrong]:
    for name, job in stack.jobs.items():
        for where, command in job_commands(name, job):
            if job.by_shell and command.strip():
                continue
            try:
                words = shlex.split(command)
            except ValueError as problem:
                yield Wrong(where, f"cannot be split into words: {problem}".lower(), "close the quotes")
                continue
            if not words:
                yield Wrong(where, "is empty", "name the training script")


@rule("TY815", "input data mounted in a folder that is in use")
def occupied_mount(stack: Stack, _: Facts) -> Iterator[Wrong]:
    for name, job in stack.jobs.items():
        seen: dict[str, int] = {}
        for index, item in enumerate(job.inputs):
            path = at("jobs", name, "inputs", index, "mount")
            mount = item.mount.rstrip("/")
            own = (*_SYSTEM_FOLDERS, *stack.system_folders)
            if ".." in mount.split("/") or any(mount == top or mount.startswith(f"{top}/") for top in own):
                yield Wrong(path, f"`{item.mount}` belongs to the node's system", "mount it under /data")
            if mount in seen:
                message = f"`{item.mount}` is also the mount of input {seen[mount] + 1}"
                yield Wrong(path, message, "give each input a folder of its own")
            seen.setdefault(mount, index)


@rule("TY817", "an input that includes everything the runs write", severity="warning")
def own_bucket(stack: Stack, _: Facts) -> Iterator[Wrong]:
    for name, job in stack.jobs.items():
        for index, item in enumerate(job.inputs):
            if item.bucket in (None, stack.bucket.name, stack.bucket.existing) and not item.prefix:
                message = "mounts the stack's whole bucket, with all checkpoints"
                yield Wrong(at("jobs", name, "inputs", index), message, "add `prefix`")


@rule("TY827", "files to keep outside of the working directory")
def kept_outside_workdir(stack: Stack, _: Facts) -> Iterator[Wrong]:
    for name, job in stack.jobs.items():
        for index, pattern in enumerate(job.keep):
            parts = pattern.split("/")
            if pattern.startswith(("/", "~", "$")):
                why = "does not begin in the working directory"
            elif ".." in parts:
                why = "leads out of the working directory"
            elif not any(part not in ("", ".") for part in parts):
                why = "names no file"
            else:
                continue
            remedy = "write a path below the working directory; let the script write others to $TRAINYARD_OUTPUT"
            yield Wrong(at("jobs", name, "keep", index), f"`{pattern[:80]}` {why}", remedy)


def _sweeps_of(stack: Stack) -> Iterator[tuple[Job, Path, str, Run]]:
    for name, job in stack.jobs.items():
        for run, entry in job.runs.items():
            if entry.each:
                yield job, at("jobs", name, "runs", run), run, entry


@rule("TY860", "more runs than one `each` may make")
def too_many_runs(stack: Stack, _: Facts) -> Iterator[Wrong]:
    for _job, path, _run, entry in _sweeps_of(stack):
        if count_runs(entry) > MOST_RUNS:
            sizes = " x ".join(str(len(values)) for values in entry.each.values())
            message = f"makes {sizes} = {count_runs(entry)} runs; at most {MOST_RUNS} are allowed"
            yield Wrong((*path, "each"), message, "shorten the lists, or split them into several stacks")


@rule("TY861", "an empty list of values")
def empty_each_values(stack: Stack, _: Facts) -> Iterator[Wrong]:
    for _job, path, _run, entry in _sweeps_of(stack):
        for name, values in entry.each.items():
            if not values:
                yield Wrong((*path, "each", name), f"`{name}` has no values, so there is no run", "add a value")


@rule("TY862", "two runs of one `each` with the same key")
def same_key_twice(stack: Stack, _: Facts) -> Iterator[Wrong]:
    for job, path, run, entry in _sweeps_of(stack):
        for name, values in entry.each.items():
            twice = [value for value, times in Counter(map(each_value_text, values)).items() if times > 1]
            if twice:
                yield Wrong((*path, "each", name), f"{quoted_list(twice)} occurs more than once", "keep it once")
        keys = Counter(keys_of(run, entry))
        doubled = [key for key, times in keys.items() if times > 1]
        has_doubles = any(len(set(map(each_value_text, values))) < len(values) for values in entry.each.values())
        if doubled and not has_doubles:
            message = f"two combinations are spelled `{doubled[0]}`: only letters, digits, `.`, `_` and `-` are kept"
            yield Wrong((*path, "each"), message, "choose values that differ in these characters")
        others = {key for other, spec in job.runs.items() if other != run for key in keys_of(other, spec)}
        if both := sorted(others & set(keys)):
            yield Wrong((*path, "each"), f"another run of the job is called `{both[0]}` too", "rename one of the runs")


@rule("TY869", "a limit of simultaneous runs for a single run")
def limit_of_one(stack: Stack, _: Facts) -> Iterator[Wrong]:
    for name, job in stack.jobs.items():
        for run, entry in job.runs.items():
            if entry.at_most is not None and not entry.each:
                message = "limits how many runs of an `each` are alive at once, and this entry is one run"
                yield Wrong((*at("jobs", name, "runs", run), "atMost"), message, "remove it, or add `each`")


@rule("TY863", "values that make the key of a run too long")
def key_too_long(stack: Stack, _: Facts) -> Iterator[Wrong]:
    for _job, path, run, entry in _sweeps_of(stack):
        longest = max(keys_of(run, entry), key=len, default="")
        if len(longest) > LONGEST_KEY:
            message = (
                f"the key `{longest[:60]}…` has {count_noun(len(longest), 'character')}; {LONGEST_KEY} are allowed"
            )
            yield Wrong((*path, "each"), message, "name long values in the script, and choose among them by short ones")


@rule("TY864", "a former name of several runs")
def former_name_of_sweep(stack: Stack, _: Facts) -> Iterator[Wrong]:
    for _job, path, run, entry in _sweeps_of(stack):
        if entry.was.names:
            message = f"`{run}` stands for {count_noun(count_runs(entry), 'run')}, which cannot all continue one run"
            yield Wrong((*path, "was"), message, "remove `was`, or give the run that continues it an entry of its own")


@rule("TY865", "a value that changes nothing", severity="warning")
def unused_each_value(stack: Stack, _: Facts) -> Iterator[Wrong]:
    for _job, path, _run, entry in _sweeps_of(stack):
        texts = (*entry.args, *(value for value in entry.env.values() if isinstance(value, str)))
        used = {name for text in texts for name in each_names_in(text)}
        for name in entry.each:
            if name not in used:
                message = f"no argument and no variable of the run uses `${{each.{name}}}`: its runs are all alike"
                yield Wrong((*path, "each", name), message, f"add it to `args`, or remove `{name}`")


def disks_within(stack: Stack, smallest: int, largest: int) -> Iterator[Wrong]:
    """Findings about sizes outside of these bounds, in gigabytes."""
    for name, job in stack.jobs.items():
        size = job.block_storage_gb
        if not smallest <= size <= largest:
            message = f"a node's disk cannot have {size} GB, only {smallest} to {largest}"
            use = smallest if size < smallest else largest
            yield Wrong(at("jobs", name, "blockStorageGb"), message, f"use {use}")


def runtimes_within(stack: Stack, shortest: int, longest: int, who: str) -> Iterator[Wrong]:
    """Findings about runtimes outside of these bounds, in minutes. `who`: the words before the bounds, such as `a run
    has`."""
    for name, job in stack.jobs.items():
        minutes = job.maximum_runtime_minutes
        if not shortest <= minutes <= longest:
            message = f"{minutes} minutes are not allowed: {who} {shortest} to {longest} ({longest // DAY} days)"
            use = shortest if minutes < shortest else longest
            remedy = f"use {use}, or as long as the training needs"
            yield Wrong(at("jobs", name, "maximumRuntimeMinutes"), message, remedy)
