"""The figures for print, on made-up results: which there are, what they draw, and that their files stay the same."""

import dataclasses
import json
import math
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest
from matplotlib.collections import PathCollection
from matplotlib.colors import to_hex
from matplotlib.image import imread
from matplotlib.patches import Circle, Rectangle
from PIL import Image
from report.made_up import HIKE, MAZE, MINE, made_up

from beliefscope.agent import DRQN, GRU, TrainingSpec
from beliefscope.paper import CELLS
from beliefscope.pomdp import Irrelevant, MountainHike, TMaze
from beliefscope.report.compositions import learning
from beliefscope.report.figures import altitude_map, base_pomdps, figures, slug, t_maze, write_figures
from beliefscope.report.style import colour, return_axis
from beliefscope.results.correlations import pearson, points, spearman
from beliefscope.results.curves import Instrument, Returns, band


@pytest.fixture(scope="module")
def everything():
    """As in the paper: two environments, with irrelevant variables too, and histories of several ε."""
    return made_up((MAZE, HIKE), seeds=2, checkpoints=11, sizes=(1, 4), epsilons=(0.0, 0.2, 1.0))


@pytest.fixture(scope="module")
def drawn(everything):
    return dict(figures(everything))


@pytest.fixture
def only_svg(monkeypatch):
    """For tests of anything but the formats, which take their time."""
    monkeypatch.setattr("beliefscope.report.figures._FORMATS", {"svg": {"metadata": {"Date": None}}})


def texts(figure):
    """All that is written in a figure."""
    return [
        text.get_text().replace("\N{NO-BREAK SPACE}", " ")
        for text in figure.findobj(lambda each: hasattr(each, "get_text"))
    ]


def settings():
    """Matplotlib's, but for the backend, which is chosen as soon as one looks at it."""
    return {name: value for name, value in dict.items(matplotlib.rcParams) if name != "backend"}


def heights(line):
    return np.asarray(line.get_ydata(), float)


def with_curves(results, change):
    """The same results, each curve changed."""
    panels = [
        panel._replace(curves={cell: tuple(map(change, curves)) for cell, curves in panel.curves.items()})
        for panel in results.panels
    ]
    return dataclasses.replace(results, panels=tuple(panels))


def test_every_figure_of_the_paper_has_a_name(drawn):
    names = ["t-maze-l-50", "mountain-hike"]
    bigger = [f"{name}-{size}-irrelevant" for name in names for size in (1, 4)]
    expected = [f"learning-{name}" for name in names + bigger] + [f"irrelevant-{name}" for name in bigger]
    expected += [f"epsilon-{name}" for name in names + bigger] + ["altitude", "t-maze"]
    assert list(drawn) == expected


@pytest.mark.slow
def test_the_files_open_and_are_the_same_when_written_again(tmp_path):
    results = made_up((HIKE,), cells=("GRU", "NBRC"), seeds=2, checkpoints=3)
    names = write_figures(results, tmp_path / "once")
    assert names == write_figures(results, tmp_path / "again") == ["learning-mountain-hike", "altitude"]
    files = sorted(path.name for path in (tmp_path / "once").iterdir())
    assert files == sorted(f"{name}.{kind}" for name in names for kind in ("svg", "pdf", "png"))
    for file in files:
        assert (tmp_path / "once" / file).read_bytes() == (tmp_path / "again" / file).read_bytes()
    for name in names:
        picture = imread(tmp_path / "once" / f"{name}.png")
        assert picture.shape[1] == 1440  # 7.2 inches of 200 dots
        with Image.open(tmp_path / "once" / f"{name}.png") as opened:
            assert opened.info["dpi"] == pytest.approx((200, 200), abs=0.01)
        assert 16 < len(np.unique(picture.reshape(-1, picture.shape[-1]), axis=0)) <= 256
        ElementTree.parse(tmp_path / "once" / f"{name}.svg")
        assert b"<dc:date>" not in (tmp_path / "once" / f"{name}.svg").read_bytes()
        assert (tmp_path / "once" / f"{name}.pdf").read_bytes().startswith(b"%PDF")
        assert b"CreationDate" not in (tmp_path / "once" / f"{name}.pdf").read_bytes()


