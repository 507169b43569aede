# SPDX-License-Identifier: Apache-2.0
"""Tries on OpenPAI: finds the deployed job of a run, puts the try's difference over it, and submits that."""
