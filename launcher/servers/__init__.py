# SPDX-License-Identifier: Apache-2.0
"""Programs that the launcher runs beside training, by the image's Python and with the framework's own libraries.

They lie apart: Python puts a program's folder before all others, and a file named like a framework would hide it.
"""
