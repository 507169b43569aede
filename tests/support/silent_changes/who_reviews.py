# SPDX-License-Identifier: Apache-2.0
"""Who acts and who reviews: provider settings, Pulumi's own keys, waivers, and files beside the stacks."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.support.examples import STACKS
from tests.support.review_examples import git
from tests.support.silence import AWS, Document, SilentChange

PROGRAM = frozenset({"program"})
# The folders of the product that a review runs.
_PRODUCT = ("catalog", "components", "launcher", "localcloud", "policies", "provider", "schemas", "trainyard")


def _config(values: Mapping[str, Any]) -> Callable[[Document], object]:
    return lambda document: document["config"].update(values)


def _other_settings_of_aws(document: Document) -> None:
    document["config"] |= {
        "aws:endpoints": [{"s3": "https://evil.example.com"}],
        "aws:assumeRoles": [{"roleArn": "arn:aws:iam::666666666666:role/x"}],
        "aws:secretKey": "topsecret123",
        "aws:profile": "mallory",
    }
    del document["config"]["aws:allowedAccountIds"]


def _other_settings_of_oci(document: Document) -> None:
    document["config"] |= {
        "oci:userOcid": "ocid1.user.oc1..mallory",
        "oci:tenancyOcid": "ocid1.tenancy.oc1..mallory",
        "oci:privateKey": "abc",
        "random:seed": "7",
    }
    document |= {
        "secretsprovider": "awskms://alias/mallory?region=us-east-1",
        "encryptionsalt": "v1:theirs",
        "environment": ["mallory/open"],
    }


def _change_project(repository: Path) -> None:
    """Another state backend, values for every stack, other plugins and another program in Pulumi.yaml."""
    file = repository / "Pulumi.yaml"
    project: Document = {"name": "trainyard", "main": "../trainyard", "stackConfigDir": "stacks", "runtime": "python"}
    file.write_text(yaml.safe_dump(project))
    (repository / "requirements.txt").write_text("trainyard==0.2.0\nnumpy==1.0 \\\n    --hash=sha256:aa\n")
    _commit(repository)
    project |= {
        "main": "../fork",
        "backend": {"url": "s3://mallory-states"},
        "config": {"aws:endpoints": {"value": [{"s3": "https://evil.example.com"}]}, "aws:secretKey": "abcdefgh"},
        "plugins": {"providers": [{"name": "trainyard", "path": "../fork/provider"}]},
    }
    file.write_text(yaml.safe_dump(project))
    (repository / "requirements.txt").write_text(
        "--extra-index-url https://evil.example.com/simple\ntrainyard==0.3.0\nleftpad==1.0\n"
    )


def _change_reviewer(repository: Path) -> None:
    """Every kind of file that decides about reviews and about what runs, in a repository like trainyard's own."""
    kinds = (
        "components/program.py",
        "policies/rules/public_bucket.py",
        "provider/plugin.py",
        "launcher/entry.py",
        "localcloud/hosts.py",
        "schemas/stack.schema.json",
        "trainyard/review/gates.py",
        ".github/workflows/review.yml",
    )
    for name in kinds:
        (repository / name).parent.mkdir(parents=True, exist_ok=True)
        (repository / name).write_text("# before\n")
    _commit(repository)
    for name in kinds:
        (repository / name).write_text("# after\n")
    (repository / ".github/workflows/review.yml").unlink()
    (repository / "notes.txt").write_text("nothing\n")


def _set_by_project(repository: Path) -> None:
    config = {"trainyard:logs": {"value": {"enabled": False}}}
    project = {"name": "trainyard", "stackConfigDir": "stacks", "runtime": "python", "config": config}
    (repository / "Pulumi.yaml").write_text(yaml.safe_dump(project))


def _review_arrives(repository: Path) -> None:
    """A clone of the product whose earlier commit has no `review` yet."""
    for name in _PRODUCT:
        shutil.copytree(
            STACKS.parent / name, repository / name, ignore=shutil.ignore_patterns("__pycache__", "node_modules")
        )
    recorder = repository / "trainyard/review/record.py"
    text = recorder.read_text("utf-8")
    recorder.unlink()
    _commit(repository)
    recorder.write_text(text, "utf-8")
    git(repository, "add", "-A")


def _code_in_submodule(repository: Path) -> None:
    """The job's code moves to another commit of a submodule."""
    train = repository / "stacks/examples/pytorch-ddp"
    git(train, "init", "-q")
    _commit(train)
    git(repository, "rm", "-rq", "--cached", str(train.relative_to(repository)))
    _commit(repository)
    next(train.glob("*.py")).write_text("print('other')\n")
    _commit(train)


