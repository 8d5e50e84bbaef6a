"""What the rungs that draw share: the cost of their sketches, and repetitions trained side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from seqlaw.methods.method import Cost, Draws, Progress, card_cost, sketch_memory
from seqlaw.methods.rows import Row, families, indices
from seqlaw.model.device import WORTH
from seqlaw.model.lengths import parts
from seqlaw.model.setting import Setting
from seqlaw.model.threads import in_order, one_thread


def sketches_cost(
    settings: Sequence[Setting],
    draws: Draws,
    core: Callable[[int, float, set[int]], float],
    each: tuple[float, float],
    card: Callable[[int, float, set[int]], float] = lambda M, d, lengths: 0.0,
) -> Cost:
    """`Cost` of settings that share sketches: `core` seconds of (M, d, lengths) a sketch, `each` a setting.

    On a card what `card_cost` says and `card`; `each` has the seconds on a core and there.
    """
    seconds, memory = 0.0, 0.0
    for family in families(settings):
        M, d = settings[family[0]].M, float(settings[family[0]].d or 0)
        lengths = {P for index in family for P, _ in parts(settings[index].P)}
        if draws.device and M * d >= WORTH:
            there = card_cost(M, d, len(lengths))
            one, held = there.seconds + card(M, d, lengths) + each[1] * len(family), there.memory
        else:
            one, held = core(M, d, lengths) + each[0] * len(family), sketch_memory(M, d, len(family))
        seconds, memory = seconds + draws.count("sketches") * one, max(memory, held)
    return Cost(seconds=seconds, memory=memory)


def side_by_side(
    settings: Sequence[Setting],
    draws: Draws,
    trained: Callable[[int, int, list[int]], list[Row]],
    *,
    together: int,
    workers: int,
    progress: Progress | None,
) -> list[Row]:
    """The rows of `trained(point, sketch, repetitions)`, so many repetitions together, in order."""
    sketches, repetitions = (indices(name, getattr(draws, name)) for name in ("sketches", "repetitions"))
    groups = [repetitions[k : k + together] for k in range(0, len(repetitions), together)]
    tasks = [(k, sketch, group) for k in range(len(settings)) for sketch in sketches for group in groups]

    def run(task: tuple[int, int, list[int]]) -> list[Row]:
        k, sketch, _ = task
        return [{"rung": "sampled", "point": k, "sketch": sketch} | row for row in trained(*task)]

    rows: list[Row] = []
    with one_thread():
        for done, new in enumerate(in_order(run, tasks, min(workers, len(tasks))), 1):
            rows.extend(new)
            if progress is not None:
                progress(done, len(tasks))
    return sorted(rows, key=lambda row: (row["point"], row["sketch"], row["repetition"]))
