"""Workflow definitions: validate, draft, change and publish them. A published version never changes."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta

from redkey.shapes.fields import Body, Extended, Page, PageQuery, Reply, Stateful, one_of
from redkey.shapes.operation import PRODUCE, READ, Operation

Plan = dict[str, Any]
SimulatedSeconds = Annotated[float, Meta(ge=0, le=31_536_000)]
VersionNumber = Annotated[int, Meta(ge=1, le=999_999)]


class PlanBody(Body, frozen=True, kw_only=True):
    """A plan to check."""

    plan: Plan


class NewDefinition(Body, frozen=True, kw_only=True):
    """The plan of a new definition; a draft may still have errors."""

    plan: Plan


class NewVersion(Body, frozen=True, kw_only=True):
    """The plan of the next draft; without one, the plan of the last version."""

    plan: Plan | None = None


class DraftChange(Body, frozen=True, kw_only=True):
    """A change of the draft's plan: a JSON merge patch (RFC 7396) of one revision."""

    plan: Plan
    revision: Annotated[
        int, Meta(ge=1, lt=1 << 31, description="The revision of the draft that the change is for, as it was read.")
    ]


class DefinitionsQuery(PageQuery, frozen=True, kw_only=True):
    """Which definitions: those that are published, those that never were, or all."""

    state: Annotated[Literal["draft", "published"], Meta(description="Those in one state [all].")] | None = None


class DefinitionQuery(Body, frozen=True, kw_only=True):
    """The version whose plan to show."""

    version: VersionNumber | None = None


class PlanFinding(Reply, frozen=True, kw_only=True):
    """One error or warning about a plan: where it is, and what to do about it."""

    code: str
    path: str
    message: str


class Validation(Reply, frozen=True, kw_only=True):
    """Whether a plan can run; errors prevent it, warnings are advice."""

    valid: bool
    errors: tuple[PlanFinding, ...]
    warnings: tuple[PlanFinding, ...]


class PlanSimulation(Body, frozen=True, kw_only=True):
    """A plan, and the assumptions of its simulation."""

    plan: Plan
    agents: Annotated[
        dict[str, Annotated[int, Meta(ge=0, le=1000)]], Meta(description="How many agents have a role; 1 by default.")
    ] = msgspec.field(default_factory=dict)
    seconds: Annotated[dict[str, SimulatedSeconds], Meta(description="How long a task takes, by its id.")] = (
        msgspec.field(default_factory=dict)
    )
    each_seconds: Annotated[SimulatedSeconds, Meta(description="How long every other task takes.")] = 60
    gate_seconds: Annotated[SimulatedSeconds, Meta(description="How long an approval takes.")] = 0


class RoleForecast(Reply, frozen=True, kw_only=True):
    """How busy the agents of a role are, and how long tasks wait for them."""

    agents: int
    tasks: int
    busy_seconds: float
    utilisation: float
    waited_seconds: float
    longest_wait_seconds: float
    most_waiting: int


class PlanForecast(Reply, frozen=True, kw_only=True):
    """The result of a simulation. `bottleneck` is the role whose tasks waited longest; `left` are tasks never done."""

    finished: bool
    makespan_seconds: float
    critical_path: tuple[str, ...]
    critical_path_seconds: float
    roles: dict[str, RoleForecast]
    bottleneck: str
    waited_for_room_seconds: float
    most_at_work: int
    levels: int
    records: int
    left: tuple[str, ...]


class Draft(Stateful, frozen=True, kw_only=True):
    """A draft; `validation` lists the errors that prevent its publication."""

    SPECIFIC: ClassVar[str] = "definition_id"
    definition_id: str
    version: int
    status: Annotated[str, one_of("draft")]
    state: Annotated[str, one_of("draft")] = ""
    name: str = ""
    revision: int
    validation: Validation
    updated_at: str


class Published(Stateful, frozen=True, kw_only=True):
    """A version that can be run and never changes."""

    SPECIFIC: ClassVar[str] = "definition_id"
    definition_id: str
    version: int
    status: Annotated[str, one_of("published")]
    state: Annotated[str, one_of("published")] = ""
    event_id: str
    validation: Validation


class Version(Reply, frozen=True, kw_only=True):
    """One published version."""

    version: int
    published_at: str
    published_by: str
    event_id: str


class DefinitionSummary(Stateful, frozen=True, kw_only=True):
    """A definition in a list. `version` is the last published one, `draftVersion` the draft's."""

    SPECIFIC: ClassVar[str] = "definition_id"
    definition_id: str
    name: str = ""
    status: Annotated[str, one_of("draft", "published")]
    state: Annotated[str, one_of("draft", "published")] = ""
    version: int | None = None
    draft_version: int | None = None
    erased: bool = False


class PublishedPlan(Reply, frozen=True, kw_only=True):
    """The plan of the last published version; null when its text was erased."""

    version: int
    plan: Plan | None


class DraftPlan(Reply, frozen=True, kw_only=True):
    """The plan of the draft."""

    version: int
    revision: int
    plan: Plan


class Definition(DefinitionSummary, frozen=True, kw_only=True):
    """A definition with its published plan and its draft. `plan` is the plan of the requested version, else
    the draft's, else the published one; `shownVersion` says which."""

    published: PublishedPlan | None = None
    draft: DraftPlan | None = None

    shown_version: int
    revision: int | None = None
    plan: Plan | None = None
    validation: Validation | None = None
    versions: tuple[Version, ...]


