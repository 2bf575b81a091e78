"""The graph of a plan: levels, the longest chain, cycles. Linear in tasks and dependencies, and never recursive.

Tasks are places in a list; `upstream[i]` are the places that task i waits for. What is returned for a graph with cycles
is true of the part that has none.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

Edges = Sequence[Sequence[int]]


def downstream(upstream: Edges) -> list[list[int]]:
    """List, for each task, the tasks that wait for it."""
    found: list[list[int]] = [[] for _ in upstream]
    for place, above in enumerate(upstream):
        for other in above:
            found[other].append(place)
    return found


def in_order(upstream: Edges) -> list[int]:
    """Sort the tasks so that each comes after what it waits for; tasks on a cycle, and after one, are left out."""
    below = downstream(upstream)
    waits = [len(above) for above in upstream]
    order = [place for place, count in enumerate(waits) if not count]
    for place in order:
        for other in below[place]:
            waits[other] -= 1
            if not waits[other]:
                order.append(other)
    return order


def levels(upstream: Edges) -> list[list[int]]:
    """Group the tasks by the length of the longest chain before them: a level depends only on the levels before it."""
    depth = [0] * len(upstream)
    found: list[list[int]] = []
    for place in in_order(upstream):
        depth[place] = max((depth[other] + 1 for other in upstream[place]), default=0)
        if depth[place] == len(found):
            found.append([])
        found[depth[place]].append(place)
    return [sorted(level) for level in found]


def critical_path(upstream: Edges, weights: Sequence[float]) -> list[int]:
    """Return the chain of tasks with the largest sum of weights: the run cannot finish sooner."""
    total = [0.0] * len(upstream)
    before = [-1] * len(upstream)
    for place in in_order(upstream):
        longest = max(upstream[place], key=lambda other: total[other], default=-1)
        before[place] = longest
        total[place] = weights[place] + (total[longest] if longest >= 0 else 0.0)
    place = max(range(len(upstream)), key=lambda place: total[place], default=-1)
    chain: list[int] = []
    while place >= 0:
        chain.append(place)
        place = before[place]
    return chain[::-1]


def cycles(upstream: Edges) -> list[list[int]]:
    """Return one cycle for each group of tasks that wait for one another: a shortest one through the first task."""
    if len(in_order(upstream)) == len(upstream):
        return []
    return [_cycle(upstream, set(knot), min(knot)) for knot in _knots(upstream)]


def _cycle(upstream: Edges, knot: set[int], start: int) -> list[int]:
    """Find a shortest way from a task through its dependencies back to it, by breadth-first search."""
    came_from: dict[int, int] = {}
    pending = deque([start])
    while pending:
        place = pending.popleft()
        for other in upstream[place]:
            if other == start:
                way = [place]
                while way[-1] != start:
                    way.append(came_from[way[-1]])
                return way[::-1]
            if other in knot and other not in came_from:
                came_from[other] = place
                pending.append(other)
    raise AssertionError("a strongly connected component without a cycle")


def _knots(upstream: Edges) -> list[list[int]]:
    """List the strongly connected components with a cycle (Tarjan's algorithm with its own stack), by first task."""
    number, low = [-1] * len(upstream), [0] * len(upstream)
    stack: list[int] = []
    on_stack = [False] * len(upstream)
    found: list[list[int]] = []
    numbered = 0
    for root in range(len(upstream)):
        # Each entry is a task and how many of its edges have been followed.
        path = [(root, 0)] if number[root] < 0 else []
        while path:
            place, followed = path.pop()
            if followed:
                low[place] = min(low[place], low[upstream[place][followed - 1]])
            else:
                number[place] = low[place] = numbered
                numbered += 1
                stack.append(place)
                on_stack[place] = True
            for index in range(followed, len(upstream[place])):
                other = upstream[place][index]
                if number[other] < 0:
                    path += [(place, index + 1), (other, 0)]
                    break
                if on_stack[other]:
                    low[place] = min(low[place], number[other])
            else:
                if low[place] == number[place]:
                    knot = _take(stack, on_stack, place)
                    if len(knot) > 1 or place in upstream[place]:
                        found.append(knot)
    return sorted(found, key=min)


def _take(stack: list[int], on_stack: list[bool], place: int) -> list[int]:
    """Pop a task and everything above it from the stack: one component."""
    taken: list[int] = []
    while not taken or taken[-1] != place:
        taken.append(stack.pop())
        on_stack[taken[-1]] = False
    return taken
