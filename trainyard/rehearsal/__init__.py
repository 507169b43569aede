# SPDX-License-Identifier: Apache-2.0
"""Judges what a rehearsal saw, and reports it. Pure: rehearsing/ starts the stack and collects the evidence."""
