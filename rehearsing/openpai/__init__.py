# SPDX-License-Identifier: Apache-2.0
"""Rehearsals of OpenPAI: jobs train on the local cluster; there are no rules and policies to take away."""
