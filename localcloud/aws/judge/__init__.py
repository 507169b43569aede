# SPDX-License-Identifier: Apache-2.0
"""Decides who may do what in the local AWS: evaluates the policies in moto's IAM for each call.

moto's own evaluation only considers actions, treats every resource as `*`, and is off by default. It stays off. This
judge runs before moto, and refuses calls that it does not know.
"""