EXAMPLE_PLAN: Plan = {
    "version": "1.0",
    "name": "podcast-production",
    "roles": {
        "producer": {"description": "Owns intake, structure, and final packaging."},
        "researcher": {"description": "Finds and summarizes relevant background."},
    },
    "tasks": [
        {
            "id": "guest_intake",
            "title": "Summarize guest and topic brief",
            "role": "producer",
            "dependsOn": [],
            "outputs": ["guest_brief"],
            "completionCriteria": ["Guest background summarized", "Target episode angle identified"],
        },
        {
            "id": "guest_research",
            "title": "Research guest and market context",
            "role": "researcher",
            "dependsOn": ["guest_intake"],
            "outputs": ["research_packet"],
            "completionCriteria": ["At least five useful facts found", "Sources included"],
        },
    ],
    "policies": {"maxParallelTasks": 5, "retry": {"maxAttempts": 2, "onFailure": "reopen"}},
}
_CONFLICT = {409: "There is no draft, or it was changed in the meantime."}

VALIDATE_DEFINITION = Operation(
    "validate_definition",
    "POST",
    "/workflow-definitions/validate",
    (*PRODUCE, *READ),
    body=PlanBody,
    reply=Validation,
    loose=True,
    summary="Check a plan without saving or starting it; always 200.",
    description="Check a plan without saving or starting it. The body is `{plan: ...}`, or plan.json itself; any JSON "
    "gets a result.",
    repeats="bytes",
    body_limit="plan_bytes",
    example={"plan": EXAMPLE_PLAN},
    reply_example={"valid": True, "errors": [], "warnings": []},
    method_name="definitions.validate",
    positional=("plan",),
)
SIMULATE_PLAN = Operation(
    "simulate_plan",
    "POST",
    "/workflow-definitions/simulate",
    (*PRODUCE, *READ),
    body=PlanSimulation,
    reply=PlanForecast,
    summary="Simulate a plan; nothing is recorded.",
    description="Run a plan of up to 1,000 tasks in memory, under a simulated clock: how long it takes, who is busy, "
    "who waits for whom. It uses the same code as a real run. Nothing is recorded.",
    replies={422: "The plan has errors, or too many tasks."},
    idempotent=False,
    body_limit="plan_bytes",
    example={"plan": EXAMPLE_PLAN, "agents": {"researcher": 2}},
    method_name="definitions.simulate",
    positional=("plan",),
)
CREATE_DEFINITION = Operation(
    "create_definition",
    "POST",
    "/workflow-definitions",
    PRODUCE,
    body=NewDefinition,
    reply=Draft,
    status=201,
    summary="Save a plan as the draft of a new definition.",
    repeats="bytes",
    body_limit="plan_bytes",
    example={"plan": EXAMPLE_PLAN},
    method_name="definitions.create",
    positional=("plan",),
)
LIST_DEFINITIONS = Operation(
    "list_definitions",
    "GET",
    "/workflow-definitions",
    READ,
    query=DefinitionsQuery,
    reply=Page[DefinitionSummary],
    summary="List the definitions of the workspace.",
    description="List the definitions of the workspace, by id.",
    method_name="definitions.list",
)
GET_DEFINITION = Operation(
    "get_definition",
    "GET",
    "/workflow-definitions/{definition_id}",
    READ,
    query=DefinitionQuery,
    reply=Definition,
    summary="Show a definition with its versions and a plan.",
    method_name="definitions.get",
)
CHANGE_DEFINITION = Operation(
    "change_definition",
    "PATCH",
    "/workflow-definitions/{definition_id}",
    PRODUCE,
    body=DraftChange,
    reply=Draft,
    summary="Change the draft by a JSON merge patch.",
    description="Change the draft; a published version never changes. A list of the patch takes the place of the "
    "whole list, so the patch is for one revision only: after another change, read the draft again.",
    repeats="bytes",
    replies=_CONFLICT,
    body_limit="plan_bytes",
    example={"plan": {"policies": {"maxParallelTasks": 3}}, "revision": 1},
    method_name="definitions.update",
    positional=("plan",),
)
CREATE_VERSION = Operation(
    "create_version",
    "POST",
    "/workflow-definitions/{definition_id}/versions",
    PRODUCE,
    body=NewVersion,
    reply=Draft,
    status=201,
    summary="Create the draft of the next version.",
    description="Create the draft of the next version, from the plan in the request or from the last version's.",
    repeats="bytes",
    replies={409: "There is a draft already."},
    body_limit="plan_bytes",
    example={},
    method_name="definitions.create_version",
    positional=("plan",),
)
PUBLISH_DEFINITION = Operation(
    "publish_definition",
    "POST",
    "/workflow-definitions/{definition_id}/publish",
    PRODUCE,
    body=Extended,
    reply=Published,
    summary="Publish the draft.",
    description="Publish the draft: from now on it can be run, and never changes.",
    replies={**_CONFLICT, 422: "The plan has errors."},
    method_name="definitions.publish",
)

OPERATIONS = (
    VALIDATE_DEFINITION,
    SIMULATE_PLAN,
    CREATE_DEFINITION,
    LIST_DEFINITIONS,
    GET_DEFINITION,
    CHANGE_DEFINITION,
    CREATE_VERSION,
    PUBLISH_DEFINITION,
)
