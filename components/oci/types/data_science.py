# SPDX-License-Identifier: Apache-2.0
"""Projects, jobs and their runs, compute targets and notebooks."""

from components.oci.types.oci_resource_type import oci_type
from components.values.resource_types import LostWith, ResourceType, input_names, inputs_in_reviews

DATA_SCIENCE_TYPES = (
    oci_type(
        "oci:DataScience/project:Project", computed="definedTags description displayName freeformTags",
        lost=LostWith(
            "the project {name} goes, and OCI deletes none that still has jobs, notebook sessions or models of others",
            "name it as `project: { existing: … }` instead, after `pulumi state delete`", ("displayName",),
        ),
        shows_system_tags=True, ocid_kind="datascienceproject", compared="",
        in_reviews=inputs_in_reviews(placed="compartmentId"),
        harmless="a project only holds jobs together",
    ),
    oci_type(
        "oci:DataScience/job:Job",
        replaced_by=(
            "projectId artifactContentDisposition artifactContentLength jobArtifact jobConfigurationDetails "
            "jobEnvironmentConfigurationDetails jobLogConfigurationDetails jobNodeConfigurationDetails"
        ),
        computed=(
            "definedTags description displayName jobConfigurationDetails jobInfrastructureConfigurationDetails "
            "jobLogConfigurationDetails jobNodeConfigurationDetails jobStorageMountConfigurationDetailsLists"
        ),
        part="job",
        lost=LostWith(
            "the job {name} goes with the history of all its runs: their records, states and exit codes. Runs that are "
            "still going end, and so do tries",
            "let its runs end first, and note what their history is needed for. A job that only gets another name "
            "keeps all of it with `was:`; logs and objects in the bucket stay",
            ("displayName",),
        ),
        # A second CreateJobArtifact is not tried: where it fails, the job is in the state without its code.
        given={"jobArtifact": {"create": "CreateJob GetJob CreateJobArtifact"}},
        # Called where the state says `emptyArtifact: false`, which this version never writes.
        unreached={"an artifact in the state": "HeadJobArtifact"}, ready="CREATING ACTIVE",
        defaults={"deleteRelatedJobRuns": False},
        extra="jobArtifact artifactContentLength artifactContentDisposition deleteRelatedJobRuns",
        empty={"jobStorageMountConfigurationDetailsLists": []},
        delete_options={"delete_related_job_runs": "deleteRelatedJobRuns"}, behaviour="jobs.JobResource",
        ocid_kind="datasciencejob",
        compared="jobConfigurationDetails jobEnvironmentConfigurationDetails jobInfrastructureConfigurationDetails",
        is_listed_in_part=True, statement_types="data-science-family",
        in_reviews=inputs_in_reviews(
            planned=(
                "artifactContentDisposition artifactContentLength deleteRelatedJobRuns jobArtifact "
                "jobConfigurationDetails jobEnvironmentConfigurationDetails jobInfrastructureConfigurationDetails "
                "jobLogConfigurationDetails jobNodeConfigurationDetails jobStorageMountConfigurationDetailsLists"
            ),
            placed="compartmentId projectId",
        ),
    ),
    oci_type(
        "oci:DataScience/computeTarget:ComputeTarget",
        computed=(
            "definedTags description displayName freeformTags metadata "
            "computeConfigurationDetails.instanceConfiguration.bootVolumeSizeInGbs "
            "computeConfigurationDetails.instanceConfiguration.instanceShapeDetails "
            "computeConfigurationDetails.scalingPolicy"
        ),
        lost=LostWith(
            "the machines of the compute target {name} go, with what lies on their disks; runs on them end",
            "let the runs on it end first; checkpoints in the bucket stay", ("displayName",),
        ),
        # The work request must name the target by an entity with these words in it, and the action CREATED, UPDATED or
        # DELETED. One that fails is canceled. An update sends the whole configuration.
        entity="compute-target", waits_for_move=False, delete="DeleteComputeTarget GetWorkRequest GetComputeTarget",
        unreached={"a failure": "CancelWorkRequest ListWorkRequestErrors"}, ready="ACTIVE NEEDS_ATTENTION",
        renamed={"computeTargetSystemDatas": "computeTargetSystemData"}, behaviour="jobs.ComputeTargetResource",
        ocid_kind="datasciencecomputetarget", compared="",
        in_reviews=inputs_in_reviews(planned="computeConfigurationDetails", placed="compartmentId"),
    ),
    ResourceType(
        token="oci:DataScience/jobRun:JobRun", tags="freeformTags",
        replaced_by=input_names(
            "jobId projectId asynchronous jobConfigurationOverrideDetails "
            "jobEnvironmentConfigurationOverrideDetails jobInfrastructureConfigurationOverrideDetails "
            "jobLogConfigurationOverrideDetails jobNodeConfigurationOverrideDetails"
        ),
        computed=input_names(
            "definedTags displayName freeformTags jobConfigurationOverrideDetails "
            "jobEnvironmentConfigurationOverrideDetails jobInfrastructureConfigurationOverrideDetails "
            "jobLogConfigurationOverrideDetails jobNodeConfigurationOverrideDetails"
        ),
        lost=LostWith("the job run {name} ends, and its record goes", "let it end first", ("displayName",)),
    ),
    ResourceType(
        token="oci:DataScience/notebookSession:NotebookSession", tags="freeformTags",
        replaced_by=input_names(
            "projectId notebookSessionConfigDetails.shape notebookSessionConfigDetails.blockStorageSizeInGbs "
            "notebookSessionConfigDetails.notebookSessionShapeConfigDetails "
            "notebookSessionConfigDetails.privateEndpointId notebookSessionConfigDetails.subnetId"
        ),
        computed=input_names(
            "definedTags displayName freeformTags notebookSessionConfigDetails "
            "notebookSessionConfigurationDetails notebookSessionRuntimeConfigDetails "
            "notebookSessionStorageMountConfigurationDetailsLists state"
        ),
        lost=LostWith(
            "the notebook session {name} goes with its block volume and all files on it",
            "save its files in the bucket or in git first", ("displayName",),
        ),
    ),
)  # fmt: skip
