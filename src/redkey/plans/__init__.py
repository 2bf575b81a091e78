"""plan.json: its model, the structure that reducers decide by, the checks before a run, and advice."""
