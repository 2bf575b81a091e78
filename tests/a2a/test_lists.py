"""A list of tasks is of one moment: what it shows, how it is filtered and its count agree while tasks change."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import httpx2

from tests.harness.server import Server

TASKS = 30
SUBMITTED = "TASK_STATE_SUBMITTED"


def test_a_list_agrees_with_itself_while_tasks_are_cancelled(server: Server) -> None:
    headers = {"authorization": f"Bearer {server.key}", "a2a-version": "1.0"}
    with httpx2.Client(base_url=f"{server.url}/a2a", headers=headers, timeout=60, trust_env=False) as http:

        def submit() -> str:
            message = {"messageId": "m", "role": "ROLE_USER", "contextId": "of-one-moment", "parts": [{"text": "x"}]}
            sent = {"message": message, "configuration": {"returnImmediately": True}}
            return str(http.post("/message:send", json=sent).json()["task"]["id"])

        def submitted() -> int:
            query = {"contextId": "of-one-moment", "status": SUBMITTED, "pageSize": "100"}
            found = http.get("/tasks", params=query).json()
            states = {task["status"]["state"] for task in found["tasks"]}
            assert states <= {SUBMITTED}
            assert (len(found["tasks"]), found["nextPageToken"]) == (found["totalSize"], "")
            return len(found["tasks"])

        made = [submit() for _ in range(TASKS)]
        assert submitted() == TASKS

        def cancel() -> None:
            for task_id in made:
                assert http.post(f"/tasks/{task_id}:cancel", json={}).status_code == 200
                # A request for the list first adds what was recorded since the last request.
                submitted()

        with ThreadPoolExecutor(2) as pool:
            cancelling = pool.submit(cancel)
            while not cancelling.done():
                submitted()
            cancelling.result()
        assert submitted() == 0
