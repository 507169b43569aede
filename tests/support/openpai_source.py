# SPDX-License-Identifier: Apache-2.0
"""Answers the questions that catalog/openpai.py answers by OpenPAI's own runtime: runs its Python code, and reads its
patterns.

`python -m tests.support.openpai_source` writes the recorded answers again. The variable below names a folder with
checkouts of microsoft/openpai-runtime v0.1.11 and microsoft/pai v1.8.0, called `openpai-runtime` and `pai`. Their code
needs `requests` and `pystache` in PYTHONPATH.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

VARIABLE = "TRAINYARD_OPENPAI_SOURCE"
RECORDED = Path(__file__).parents[1] / "contract" / "recorded" / "openpai-runtime-0.1.11.json"
JOBS = Path(__file__).parents[1] / "bring" / "openpai"
Answers = dict[str, list[list[Any]]]

_ZEROS = "0" * 64
_IMAGE = {"type": "dockerimage", "name": "image", "uri": "team/train:1.0"}
QUESTIONS: Mapping[str, list[list[Any]]] = {
    "images": [
        [uri]
        for uri in (
            "python", "python:3.11", "team/train:1.0", "a/b:V1.0-CUDA", "A/b:1", "docker.io/a/b:1", "localhost/a:1",
            "registry.example.com/a/b-c_d.e/f:1.0-rc_2", "registry.example.com:5000/a:1", "registry.example.com:5000/a",
            f"a/b@sha256:{_ZEROS}", f"a/b:1@sha256:{_ZEROS}", f"registry.example.com/a@sha256:{_ZEROS}",
            "registry.example.com/Team/a:1", "REGISTRY.example.com/a:1", "/a", "a/b+c:1", "a:1+2", "a:", "a/:1",
        )
    ],
    "registries": [
        [uri, registry]
        for uri in ("team/train:1.0", "python", "docker.io/team/train:1", "registry.example.com/train:1")
        for registry in (
            "index.docker.io", "https://index.docker.io", "https://index.docker.io/v1/", "https://index.docker.io/v2",
            "http://index.docker.io/v1/", "hub.docker.com", "docker.io", "registry.example.com",
            " https://index.docker.io/ ",
        )
    ],
    "passwords": [[text] for text in ("plain-1_2.3", "a&b", "<", ">", '"', "it's", "=", "a=b", "%/+;:$`\\", "#x", "ü")],
    "texts": [
        [text]
        for text in (
            "plain", "it's", 'say "x"', "it's \"x\"", "a\\b", "a\\nb's", "two\nlines", "tab\t", "ü", "\u2028", "\x7f",
            "yes", "1e3", "", " # no comment", "{x: y}", "%", "\U0001f600", "a\u00a0b",
        )
    ] + [[value] for value in (None, True, 3, 2.5, 1e30, ["a", {"b": "c"}], {"d": None}, {"it's": 1})],
    "secrets": [
        [text, secrets]
        for secrets in (
            {"p": "a&b<c>\"d\"'e", "flag": True, "none": None, "n": 1e30, "list": ["x", "<"], "deep": {"in": "&"}},
            {"p": "plain"}, {}, None,
        )
        for text in (
            "<% $secrets.p %>", "<%$secrets.p%>", "a <% $secrets.p %> b\n<% $secrets.absent %>\nc",
            "<% $secrets.flag %> <% $secrets.none %> <% $secrets.n %>", "<% $secrets.list[1] %> <% $secrets.list.0 %>",
            "<% $secrets.list %> <% $secrets.deep %>", "<% $secrets.deep.in %> <% $secrets.p.more %>",
            "<%& $secrets.p %>", "<%{ $secrets.p }%>", "<% { $secrets.p } %>", "<%{ $secrets.list[1] }%>",
            "<% $secrets.p", "<% %>", "%> <% . %>", "<%\n$secrets.p\n%>", "<% secrets.p %>", "<% $secrets %>",
            "<% $parameters.x %>", "echo {{ $secrets.p }} '<% $secrets.p %>'",
        )
    ],
    "checks": [
        [[{**_IMAGE, **({"auth": auth} if auth else {})}, *more], secrets]
        for secrets in ({"p": "x"}, None)
        for auth in (
            None, {"username": "u", "password": "<% $secrets.p %>"}, {"username": "u", "registryuri": "docker.io"},
            {"username": "u", "password": "<% $secrets.p %>", "registryuri": "docker.io"},
            {"username": "u", "password": "<% $secrets.p %>", "registryuri": "https://index.docker.io/v1/"},
        )
        for more in ([], [{"type": "data", "name": "image", "uri": "x"}], [{"type": "data", "name": "d", "uri": "x"}])
    ],
    "ends": [
        [code, said]
        for code in (1, 3, 127, 137, 139, 253)
        for said in (
            "", "bash: x: Command not found", "ImportError: no module", "NameError: name 'x' is not defined",
            "NameError: name 'x'\nis not defined", "AttributeError: 'A' object has no attribute 'b'",
            "Segmentation fault", "(core dumped)", "prog: unknown option -x", "prog: invalid argument: y",
            "CUDA_ERROR_ECC_UNCORRECTABLE", "cuda runtime error (2) : out of memory",
            "cuda runtime error 2 : out of memory", "FileNotFoundError: [Errno 2] No such file or directory: 'x'",
            "IndexError: list index out of range", "SyntaxError: invalid syntax", "UnicodeDecodeError: 'utf-8'",
            "CUDA driver version is insufficient for CUDA runtime version", "Signal code: Address not mapped (1)",
            "tensorflow.errors.ResourceExhaustedError: OOM when allocating", "EOFError: Ran out of input",
            "ImportError: x\nSegmentation fault", "ModuleNotFoundError: No module named 'x'", "RuntimeError: x",
        )
    ],
}  # fmt: skip

# Jobs of tests/bring/openpai whose tasks' variables are asked for.
ENVIRONMENTS = ("ddp", "hived", "parameters", "servers")

# Runs in a separate process, with the runtime's sources on its path. It makes no network requests.
_ASKS = r"""
import contextlib, io, json, os, re, subprocess, sys
from pathlib import Path
import yaml
source = Path(sys.argv[1])
sys.path[:0] = [str(source / "openpai-runtime" / "src"), str(source / "openpai-runtime" / "src" / "init.d")]
os.environ["PAI_CURRENT_TASK_ROLE_NAME"] = "main"
import image_checker, initializer
from common import utils
from common.exceptions import ImageNameError