@pytest.mark.usefixtures("only_svg")
def test_matplotlibs_settings_are_as_they_were(tmp_path):
    matplotlib.rcParams["font.size"] = 30  # nor do they matter
    try:
        before = settings()
        results = made_up((MAZE,), cells=("GRU",), seeds=1, checkpoints=1)
        write_figures(results, tmp_path / "large")
        assert settings() == before
    finally:
        matplotlib.rcParams["font.size"] = matplotlib.rcParamsDefault["font.size"]
    for name in write_figures(results, tmp_path / "usual"):
        assert (tmp_path / "usual" / f"{name}.svg").read_bytes() == (tmp_path / "large" / f"{name}.svg").read_bytes()


def test_the_lines_of_a_learning_figure_are_the_means_over_seeds():
    results = made_up((MAZE,), seeds=3)
    panel = results.panels[0]
    top, bottom, right = learning(results, panel).axes
    scale = return_axis(results, MAZE).scale
    lines = [line for line in top.lines if to_hex(line.get_color()) == colour("GRU", [])]
    mean = np.mean([each.values for each in results.returns[MAZE, "GRU"]], axis=0)
    np.testing.assert_allclose(heights(lines[0]), np.exp(3 * (mean - 1.4567) / (1.4567 - scale.start)))
    information, entropy = [line for line in bottom.lines if to_hex(line.get_color()) == colour("GRU", [])]
    np.testing.assert_allclose(heights(information), band(panel.curves["GRU"], "bits").mean)
    np.testing.assert_allclose(heights(entropy), band(panel.curves["GRU"], "entropy").mean)
    assert entropy.get_linestyle() == "--"
    assert bottom.get_ylim()[0] <= 0
    drawn = [each for each in right.collections if isinstance(each, PathCollection)]
    assert [np.shape(each.get_offsets()) for each in drawn] == [(3 * 51, 2)] * 5


def test_the_optimum_is_dotted_at_one_and_ticks_are_returns():
    results = made_up((MAZE,), seeds=1)
    for ax in np.array(learning(results, results.panels[0]).axes)[[0, 2]]:
        dotted = [line for line in ax.lines if line.get_linestyle() == ":"]
        assert [list(heights(line)) for line in dotted] == [[1.0, 1.0]]
        labels = [float(label.get_text().replace("−", "-")) for label in ax.get_yticklabels()]
        np.testing.assert_allclose(return_axis(results, MAZE).scale.place(np.array(labels)), ax.get_yticks())


def test_where_the_optimum_is_unknown_no_line_is_dotted():
    results = made_up((HIKE,), seeds=1)
    figure = learning(results, results.panels[0])
    assert not [line for ax in figure.axes for line in ax.lines if line.get_linestyle() == ":"]
    assert "optimum" not in texts(figure)


def test_the_scatter_names_both_coefficients():
    results = made_up((MAZE,), seeds=2)
    found, _ = points(curve for curves in results.panels[0].curves.values() for curve in curves)
    expected = f"Pearson {pearson(found).value:.2f}, Spearman {spearman(found).value:.2f}"
    assert expected in texts(learning(results, results.panels[0]))


def test_entropy_that_is_not_known_is_not_drawn():
    results = made_up((MAZE,), seeds=1)
    unknown = with_curves(results, lambda curve: curve._replace(values=curve.values | {"entropy": np.full(51, np.nan)}))
    figure = learning(unknown, unknown.panels[0])
    assert not [line for line in figure.axes[1].lines if line.get_linestyle() == "--" and len(heights(line))]
    assert "entropy H(b)" not in texts(figure)


def test_the_instrument_stands_beneath_every_figure(drawn):
    for name, figure in drawn.items():
        if name not in ("altitude", "t-maze"):
            assert "MINE, 200 epochs, N = 20,000" in " ".join(texts(figure)).replace("\n", " ")


def test_another_instrument_makes_another_figure():
    results = made_up((MAZE,), seeds=1, cells=("GRU",))
    other = results.panels[0]._replace(instrument=Instrument("trusted", None, 4000, None))
    found = dict(figures(dataclasses.replace(results, panels=(*results.panels, other))))
    assert list(found) == ["learning-t-maze-l-50", "learning-t-maze-l-50-2", "t-maze"]
    assert "trusted, N = 4,000" in " ".join(texts(found["learning-t-maze-l-50-2"]))