def _move_stacks(repository: Path) -> None:
    """The folder of the stacks has another name, and one stack opens its network on the way."""
    (repository / "stacks").rename(repository / "environments")
    _commit(repository)
    (repository / "environments").rename(repository / "stacks")
    (file,) = (repository / "stacks").glob("Pulumi.*.yaml")
    document = yaml.safe_load(file.read_text())
    document["config"]["trainyard:network"]["nat"] = True
    file.write_text(yaml.safe_dump(document))


def _commit(repository: Path) -> None:
    git(repository, "add", "-A")
    git(repository, "commit", "-qm", "before as well")


def _waived(until: str, *rules: str) -> Document:
    return {rule: {"reason": "one experiment", "until": until} for rule in rules}


CHANGES = (
    SilentChange(
        number=2,
        title="other settings of the AWS provider",
        stack=AWS,
        before=_config({"aws:allowedAccountIds": ["123456789012"]}),
        change=_other_settings_of_aws,
        shows=(
            "5 settings of who acts or reviews",
            "Who reviews, and with which program",
            'aws:endpoints: not set -> [{"s3": "https://evil.example.com"}]',
            'aws:assumeRoles: not set -> [{"roleArn": "arn:aws:iam::666666666666:role/x"}]',
            'aws:allowedAccountIds: ["123456789012"] -> not set',
            "aws:secretKey: not set -> a credential in plain text",
            "aws:profile: not set -> mallory",
        ),
        trips=PROGRAM,
    ),
    SilentChange(
        number=2,
        title="other settings of OCI and of Pulumi",
        before=lambda document: document.update(encryptionsalt="v1:ours"),
        change=_other_settings_of_oci,
        shows=(
            "oci:userOcid: not set -> ocid1.user.oc1..mallory",
            "oci:tenancyOcid: not set -> ocid1.tenancy.oc1..mallory",
            "oci:privateKey: not set -> a credential in plain text",
            "random:seed: not set -> 7",
            "secretsprovider: not set -> awskms://alias/mallory",
            "encryptionsalt: one -> another one",
            'environment: not set -> ["mallory/open"]',
            "`up` takes its values, which are not known here",
        ),
        trips=PROGRAM,
    ),
    SilentChange(
        number=24,
        title="waivers of rules that do not fail",
        before=_config({"trainyard:waivers": _waived("2026-12-31", "budget")}),
        change=_config({"trainyard:waivers": _waived("2099-12-31", "budget", "mutable-tags")}),
        shows=(
            "waiver of `budget`: 2026-12-31 -> 2099-12-31",
            "waiver of `mutable-tags`: until 2099-12-31",
            "its reason: one experiment",
        ),
        trips=PROGRAM,
    ),
    SilentChange(
        number=27,
        title="a change that up refuses",
        change=lambda document: document["config"]["trainyard:bucket"].update(versioning=False),
        shows=("would be refused", "trainyard:bucket.versioning"),
        trips=frozenset({"replace", "exposure", "access-gain", "cost", "policy", "unproven", "program"}),
    ),
    SilentChange(
        number=3,
        title="another Pulumi yaml",
        files=_change_project,
        shows=(
            "beside the stacks",
            "backend.url: not set -> s3://mallory-states",
            "config.aws:endpoints: not set ->",
            "config.aws:secretKey: not set -> a credential in plain text",
            "main: ../trainyard -> ../fork",
            "plugins.providers",
            "trainyard: ==0.2.0 -> ==0.3.0",
            "leftpad ==1.0 added",
            "numpy ==1.0 removed",
            "--extra-index-url",
        ),
        trips=PROGRAM,
    ),
    SilentChange(
        number=3,
        title="a value that only the engine takes",
        files=_set_by_project,
        shows=("`trainyard:logs`", "../Pulumi.yaml, line 2", "move it into the stack file"),
        trips=PROGRAM,
    ),
    SilentChange(
        number=5,
        title="another reviewer",
        files=_change_reviewer,
        shows=(
            "the program",
            "the policies",
            "judges both sides by the changed rules",
            "policies/rules/public_bucket.py",
            "the provider",
            "the launcher",
            "the local cloud",
            "the schemas",
            "the review",
            "workflows",
            "removed .github/workflows/review.yml",
        ),
        trips=PROGRAM,
    ),
    SilentChange(
        number=25,
        title="an earlier revision without a review",
        files=_review_arrives,
        shows=("beside the stacks", "that revision has no `review` yet"),
        trips=PROGRAM,
    ),
    SilentChange(
        number=26,
        title="code in a submodule",
        files=_code_in_submodule,
        shows=("submodule", "stacks/examples/pytorch-ddp", "replaced"),
        trips=frozenset({"program", "replace"}),
    ),
    SilentChange(
        number=29,
        title="another folder of stacks",
        files=_move_stacks,
        shows=("the stacks moved: environments -> stacks", "opens: the subnet: to 0.0.0.0/0 through a NAT gateway"),
        trips=frozenset({"program", "exposure"}),
    ),
)