def checker(uri, auth=None, secrets=None):
    row = {"name": "image", "uri": uri, **({"auth": auth} if auth else {})}
    roles = {"main": {"dockerImage": "image"}}
    return image_checker.ImageChecker({"prerequisites": [row], "taskRoles": roles}, secrets)

def images(uri):
    try:
        return bool(checker(uri)._get_normalized_image_info())
    except ImageNameError:
        return False

def registries(uri, registry):
    auth = {"username": "u", "password": "<% $secrets.p %>", "registryuri": registry}
    return bool(checker(uri, auth, {"p": "x"})._basic_auth_headers)

def secrets(text, given):
    return utils.render_string_with_secrets(text, given)

# Whether the checker looks for the image with all that the job has, or without secrets.
def checks(rows, given):
    job = {"prerequisites": rows, "taskRoles": {"main": {"dockerImage": "image"}}}
    try:
        found = image_checker.ImageChecker(job, given)
    except (AssertionError, UnboundLocalError):
        return False
    auth = rows[0].get("auth", {})
    return bool(found._basic_auth_headers) or not (given and "username" in auth and "password" in auth)

# The cluster writes a lone `=` into its file of secrets as it is.
def passwords(text):
    try:
        secrets = yaml.safe_load("p: " + text if text == "=" else json.dumps({"p": text}))
    except yaml.YAMLError:
        return False
    return utils.render_string_with_secrets("<% $secrets.p %>", secrets) == text

def texts(value):
    try:
        read = yaml.safe_load(initializer.replace_ref(str([value]), {}, None, "main"))
    except yaml.YAMLError:
        return False
    return read == [value]

# go/pkg/aggregator/error_aggregator.go takes the first row of which all that it names is there.
spec = yaml.safe_load((source / "pai/src/k8s-job-exit-spec/config/k8s-job-exit-spec.yaml").read_text())["spec"]
rows = [(row["code"], one) for row in spec if row["code"] > 0
        for one in (row.get("pattern") or {}).get("runtimeContainerPatterns", ())]

