# SPDX-License-Identifier: Apache-2.0
"""OCIDs and names, told apart. Pure: the deployer's policy asks it too."""


def is_ocid(text: str) -> bool:
    return text.startswith("ocid1.")
