# SPDX-License-Identifier: Apache-2.0
"""Compartments, dynamic groups and policies."""

from components.oci.types.oci_resource_type import oci_type
from components.values.resource_types import ResourceType, input_names, inputs_in_reviews

IDENTITY_TYPES = (
    oci_type(
        "oci:Identity/dynamicGroup:DynamicGroup", replaced_by="compartmentId name", computed="definedTags freeformTags",
        named="name", existing="access: {{ existing: true, runs: {} }}", compared="matchingRule", judged="matchingRule",
        in_reviews=inputs_in_reviews(judged="matchingRule name", placed="compartmentId"),
        part="matched group",
    ),
    oci_type(
        "oci:Identity/policy:Policy",
        # The provider makes one change at a time: it locks all policies of a tenancy against one another.
        replaced_by="compartmentId name", computed="definedTags freeformTags versionDate", named="name",
        existing="access: {{ existing: true }}", compared="statements", judged="statements",
        statement_types="policies dynamic-groups", part="policy",
        in_reviews=inputs_in_reviews(judged="compartmentId name statements"),
    ),
    ResourceType(
        token="oci:Identity/domainsDynamicResourceGroup:DomainsDynamicResourceGroup", part="matched group",
        replaced_by=input_names("idcsEndpoint"),
        computed=input_names("description ocid tags urnietfparamsscimschemasoracleidcsextensionOciTags"),
        in_reviews=inputs_in_reviews(judged="displayName matchingRule", placed="idcsEndpoint schemas"),
    ),
    ResourceType(
        token="oci:Identity/compartment:Compartment", tags="freeformTags", part="folder",
        computed=input_names("compartmentId definedTags freeformTags"),
        in_reviews=inputs_in_reviews(placed="compartmentId enableDelete name"),
    ),
)  # fmt: skip
