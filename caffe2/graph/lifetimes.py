"""How long blobs live, and which of them can share memory so that least is needed."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from caffe2.graph.sharing import dependencies, fixed_names, renamed
from caffe2.proto import caffe2_pb2


class LiveRange(NamedTuple):
    """The positions of the operators that first write and last touch a blob, and its bytes."""

    defined: int | None
    used: int | None
    size: int | None


Ranges: TypeAlias = Sequence[tuple[str, LiveRange]]
Assignments: TypeAlias = list[list[tuple[str, LiveRange]]]


class Optimization(NamedTuple):
    """A net with shared blobs, which blobs share one, and the new name of each."""

    net: caffe2_pb2.NetDef
    assignments: Assignments
    blob_assignments: dict[str, str]


class AssignmentAlgorithm(enum.Enum):
    """GREEDY takes the free memory of nearest size; DYNAMIC_PROGRAMMING finds the least."""

    GREEDY = 0
    DYNAMIC_PROGRAMMING = 1


class OperatorGraph:
    """Operators by position, and which of them have to be done before which."""

    def __init__(self, ops: Sequence[caffe2_pb2.OperatorDef]) -> None:
        self._before = dependencies(ops)

    def nodes(self) -> list[int]:
        return list(range(len(self._before)))

    def edges(self) -> list[tuple[int, int]]:
        """All pairs (first, then) in order."""
        return sorted((i, j) for j, before in enumerate(self._before) for i in before)

    def predecessors(self, node: int) -> list[int]:
        return sorted(self._before[node])


def compute_interference_graph(ops: Sequence[caffe2_pb2.OperatorDef]) -> OperatorGraph:
    """Which operators have to be done before which: those that touch a blob which one of them
    writes."""
    return OperatorGraph(ops)


def topological_sort_traversal(g: OperatorGraph) -> list[int]:
    """An order in which every operator comes behind those it depends on: the given one."""
    return g.nodes()


def topological_sort_traversal_longest_path(g: OperatorGraph) -> list[int]:
    """Such an order with the longest chains of operators first."""
    length: dict[int, int] = {}
    for node in g.nodes():
        length[node] = 1 + max((length[i] for i in g.predecessors(node)), default=0)
    order: dict[int, None] = {}

    def longest_first(nodes: Iterable[int]) -> list[int]:
        return sorted(nodes, key=lambda node: (-length[node], node))

    for goal in longest_first(g.nodes()):
        waiting = [goal]
        while waiting:
            node = waiting[-1]
            missing = [i for i in longest_first(g.predecessors(node)) if i not in order]
            if missing:
                waiting.append(missing[0])
            else:
                order[waiting.pop()] = None
    return list(order)


def _size(live: LiveRange) -> int:
    return 1 if live.size is None else live.size


def get_memory_usage(assignments: Assignments) -> int:
    """The bytes of shared memory: for each piece those of the largest blob in it."""
    return sum(max((_size(live) for _, live in shared), default=0) for shared in assignments)


def _fits(live: LiveRange, shared: list[tuple[str, LiveRange]]) -> bool:
    last = shared[-1][1]
    return last.used is None or live.defined is None or last.used < live.defined


def compute_assignments_greedy(
    ranges_sorted: Ranges, init_assignments: Assignments | None = None
) -> Assignments:
    """Pieces of memory for blobs, in the order of `defined`: each takes the free one whose size is
    nearest, or a new one."""
    found = [list(shared) for shared in init_assignments or ()]
    for name, live in ranges_sorted:
        free = [shared for shared in found if shared and _fits(live, shared)]
        if free:
            nearest = min(
                free, key=lambda shared: abs(max(_size(r) for _, r in shared) - _size(live))
            )
            nearest.append((name, live))
        else:
            found.append([(name, live)])
    return found


def compute_assignments_dp(
    ranges_sorted: Ranges, init_assignment: Assignments | None = None, counter: Any = None
) -> Assignments:
    """Pieces of memory for blobs, in the order of `defined`, such that least memory is needed.

    `counter` has no effect.  Takes long for many blobs of many sizes that are free at one time.
    """
    start = [list(shared) for shared in init_assignment or ()]
    # Of the choices up to a blob only those count that differ in sizes and in when they are free.
    states: dict[Any, Assignments] = {(): start}
    for name, live in ranges_sorted:
        following: dict[Any, Assignments] = {}
        for assignments in states.values():
            tried: set[Any] = set()
            choices = [i for i, shared in enumerate(assignments) if _fits(live, shared)]
            for choice in (*choices, len(assignments)):
                if choice < len(assignments):
                    size = max(_size(r) for _, r in assignments[choice])
                    if size in tried:  # all that are free now are alike but for their size
                        continue
                    tried.add(size)
                grown = [*assignments, []] if choice == len(assignments) else list(assignments)
                grown[choice] = [*grown[choice], (name, live)]
                key = tuple(
                    sorted(
                        (max(_size(r) for _, r in shared), shared[-1][1].used or 0)
                        for shared in grown
                    )
                )
                following.setdefault(key, grown)
        states = following
    return min(states.values(), key=get_memory_usage)


def optimize_interference(
    net: caffe2_pb2.NetDef,
    static_blobs: Iterable[Any],
    ordering_function: Callable[[OperatorGraph], Iterable[int]] = topological_sort_traversal,
    blob_sizes: Mapping[str, int] | None = None,
    algo: AssignmentAlgorithm = AssignmentAlgorithm.GREEDY,
) -> Optimization:
    """A net that runs in order, in which blobs share memory as an algorithm chooses.

    static_blobs       blobs that keep their names: inputs, parameters, results
    ordering_function  an order for the operators, out of their graph
    blob_sizes         bytes of blobs; default: all alike
    """
    order = list(ordering_function(compute_interference_graph(net.op)))
    ordered = caffe2_pb2.NetDef()
    ordered.CopyFrom(net)
    del ordered.op[:]
    ordered.op.extend(net.op[index] for index in order)
    fixed = fixed_names(net) | {str(blob) for blob in static_blobs}
    ranges: dict[str, LiveRange] = {}
    for index, op in enumerate(ordered.op):
        for name in (*op.input, *op.output):
            if name not in fixed:
                first = ranges[name].defined if name in ranges else index
                ranges[name] = LiveRange(first, index, (blob_sizes or {}).get(name))
    ranges_sorted = sorted(ranges.items(), key=lambda item: (item[1].defined, item[1].used))
    greedy = algo is AssignmentAlgorithm.GREEDY
    find = compute_assignments_greedy if greedy else compute_assignments_dp
    assignments = find(ranges_sorted)
    names = {
        name: f"__m{number}_shared"
        for number, shared in enumerate(assignments)
        for name, _ in shared
        if len(shared) > 1
    }
    return Optimization(renamed(ordered, names), assignments, names)
