"""WHAT IT MEANS: wires in the order of the ledger go in, state comes out; no I/O, no clock, no randomness.

Two folds stand here on one contract (`machine`, the compiled `task-state-machine.json`):

- the *streams* of seed 001: `attempt` (one task stream), `artifact`, `project` (tasks and contexts), and
  `replay`, which folds any ordered wires into all of them;
- the *world* of one workspace, which the commands decide by: its entities and how records move them.
"""