def ends(code, said):
    for own, row in rows:
        if "gpuInfo" in row or "platformLogRegex" in row or row.get("exitCode", code) != code:
            continue
        if "userLogRegex" not in row or re.search(row["userLogRegex"], said):
            return own
    return 255

# The server's variables, and those that the runtime makes of addresses and ports. The description of a job that the
# server gives the controller is made here: its module needs a cluster.
def environments(text):
    import framework_parser
    job = yaml.safe_load(text)
    module = source / "pai/src/rest-server/src/models/v2/job/runtime-env.js"
    asks = "const m=require(process.argv[1]);let t='';process.stdin.on('data',d=>t+=d).on('end',()=>"
    asks += "console.log(JSON.stringify(m.generateFrameworkEnv('me~'+JSON.parse(t).name,JSON.parse(t),'default'))))"
    said = subprocess.run(["node", "-e", asks, str(module)], input=json.dumps(job), capture_output=True, text=True,
                          check=True).stdout
    common = {name: str(value) for name, value in json.loads(said).items()}
    roles, statuses, host = [], [], 0
    for name, role in job["taskRoles"].items():
        ports = dict(role["resourcePerInstance"].get("ports", {}))
        ports.update({own: 1 for own in ("ssh", "http") if own not in ports})
        spec = {"schedulePortStart": 15000, "schedulePortEnd": 40000,
                "ports": {label: {"count": count} for label, count in ports.items()}}
        short = re.sub("[^a-z0-9]", "", name.lower())
        pod = {"metadata": {"annotations": {"rest-server/port-scheduling-spec": json.dumps(spec)}}}
        roles.append({"name": short, "taskNumber": role.get("instances", 1), "task": {"pod": pod}})
        tasks = []
        for index in range(role.get("instances", 1)):
            host += 1
            placed = {"podHostIP": f"10.0.0.{host}", "podUID": f"{short}-{index}"}
            tasks.append({"index": index, "attemptStatus": placed})
        statuses.append({"name": short, "taskStatuses": tasks})
    framework = {"spec": {"taskRoles": roles}, "status": {"attemptStatus": {"taskRoleStatuses": statuses}}}
    found = []
    for name, row in zip(job["taskRoles"], roles):
        for index in range(row["taskNumber"]):
            os.environ.update(FC_TASK_INDEX=str(index), FC_TASKROLE_NAME=row["name"])
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                framework_parser.generate_runtime_env(framework)
            runtime = dict(re.findall("export (\w+)='(.*)'", printed.getvalue()))
            own = {"PAI_CURRENT_TASK_ROLE_NAME": name, "PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX": str(index),
                   "PAI_TASK_INDEX": str(index)}
            if job["taskRoles"][name]["resourcePerInstance"]["gpu"] == 0:
                own["NVIDIA_VISIBLE_DEVICES"] = "none"
            found.append({**common, **own, **runtime})
    return found

asked = json.load(sys.stdin)
json.dump({name: [[*one, globals()[name](*one)] for one in cases] for name, cases in asked.items()}, sys.stdout)
"""


def answers(source: Path) -> Answers:
    """Each question with the answer of OpenPAI's runtime."""
    done = subprocess.run(
        [sys.executable, "-c", _ASKS, str(source)], input=json.dumps({**QUESTIONS, "environments": _job_texts()}),
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    given: Answers = json.loads(done.stdout)
    # The jobs are files of this repository.
    given["environments"] = [[name, case[-1]] for name, case in zip(ENVIRONMENTS, given["environments"], strict=True)]
    return given


def _job_texts() -> list[list[str]]:
    return [[(JOBS / f"{name}.yaml").read_text("utf-8")] for name in ENVIRONMENTS]


def recorded() -> Answers:
    kept: Answers = json.loads(RECORDED.read_text("utf-8"))["answers"]
    return kept


if __name__ == "__main__":
    content = {
        "source": "microsoft/openpai-runtime v0.1.11, microsoft/pai v1.8.0: python -m tests.support.openpai_source",
        "answers": answers(Path(os.environ[VARIABLE])),
    }
    RECORDED.write_text(json.dumps(content, indent=1) + "\n", "utf-8")
