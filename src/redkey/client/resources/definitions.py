"""Workflow definitions: validated, drafted, changed, published. A published version never changes."""

from redkey.client.calls.definitions import Definitions as Definitions
from redkey.shapes.definitions import Definition as Definition
from redkey.shapes.definitions import DefinitionSummary as DefinitionSummary
from redkey.shapes.definitions import Draft as Draft
from redkey.shapes.definitions import Plan as Plan
from redkey.shapes.definitions import PlanFinding as PlanFinding
from redkey.shapes.definitions import Published as Published
from redkey.shapes.definitions import Validation as Validation
from redkey.shapes.definitions import Version as Version
