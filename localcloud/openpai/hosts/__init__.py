# SPDX-License-Identifier: Apache-2.0
"""Tasks of the local OpenPAI, each as a host of its own, with the runtime that OpenPAI puts before its command."""
