# SPDX-License-Identifier: Apache-2.0
"""Checks access to the local AWS: evaluates the policies in moto's IAM for each call, before moto gets it.

moto's own evaluation is off by default, and stays off: it considers only actions, and treats every resource as `*`.
"""
