# SPDX-License-Identifier: Apache-2.0
"""Tokens are taken out of any text, and names that begin like one are left."""

import pytest

from catalog.secret_looks import without_tokens

TOKENS = (
    "ghp_" + "a1B2c3D4e5F6" * 3, "github_pat_11ABCDEFG0" + "x1Y2" * 10, "gho_" + "Z9" * 18, "AKIAIOSFODNN7EXAMPLE",
    "ASIAIOSFODNN7EXAMPLE", "hf_" + "AbCd1234" * 4, "glpat-" + "x1y2-z3_" * 3, "xoxb-" + "1234567890-abcDEF" * 2,
    "sk-proj-" + "a1B2c3D4" * 6, "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P",
    "AccountKey=" + "Ab1/" * 12 + "==",
    "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEA\n-----END RSA PRIVATE KEY-----",
)  # fmt: skip
NAMES = (
    "hf_resnet_50_with_augmentation", "sk-learn-model-training-2024", "ghp_short", "AKIA", "hf-text-model-2024",
    "ocid1.compartment.oc1..aaaaaaaaqa3fdyvnsps4m4cxbrubespqea6ex72r5ddlzdt7f3dgpjyxynbn", "disk-0123456789abcdef0123",
    "sha256:" + "0123456789abcdef" * 4, "task-ghp", "arn:aws:iam::123456789012:role/AKIAROLE",
)  # fmt: skip


@pytest.mark.parametrize("token", TOKENS)
def test_tokens_are_masked_wherever_they_stand(token: str) -> None:
    for text in (
        token,
        f"`{token}` is not a region",
        f"a/{token}:1.0",
        f"[{token}]",
        f'{{"x": "{token}"}}',
        f"demo-{token}-x",
    ):
        masked = without_tokens(text)
        assert token[8:-4] not in masked, text
        assert "****" in masked


@pytest.mark.parametrize("name", NAMES)
def test_names_are_left(name: str) -> None:
    assert without_tokens(f"job {name}: {name}") == f"job {name}: {name}"
