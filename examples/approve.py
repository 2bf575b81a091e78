"""An approval by a human: show what waits, ask, and record the answer.

    python examples/approve.py

Workers cannot approve their own work, whatever key they use; the answer is recorded with the key that sent it.
"""

from redkey.client import RedKey
from redkey.errors import Forbidden


def main() -> None:
    rk = RedKey()
    waiting = list(rk.gates.list())
    print(f"{len(waiting)} to decide")
    for gate in waiting:
        task = rk.tasks.get(gate.task_id)
        print(f"\n{gate.title}\n  {task.summary}")
        for artifact in task.artifacts:
            print(f"  {artifact.name}: {rk.content.get(artifact.sha256).decode(errors='replace')[:200]}")
        try:
            if input("approve? [y/n] ").strip().lower().startswith("y"):
                rk.gates.approve(gate.gate_id)
                print("approved")
            else:
                decided = rk.gates.reject(gate.gate_id, input("what is missing? ") or "Not yet.")
                print("sent back, for another attempt" if decided.retry else "sent back; no attempts are left")
        except Forbidden as refused:
            print(refused.detail)


if __name__ == "__main__":
    main()
