# SPDX-License-Identifier: Apache-2.0
"""Runs instances of the local AWS as machines on the hosts, with user data and commands of Systems Manager."""