def test_the_whole_memory_has_a_figure_of_its_own():
    results = made_up((MAZE,), seeds=1, cells=("LSTM",))
    whole = results.panels[0]._replace(memory="whole")
    found = dict(figures(dataclasses.replace(results, panels=(*results.panels, whole))))
    assert list(found) == ["learning-t-maze-l-50", "learning-t-maze-l-50-whole-memory", "t-maze"]


def test_both_parts_of_the_belief_have_a_line_in_each_cells_panel(everything, drawn):
    figure = drawn["irrelevant-mountain-hike-4-irrelevant"]
    relevant, other = (
        next(panel for panel in everything.panels if panel[:3] == (f"{HIKE} + 4 irrelevant", part, 0.0))
        for part in ("relevant", "irrelevant")
    )
    assert len(figure.axes) == 10
    for ax, cell in zip(figure.axes[5:], CELLS, strict=True):
        solid, dashed = ax.lines
        assert (solid.get_linestyle(), dashed.get_linestyle()) == ("-", "--")
        np.testing.assert_allclose(heights(solid), band(relevant.curves[cell], "bits").mean)
        np.testing.assert_allclose(heights(dashed), band(other.curves[cell], "bits").mean)


def test_parts_that_different_instruments_measured_never_share_an_axis():
    results = made_up((MAZE,), cells=("GRU",), seeds=1, checkpoints=3, sizes=(1,))
    assert any(name.startswith("irrelevant") for name, _ in figures(results))
    changed = [panel._replace(instrument=MINE._replace(N=2000 + len(panel.part))) for panel in results.panels]
    assert not any(
        name.startswith("irrelevant") for name, _ in figures(dataclasses.replace(results, panels=tuple(changed)))
    )


def test_each_epsilon_has_a_line_where_more_than_one_was_measured(everything):
    panels = [panel for panel in everything.panels if panel.environment == MAZE]
    only = [panels[0], *(panel._replace(curves={"GRU": panel.curves["GRU"]}) for panel in panels[1:])]
    results = dataclasses.replace(everything, panels=tuple(only))
    figure = dict(figures(results))["epsilon-t-maze-l-50"]
    assert len(figure.axes) == 2  # the GRU alone, as in the paper
    for line, panel in zip(figure.axes[1].lines, panels, strict=True):
        np.testing.assert_allclose(heights(line), band(panel.curves["GRU"], "bits").mean)
    assert {"ε = 0", "ε = 0.2", "ε = 1"} <= set(texts(figure))
    assert "epsilon-t-maze-l-50" not in dict(figures(dataclasses.replace(results, panels=tuple(only[:1]))))


@pytest.mark.usefixtures("only_svg")
def test_names_appear_as_they_are_written(tmp_path):
    name = "a_b $x^2$ <i>λ & 漢 \\frac"
    results = dataclasses.replace(made_up((name,), cells=("_$odd$", "GRU"), seeds=1, checkpoints=2), specs={})
    assert write_figures(results, tmp_path) == ["learning-a-b-x-2-i-lambda-frac"]
    assert {name, "_$odd$"} <= set(texts(dict(figures(results))["learning-a-b-x-2-i-lambda-frac"]))


def test_environments_never_share_a_file():
    results = made_up(("a b", "a-b", "A_b", "漢", "字", "x" * 300, "x" * 301), cells=("GRU",), seeds=1, checkpoints=1)
    names = [name for name, _ in figures(dataclasses.replace(results, specs={}))]
    assert len(set(names)) == 7
    assert names[:5] == ["learning-a-b", "learning-a-b-2", "learning-a-b-3", "learning", "learning-2"]
    assert max(map(len, names)) < 100
    assert slug("Stochastic T-Maze, L = 50, λ = 0.3") == "stochastic-t-maze-l-50-lambda-0-3"


