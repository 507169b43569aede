# SPDX-License-Identifier: Apache-2.0
"""Images in OCI's container registry: where they go, who may push there, and which shapes they run on."""
