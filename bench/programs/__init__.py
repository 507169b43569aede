# SPDX-License-Identifier: Apache-2.0
"""Our Pulumi program and a flat one that makes the same resources, each in a fresh process under Pulumi's mocks."""
