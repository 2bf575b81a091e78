"""What events mean: wires go in, in ledger order, and state comes out; no I/O, no clock, no randomness.
The fold of a task attempt is in one module, `attempt`, driven by the contract (`machine`, the compiled
`task-state-machine.json`). Two kinds of state are built on it:

- the *streams* of seed 001: `stream` (one task stream by itself), `artifact`, `project` (tasks and contexts), and
  `replay`, which folds any ordered wires into all of them;
- the *world* of one workspace, which commands decide by: its entities and how records change them. `fold` has one
  case for each event type.
"""
