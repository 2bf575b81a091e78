"""Roles: eligibility to claim certain tasks."""

from redkey.client.calls.roles import Roles as Roles
from redkey.shapes.roles import CreatedRole as CreatedRole
from redkey.shapes.roles import Role as Role
from redkey.shapes.roles import RoleGrant as RoleGrant
