# SPDX-License-Identifier: Apache-2.0
"""Who may do what in the local AWS: each call is judged by the policies that moto's IAM holds now.

moto's own judge looks at actions only, takes every resource for `*`, and is off unless a variable switches it on. It
stays off. This one stands before moto: what it does not know, it refuses.
"""
