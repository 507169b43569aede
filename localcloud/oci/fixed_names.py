# SPDX-License-Identifier: Apache-2.0
"""The names and OCIDs that every local tenancy has, for stack files. Imports nothing that takes time."""

from localcloud.oci.ocids import fixed_ocid

REGION = "us-ashburn-1"
NAME = "trainyard-local"
TENANCY = fixed_ocid("tenancy", NAME)
COMPARTMENT = fixed_ocid("compartment", "training")
# The group of the user who starts runs.
USERS_GROUP = "scientists"
