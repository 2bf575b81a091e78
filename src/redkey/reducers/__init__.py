"""WHAT IT MEANS: wires in the order of the ledger go in, state comes out; no I/O, no clock, no randomness.

An attempt at a task is folded in one place, `attempt`, by the contract (`machine`, the compiled
`task-state-machine.json`). Two kinds of state are built on it:

- the *streams* of seed 001: `stream` (one task stream by itself), `artifact`, `project` (tasks and contexts), and
  `replay`, which folds any ordered wires into all of them;
- the *world* of one workspace, which the commands decide by: its entities and how records move them. `fold` has one
  case for each event type.
"""
