"""New workspaces: those that operators create, and those of signup."""

from __future__ import annotations

from redkey.services.caller import Caller
from redkey.services.workspaces import Begun, Founding, begin_workspace, check_visitor, new_workspace_id, setting_of


async def found_workspace(caller: Caller, founding: Founding) -> Begun:
    """Create a workspace on a topic of its own, and announce its first records."""
    means = caller.means
    # Before anything is created; the unit checks once more.
    check_visitor(means.store, caller.actor)
    workspace_id = new_workspace_id(means.ids, founding.idem)
    topic = await means.coordinator.create_topic(setting_of(workspace_id))
    begun = await caller.act(
        lambda unit: begin_workspace(unit, topic, workspace_id, means.ids, means.signing, founding), topic
    )
    if not begun.repeated:
        means.coordinator.announce(begun.topic, begun.records)
    return begun
