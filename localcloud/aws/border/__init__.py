# SPDX-License-Identifier: Apache-2.0
"""The border of the local AWS: parses each request into one value, and writes moto's request from that value.

The judge and moto would parse a request differently. An attacker could use the difference, so that the judge allows one
call and moto carries out another. So a request is parsed once, by botocore's model of its operation (`read`). Names
that the model lacks, list elements after a gap, and repeated values are left out. moto's request (`written`) contains
only what is in the value: docs/decisions/0026.

| module | what it reads or writes |
| --- | --- |
| flat | parameters of EC2 and query services |
| json_values | parameters of JSON services |
| s3_values | headers and query of S3 |
| xml_body | S3's documents, both ways |
| chunked | bodies that clients send in chunks |
| written | the request for moto |
"""
