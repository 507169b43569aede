# SPDX-License-Identifier: Apache-2.0
"""What resources of each type of pulumi_aws and pulumi_oci can do to an account, by what their services document.

`g`: grant access or hand out credentials. `o`: open a way in or out. `m`: move or share data. `r`: run code.
`c`: cost money while it stands. A type has the letters of its module, and those of the words in its name; EXCEPTIONS
have their own. Nothing here is read from the rows that reviews have.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path

MODULES: Mapping[str, str] = {
    # Identity, keys and what is shared between accounts.
    "g": "accessanalyzer account accountaccess acmpca cognito dataexchange iam identitystore lakeformation "
    "organizations ram resourcegroups rolesanywhere securitylake servicecatalog signer ssoadmin "
    "verifiedaccess verifiedpermissions DelegateAccessControl Identity IdentityDataPlane "
    "OperatorAccessControl SecurityAttribute Zpr controltower",
    "gm": "kms secretsmanager Kms Vault paymentcryptography cloudhsmv2 licensemanager sqs sns Ons Queue ecr "
    "ecrpublic Artifacts codeartifact GenericArtifactsContent acm CertificatesManagement oam "
    "observabilityadmin schemas Streaming fms servicequotas Limits",
    # Networks.
    "o": "ec2clientvpn ec2transitgateway directconnect globalaccelerator networkfirewall networkmanager "
    "route53 route53domains route53recoverycontrol route53recoveryreadiness servicediscovery shield vpc "
    "vpclattice waf wafregional wafv2 alb elb lb appmesh Dns NetworkFirewall Waas Waf Waa cloudfront "
    "networkmonitor networkflowmonitor VnMonitoring arcregionswitch arczonalshift fsx",
    "oc": "LoadBalancer NetworkLoadBalancer Bastion outposts location iot mailmanager",
    "go": "apigateway apigatewayv2 appsync ApiGateway transfer OspGateway",
    # Data that is stored, copied and sent.
    "gmc": "s3 s3control s3outposts s3tables glacier ObjectStorage efs FileStorage Lustre backup RecoveryMod "
    "DisasterRecovery dynamodb kinesis",
    "mc": "appfabric appflow appintegrations athena bcmdata billing budgets cleanrooms cloudtrail cloudwatch "
    "codeguruprofiler comprehend connect costexplorer cur customerprofiles datapipeline datasync datazone "
    "dax detective directoryservice directoryservicedata dlm dms docdb drs dsql elasticache elasticsearch "
    "evidently finspace glue grafana guardduty inspector inspector2 ivs ivschat kendra keyspaces lex m2 "
    "macie macie2 mediaconvert medialive mediapackage mediapackagev2 mediastore memorydb mq msk "
    "mskconnect neptune neptunegraph notifications odb opensearch opensearchingest pinpoint pipes "
    "qbusiness qldb quicksight rds redshift redshiftdata redshiftserverless rekognition rum securityhub "
    "ses sesv2 ssmcontacts ssmincidents storagegateway timestreaminfluxdb timestreamquery timestreamwrite "
    "transcribe workmail xray chatbot chime chimesdkmediapipelines cloudsearch cloudwatchomni amp "
    "codestarnotifications bedrockfoundation bedrockmodel rbin auditmanager cfg AiDocument AiLanguage "
    "AiVision Analytics Audit BigDataService Blockchain DataCatalog DataFlow DataIntegration "
    "DataLabellingService DataSafe Database DatabaseManagement DatabaseMigration Dblm Email Events "
    "FusionApps GoldenGate Integration LogAnalytics Logging MediaServices Mysql Nosql Oce Oda Opensearch "
    "Opsi Psql Redis Sch Tenantmanagercontrolplane VisualBuilder Apm ApmTraces CloudMigrations "
    "CloudBridge Monitoring ebs",
    # What runs code, as somebody.
    "grc": "lambda lambdamicrovms ecs eks batch sagemaker bedrock Functions ContainerEngine DataScience "
    "GenerativeAi imagebuilder gamelift amplify apprunner elasticbeanstalk emr emrcontainers "
    "emrserverless mwaa lightsail kinesisanalyticsv2 cloud9 codebuild codepipeline codecatalyst DevOps "
    "DatabaseTools workspaces appstream workspacesweb synthetics devicefarm",
    "r": "cloudcontrol cloudformation codecommit codeconnections codedeploy codestarconnections fis scheduler "
    "serverlessrepository sfn ssm swf elastictranscoder agentregistry devopsagent OsManagementHub "
    "ResourceManager ResourceScheduler ManagementAgent FleetAppsManagement FleetSoftwareUpdate "
    "Marketplace Desktops Autoscaling autoscaling autoscalingplans appautoscaling ComputeCloud Ocvp Opa "
    "Vbs ApmSynthetics ServiceCatalog AppMgmtControl",
    "orc": "ec2 Core",
    "c": "CapacityManagement DemandSignal savingsplans pricingplanmanager LicenseManager ClusterPlacementGroups",
    # What only watches, describes or advises.
    "": "appconfig applicationinsights codegurureviewer computeoptimizer costoptimizationhub devopsguru "
    "invoicing resiliencehub resourceexplorer uxc Adm AnnouncementsService ApmConfig Budget CloudGuard "
    "HealthChecks Jms ManagementDashboard MeteringComputation Optimizer StackMonitoring UsageProxy "
    "VulnerabilityScanning oci",
}
VERBS: Mapping[str, str] = {
    r"Policy|Permission|Grant|Membership|AccessKey|ApiKey|AuthToken|Credential|SecretKey|LoginProfile|UiPassword": "g",
    r"Role|User$|Group$|Principal|Trust|IdentityProvider|SamlProvider|OpenIdConnect|Authorizer|Share|Invitation": "g",
    r"Peering|Gateway|PublicIp|^Eip|Ingress|SecurityGroup|SecurityList|NetworkAcl|Route|Listener|LoadBalancer": "o",
    r"Endpoint|Vpn|Vpc$|Vcn$|Subnet$|NetworkInterface|Firewall|FunctionUrl|Proxy|Attachment|Website|Cors": "o",
    r"Replication|Export|Destination|Notification|Lifecycle|Backup|Snapshot|Copy|Stream|Delivery|Mirror|Vtap": "m",
    r"Preauthrequest|AccessPoint|LaunchPermission|CreateVolumePermission|Acl|Inventory|Object$|Logging": "m",
    r"Function$|Instance$|Fleet|Cluster$|Pipeline|Task|Notebook|Job|Association|Document$|Rotation|Hook|Schedule": "r",
    r"Instance|Cluster|Fleet|Volume$|Reservation|NatGateway|Database|Broker|Workspace|DedicatedHost|Quota": "c",
}
# A type that its module and name say wrongly.
EXCEPTIONS: Mapping[str, str] = {
    "aws:ec2/placementGroup:PlacementGroup": "",
    "aws:ec2/tag:Tag": "g",  # conditions of policies read tags
    "oci:Identity/tag:Tag": "g",
    "oci:Core/instanceMaintenanceEvent:InstanceMaintenanceEvent": "",
    "aws:ecr/lifecyclePolicy:LifecyclePolicy": "m",
    "aws:s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration": "m",
    "oci:ObjectStorage/objectLifecyclePolicy:ObjectLifecyclePolicy": "m",
    "aws:s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration": "m",
    "aws:s3/bucketVersioning:BucketVersioning": "mc",
    "aws:cloudwatch/logGroup:LogGroup": "",
    "oci:Logging/logGroup:LogGroup": "",
    "oci:Logging/log:Log": "",
    "oci:DataScience/project:Project": "",
    "oci:Identity/compartment:Compartment": "",
}
PACKAGES = ("pulumi_aws", "pulumi_oci")


@cache
def tokens_of_package(package: str) -> tuple[str, ...]:
    """All types that the package ships."""
    spec = find_spec(package)
    assert spec
    assert spec.origin
    text = Path(spec.origin).read_text("utf-8")
    listed = re.search(r'resource_modules="""\n(.*?)\n""",', text, re.DOTALL)
    assert listed, f"{package} lists its types in another way"
    return tuple(token for module in json.loads(listed[1]) for token in module["classes"])


def module_of_type(token: str) -> str:
    return token.split(":")[1].partition("/")[0]


def abilities_of_type(token: str) -> str:
    """The letters of a type. Raises LookupError for a module that nobody has described."""
    if token in EXCEPTIONS:
        return EXCEPTIONS[token]
    letters = next((key for key, names in MODULES.items() if module_of_type(token) in names.split()), None)
    if letters is None:
        raise LookupError(f"MODULES does not say what types of {module_of_type(token)} can do, such as {token}")
    found = letters + "".join(more for words, more in VERBS.items() if re.search(words, token.rpartition(":")[2]))
    return "".join(letter for letter in "gomrc" if letter in found)