@pytest.mark.usefixtures("only_svg")
def test_nothing_measured_draws_nothing(tmp_path):
    nothing = made_up(())
    assert write_figures(nothing, tmp_path / "none") == []
    assert not (tmp_path / "none").exists()
    results = made_up((MAZE,), seeds=1)
    unknown = with_curves(results, lambda curve: curve._replace(values=curve.values | {"bits": np.full(51, math.nan)}))
    assert [name for name, _ in figures(unknown)] == ["t-maze"]


@pytest.mark.usefixtures("only_svg")
def test_one_seed_and_one_checkpoint_are_enough(tmp_path):
    results = made_up((MAZE,), cells=("GRU",), seeds=1, checkpoints=1, epsilons=(0.0, 1.0), sizes=(1,))
    assert len(write_figures(dataclasses.replace(results, specs={}), tmp_path)) == 5


@pytest.mark.usefixtures("only_svg")
def test_numbers_that_are_missing_leave_gaps(tmp_path):
    results = dataclasses.replace(made_up((MAZE,), cells=("GRU", "LSTM"), seeds=2), specs={}, optimum={})

    def some(curve):
        missing = np.where(np.arange(51) % 3 == curve.seed, np.nan, 1.0)
        return curve._replace(values={name: values * missing for name, values in curve.values.items()})

    partial = with_curves(results, some)
    returns = {(MAZE, "GRU"): (Returns("a", 0, np.arange(3), np.array([math.nan, 1.0, 2.0])),)}
    assert len(write_figures(dataclasses.replace(partial, returns=returns), tmp_path)) == 1
    assert len(write_figures(dataclasses.replace(partial, returns={}), tmp_path)) == 1


@pytest.mark.usefixtures("only_svg")
def test_a_run_far_above_the_best_mean_makes_the_axis_linear(tmp_path):
    episode = np.arange(3)
    values = (np.array([-10.0, -10.0, -1.0]), np.array([-10.0, -9.999, -19.0]))
    results = dataclasses.replace(made_up((HIKE,), cells=("GRU",), seeds=1), specs={})
    results = dataclasses.replace(
        results, returns={(HIKE, "GRU"): tuple(Returns(str(s), s, episode, v) for s, v in enumerate(values))}
    )
    figure = learning(results, results.panels[0])
    np.testing.assert_allclose(heights(figure.axes[0].lines[0]), [-10, -9.9995, -10])
    assert len(write_figures(results, tmp_path)) == 1


def test_a_cell_that_the_paper_does_not_have_has_a_colour_of_its_own():
    results = made_up((MAZE,), cells=(*CELLS, "Mine", "Other"), seeds=1)
    bottom = learning(results, results.panels[0]).axes[1]
    assert len({to_hex(line.get_color()) for line in bottom.lines}) == 7


def test_the_runs_say_which_environments_are_drawn():
    pomdps = (TMaze(3), Irrelevant.of_paper(MountainHike.of_paper("code"), 2))
    specs = {
        str(number): json.loads(TrainingSpec(pomdp=pomdp, learner=DRQN(cell=GRU), seed=0).canonical_json())
        for number, pomdp in enumerate(pomdps)
    }
    found = base_pomdps(specs)
    assert set(found) == {"TMaze", "MountainHike"}
    assert found["MountainHike"]["goal_radius"] == 0.2
    assert [name for name, _ in figures(dataclasses.replace(made_up(()), specs=specs))] == ["altitude", "t-maze"]


def test_the_altitude_map_shows_the_start_and_a_goal_of_its_radius():
    flat = altitude_map(0.2).axes[0]
    (start,) = flat.lines
    (goal,) = [patch for patch in flat.patches if isinstance(patch, Circle)]
    np.testing.assert_array_equal(start.get_xydata(), [[-0.8, -0.8]])
    assert (goal.get_center(), goal.get_radius()) == ((0.8, 0.8), 0.2)
    assert {"start", "goal"} <= {text.get_text() for text in flat.texts}


def test_the_treasure_is_above_in_one_layout_and_below_in_the_other():
    hatched = [[patch for patch in ax.patches if patch.get_hatch()] for ax in t_maze().axes]
    assert [[patch.get_y() for patch in each if isinstance(patch, Rectangle)] for each in hatched] == [[1], [-1]]
