# SPDX-License-Identifier: Apache-2.0
"""An image holds code, and often more than its authors remember."""

from components.values.resource_types import TypesWith
from policies.documents import has_policy_of, readable_statements
from policies.rule import PASS, JudgedResource, PolicyRule, PolicyVerdict, Unknown, by_type, fail_because
from policies.strangers import lets_strangers_in

REPOSITORY = "oci:Artifacts/containerRepository:ContainerRepository"
REPOSITORY_POLICY = "aws:ecr/repositoryPolicy:RepositoryPolicy"
PUBLIC_REPOSITORY = "aws:ecrpublic/repository:Repository"
EVERYBODY = "anybody can pull its images"


def judge_repository(resource: JudgedResource) -> PolicyVerdict:
    return fail_because(EVERYBODY) if resource.properties.get("isPublic") else PASS


def judge_repository_policy(resource: JudgedResource) -> PolicyVerdict:
    opened = any(map(lets_strangers_in, readable_statements(resource.properties.get("policy"))))
    return fail_because(EVERYBODY) if opened else PASS


def judge_public_repository(resource: JudgedResource) -> PolicyVerdict:
    return fail_because(EVERYBODY)


ROWS = TypesWith(
    lambda row: judge_repository_policy if has_policy_of(row, "repository") else None,
    {REPOSITORY: judge_repository, PUBLIC_REPOSITORY: judge_public_repository},
)


RULE = PolicyRule(
    id="public-repository",
    level="mandatory",
    asks="No image repository is open to the public.",
    remedy="set isPublic: false, or name the accounts in the policy, and let groups pull by a policy of theirs",
    types=ROWS,
    judge=by_type(ROWS),
    passes={
        "OCI's default": JudgedResource(REPOSITORY, {"displayName": "vision/dt"}),
        "private": JudgedResource(REPOSITORY, {"isPublic": False}),
        "one other account": JudgedResource(
            REPOSITORY_POLICY, {"policy": '{"Statement": {"Effect": "Allow", "Principal": {"AWS": "123456789012"}}}'}
        ),
    },
    fails={
        "public": JudgedResource(REPOSITORY, {"isPublic": True}),
        "by its policy": JudgedResource(
            REPOSITORY_POLICY, {"policy": '{"Statement": {"Effect": "Allow", "Principal": "*"}}'}
        ),
        "in AWS's public registry": JudgedResource(PUBLIC_REPOSITORY, {"repositoryName": "vision"}),
    },
    unknown={
        "decided elsewhere": JudgedResource(REPOSITORY, {"isPublic": Unknown("isPublic")}),
        "a policy that names another resource": JudgedResource(REPOSITORY_POLICY, {"policy": Unknown("policy")}),
    },
)
