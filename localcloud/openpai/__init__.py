# SPDX-License-Identifier: Apache-2.0
"""OpenPAI on the local cloud: the REST server that clients speak to, and the controller that retries and completes."""
