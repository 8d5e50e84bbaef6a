"""The figures of the commands: ranges and labels that a reader can use."""

from itertools import pairwise

import pytest

from seqlaw import PRESETS, WSD, Setting, tradeoff

pytest.importorskip("matplotlib", reason="needs the extra: pip install 'seqlaw[plot]'")

from seqlaw.answers import style as plot


@pytest.mark.parametrize(
    "ends", [(1, 1.17), (0.985, 1.21), (1.5e-5, 1.8e-5), (0.25, 14), (2e-5, 9e-5), (1, 1)]
)
def test_panels_in_a_row_share_a_range_with_labels_in_it(ends):
    """Before, a range from 1 to 1.2 was labelled 1, 0.9, 0.8, 0.7 and half empty."""
    figure, grid = plot.new_figure(6, 3, columns=2)
    for axes, y in zip(grid[0], (ends, (ends[0], ends[0])), strict=True):
        axes.plot([1, 10], y)
        plot.tidy(axes, "x", "y")
    plot.share_range(grid[0])
    figure.draw_without_rendering()
    left, right = grid[0]
    low, high = left.get_ylim()
    assert right.get_ylim() == (low, high)
    assert low < ends[0] <= ends[1] < high
    assert high / low < max(ends[1] / ends[0], 1.05) ** 1.3  # most of the panel is data
    places = left.yaxis.get_majorticklocs()
    labels = [label.get_text() for label in left.yaxis.get_majorticklabels()]
    shown = [text for place, text in zip(places, labels, strict=True) if low <= place <= high and text]
    assert 2 <= len(shown) == len(set(shown)) <= 9


@pytest.mark.parametrize("ends", [(250, 400), (20, 200), (1, 25), (2e5, 1e6), (1e-3, 1e8)])
def test_labels_along_x_do_not_run_into_each_other(ends):
    """Before, 3×10¹ and 4×10¹ lay on each other between 20 and 200."""
    figure, grid = plot.new_figure(5.2, 4, columns=1)
    axes = grid[0, 0]
    plot.tidy(axes, "x", "y")
    axes.plot(ends, [1, 2])
    figure.canvas.draw()
    labels = [*axes.get_xticklabels(minor=True), *axes.get_xticklabels()]
    low, high = axes.get_xlim()
    shown = [one for one in labels if one.get_text() and low <= one.get_position()[0] <= high]
    boxes = sorted((one.get_window_extent() for one in shown), key=lambda box: box.x0)
    assert len(boxes) >= 2
    assert all(left.x1 + 2 < right.x0 for left, right in pairwise(boxes))


def test_the_figure_says_which_curve_was_asked_for(tmp_path):
    asked = Setting(teacher=PRESETS["regime2"], M=16, N=1, P=2, d=64, schedule=WSD(gamma=0.1, L=500))
    picture = tmp_path / "tradeoff.svg"
    tradeoff(asked, 4096, lengths=[8, 64], eval_lengths=[16], compare=["regime1"]).save_plot(picture)
    text = picture.read_text()
    for words in ("Regime II", "Regime I, for comparison", "relative to P = 8"):
        assert f"<!-- {words} -->" in text or f"{words} -->" in text, words


def test_drawing_leaves_no_trace_and_gives_the_same_bytes(tmp_path):
    """The ids of an SVG come from a salt in matplotlib's global settings: ours while a file is written."""
    import matplotlib

    files = []
    for theirs in (None, None, "a salt of theirs"):
        with matplotlib.rc_context({"svg.hashsalt": theirs}):
            before = dict(matplotlib.rcParams)
            figure, grid = plot.new_figure(3, 2)
            grid[0, 0].plot([1, 2], [1, 3], marker="o")
            plot.save(figure, tmp_path / "picture.svg")
            assert dict(matplotlib.rcParams) == before
        files.append((tmp_path / "picture.svg").read_bytes())
    assert files[0] == files[1] == files[2]
