# SPDX-License-Identifier: Apache-2.0
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localcloud.oci import models, sdk
from localcloud.server.api_errors import ApiError

JOB = {
    "projectId": "p",
    "compartmentId": "c",
    "jobConfigurationDetails": {"jobType": "DEFAULT", "environmentVariables": {"A": "1"}},
    "jobEnvironmentConfigurationDetails": {"jobEnvironmentType": "OCIR_CONTAINER", "image": "i", "cmd": ["x"]},
}


def test_a_valid_body_is_returned_without_its_nulls() -> None:
    assert models.validate_body("data_science", "CreateJobDetails", {**JOB, "description": None}) == JOB


@pytest.mark.parametrize(
    ("change", "code", "message"),
    [
        ({"projectId": None}, "MissingParameter", "projectId"),
        ({"projectId": 3}, "InvalidParameter", "projectId must be a string"),
        ({"freeformTags": {"a": 1}}, "InvalidParameter", "freeformTags.a must be a string"),
        ({"displayNam": "x"}, "InvalidParameter", "did you mean displayName"),
        ({"jobConfigurationDetails": {"jobType": "NONE"}}, "InvalidParameter", "jobType must be one of DEFAULT, EMPTY"),
        (
            {"jobConfigurationDetails": {"jobType": "DEFAULT", "maximumRuntimeInMinutes": True}},
            "InvalidParameter",
            "jobConfigurationDetails.maximumRuntimeInMinutes must be a whole number",
        ),
        (
            {"jobEnvironmentConfigurationDetails": {"jobEnvironmentType": "OCIR_CONTAINER"}},
            "MissingParameter",
            "jobEnvironmentConfigurationDetails.image",
        ),
        (
            {
                "jobStorageMountConfigurationDetailsList": [
                    {"storageType": "OBJECT_STORAGE", "namespace": "n", "bucket": "b"}
                ]
            },
            "MissingParameter",
            "jobStorageMountConfigurationDetailsList[0].destinationDirectoryName",
        ),
    ],
)
def test_the_first_mistake_is_named(change: dict[str, Any], code: str, message: str) -> None:
    with pytest.raises(ApiError) as refused:
        models.validate_body("data_science", "CreateJobDetails", {**JOB, **change})
    assert refused.value.code == code
    assert message in refused.value.message


def test_a_value_outside_its_enumeration_is_refused() -> None:
    body = {"name": "b", "compartmentId": "c", "versioning": "Sometimes"}
    with pytest.raises(ApiError, match="versioning must be one of Disabled, Enabled"):
        models.validate_body("object_storage", "CreateBucketDetails", body)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
_NAMES = sorted(models.model_fields("data_science", "CreateJobDetails"))


@given(st.dictionaries(st.sampled_from(_NAMES) | st.text(max_size=4), _JSON, max_size=6))
def test_any_body_is_validated_or_refused(body: dict[str, Any]) -> None:
    with suppress(ApiError):
        models.validate_body("data_science", "CreateJobDetails", {"projectId": "p", "compartmentId": "c", **body})


def test_missing_operations_are_named() -> None:
    assert sdk.operation_name("GET", "/20190101/models/ocid1.model") == "GetModel"
    assert sdk.operation_name("POST", "/20160918/drgs") == "CreateDrg"
    assert sdk.operation_name("GET", "/nothing/like/it") == "GET /nothing/like/it"


def test_a_model_that_the_sdk_lacks_is_a_key_error() -> None:
    with pytest.raises(KeyError):
        sdk.sdk_model("core", "NoSuchModel")
