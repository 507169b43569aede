# SPDX-License-Identifier: Apache-2.0
"""Instances of the local AWS as machines of the hosts: booted by their user data, commanded by Systems Manager."""
