# SPDX-License-Identifier: Apache-2.0
"""A CrossGuard pack. It judges resources before they are made, by their properties alone, whoever wrote the program."""
