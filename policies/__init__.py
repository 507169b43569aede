# SPDX-License-Identifier: Apache-2.0
"""A CrossGuard pack that judges what is about to be made by its properties alone, whoever wrote the program."""
