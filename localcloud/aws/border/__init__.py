# SPDX-License-Identifier: Apache-2.0
"""The border of the local AWS: each request becomes one value, and moto gets a request written from that value.

The judge and moto read requests in two ways. Whatever one of them sees and the other does not, somebody uses to have
one call judged and another one carried out. So a request is read once, by botocore's model of its operation
(`read`): names that the model lacks, elements behind a gap, second places for a value are not in the value. The
request that moto gets (`written`) has nothing that is not in it: docs/decisions/0026.

| module | what it reads or writes |
| --- | --- |
| flat | parameters of EC2 and query services |
| json_values | parameters of JSON services |
| s3_values | headers and query of S3 |
| xml_body | S3's documents, both ways |
| chunked | bodies that clients send in pieces |
| written | the request for moto |
"""
