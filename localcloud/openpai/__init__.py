# SPDX-License-Identifier: Apache-2.0
"""OpenPAI on the local cloud: the REST server for clients, and the controller that retries and completes jobs."""
