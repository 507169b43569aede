# SPDX-License-Identifier: Apache-2.0
"""Programs that the launcher runs beside training, with the image's Python and the framework's own libraries.

They have a folder of their own, because Python searches a program's folder first: `launcher/frameworks` has files with
the names of frameworks, which would hide them.
"""
