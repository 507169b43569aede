# SPDX-License-Identifier: Apache-2.0
"""The border of the local AWS: parses each request into one value, and writes moto's request from that value.

The access check and moto would parse a request differently. An attacker could use the difference: the access check
would allow one call, and moto would execute another. So a request is parsed once, by botocore's model of its operation.
Names that the model lacks and list elements after a gap are left out. moto's request contains only what is in the
value: docs/decisions/0026.

| module | what it reads or writes |
| --- | --- |
| requests | whole requests: into a value, and back for moto |
| parameters | parameters of EC2, query and JSON services |
| s3_values | headers and query of S3 |
| xml_body | S3's documents, both ways |
"""
