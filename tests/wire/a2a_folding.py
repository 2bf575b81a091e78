"""An A2A client's view of a stream, written from the specification only."""

from __future__ import annotations

import copy
from typing import Any

Json = dict[str, Any]


def fold(seen: Json | None, found: Json) -> Json:
    """Return the client's task after one more object; the message of a replaced status moves to the history."""
    if "task" in found:
        assert seen is None, "a stream has one snapshot"
        return copy.deepcopy(found["task"])
    assert seen is not None, "a stream begins with its snapshot"
    seen = copy.deepcopy(seen)
    if "statusUpdate" in found:
        update = found["statusUpdate"]
        assert (update["taskId"], update["contextId"]) == (seen["id"], seen["contextId"])
        if "message" in seen["status"]:
            seen.setdefault("history", []).append(seen["status"]["message"])
        seen["status"] = update["status"]
        return seen
    artifact = found["artifactUpdate"]["artifact"]
    listed = seen.setdefault("artifacts", [])
    places = [place for place, one in enumerate(listed) if one["artifactId"] == artifact["artifactId"]]
    if places:
        listed[places[0]] = artifact
    else:
        listed.append(artifact)
    return seen


def like_the_snapshot(seen: Json, snapshot: Json) -> None:
    """Compare a client's task with a snapshot, except for messages that the client sent itself."""
    assert seen["status"] == snapshot["status"]
    assert seen.get("artifacts", []) == snapshot.get("artifacts", [])
    assert (seen["id"], seen["contextId"]) == (snapshot["id"], snapshot["contextId"])

    def said_by_agents(task: Json) -> list[Json]:
        return [one for one in task.get("history", []) if one["role"] == "ROLE_AGENT"]

    assert said_by_agents(seen) == said_by_agents(snapshot)
