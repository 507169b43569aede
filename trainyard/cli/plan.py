# SPDX-License-Identifier: Apache-2.0
"""`trainyard plan` and `trainyard access`: show what follows from a stack file, without any cloud."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from catalog.platforms import Lacks, find_capability, require_capability
from catalog.secret_looks import without_tokens
from components.plan import show
from components.plan.documents import ImpossibleDocumentError, PlanDocuments, run_documents, run_documents_as, yaml_text
from components.plan.platform import AccessReporting
from schemas.name_suggestions import suggest_name
from trainyard.cli.out import print_data, print_json, say
from trainyard.cli.planning import find_stack_file, plan_or_exit, stack_arguments


@click.command()
@stack_arguments
@click.option("--launch", metavar="JOB/RUN/NODE", help="Print only this node's launch document, as JSON.")
@click.option("--documents", is_flag=True, help="Print what the platform is told about each run, in its own language.")
@click.option(
    "--as",
    "document_form",
    metavar="FORM",
    help="With --documents: for another program that starts runs there, such as `ads`.",
)
def plan(stack: str, stacks: Path, form: str, launch: str | None, documents: bool, document_form: str | None) -> None:
    """Show what follows from STACK_OR_FILE: access, network, storage, jobs, and what each node of a run gets.

    With --documents, YAML for each run: on OpenPAI the job as it is submitted, elsewhere the inputs of the run with the
    environment and launch document of each node. References that only `pulumi up` fills in stay as they are.

    Secrets are never shown. Exits with 1 when the file has errors, as `trainyard check` would.
    """
    made = plan_or_exit(stack, stacks, form)
    if documents and launch is not None:
        raise click.UsageError("--documents and --launch cannot be used together")
    if document_form and not documents:
        raise click.UsageError("--as needs --documents")
    if documents:
        plan_documents = find_capability(made.platform, PlanDocuments)
        if isinstance(plan_documents, Lacks):
            raise click.UsageError(plan_documents.reason)
        folder, notes = find_stack_file(stack, stacks).parent, dict[str, Sequence[str]]()
        if document_form and document_form not in plan_documents.forms:
            forms = ", ".join(plan_documents.forms) or "there is none"
            raise click.UsageError(f"a stack for {made.platform} has no documents as `{document_form}`: {forms}")
        try:
            if document_form:
                of_runs, notes = run_documents_as(made, plan_documents, folder, document_form)
            else:
                of_runs = run_documents(made, plan_documents, folder)
        except ImpossibleDocumentError as problem:
            raise click.ClickException(str(problem)) from None
        except (OSError, UnicodeError) as problem:
            raise click.ClickException(f"a file of the stack cannot be read: {problem}") from None
        if form == "json":
            print_json(show.json_text(of_runs))
        else:
            print_data(without_tokens(yaml_text(made, of_runs, notes)))
    elif launch is not None:
        try:
            node = show.find_node(made, launch)
        except show.UnknownNameError as wrong:
            raise click.UsageError(f"{wrong} in {made.stack}: {suggest_name(wrong.name, wrong.choices)}") from None
        print_json(show.json_text(node.launch))
    elif form == "json":
        print_json(show.json_text(made))
    else:
        say(show.plan_text(made))


@click.command()
@stack_arguments
@click.option("--deployers", metavar="GROUP", default="deployers", help="The group of the people who run `pulumi up`.")
def access(stack: str, stacks: Path, form: str, deployers: str) -> None:
    """Show who may do what in STACK_OR_FILE: in words, as policy statements, and the deployer's least policy.

    Statements are marked if no document names their permissions outright. Exits with 1 when the file has errors.
    """
    made = plan_or_exit(stack, stacks, form)
    try:
        report = require_capability(made.platform, AccessReporting).build(made, deployers)
    except ValueError as wrong:
        raise click.UsageError(f"--deployers: {wrong}") from None
    if form == "json":
        print_json(show.json_text(report))
    else:
        say(report.text())
