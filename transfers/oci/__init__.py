# SPDX-License-Identifier: Apache-2.0
"""Files in OCI's object storage: store.py calls its API, refusals.py says what a refusal lacks."""
