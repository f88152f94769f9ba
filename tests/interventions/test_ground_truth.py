"""Agents whose circuits are known: interventions must say of each what it was built to do."""

from typing import Any

import jax
import numpy as np
import pytest
from interventions.agents import HandBuilt, coin_maze

from beliefscope.belief import filter_of_paper
from beliefscope.interventions import FlatAgent, erase, intervene, memory_parts
from beliefscope.interventions.erasure import belief_labels, erased
from beliefscope.interventions.swaps import prepare, swapped_at_equal_belief
from beliefscope.pomdp import TMaze

L = 6
EPISODES: Any = {"num_episodes": 200, "num_swaps": 100}


@pytest.fixture(scope="module")
def uses():
    """Turns by the side that it remembers."""
    return intervene(jax.random.key(0), HandBuilt(of_side=1.0), TMaze(L), **EPISODES)


@pytest.fixture(scope="module")
def ignores():
    """Remembers the side in plain sight, and turns by a coin that the belief does not know."""
    return intervene(jax.random.key(1), HandBuilt(of_coin=1.0), coin_maze(L), **EPISODES)


def test_an_agent_that_uses_the_belief_turns_as_the_donor_of_its_belief_subspace(uses):
    assert uses.verdict == "readable and used"
    assert uses.readable.low > 0.95
    assert uses.swap("whole").follow.value == 1
    for rank in (1, 2, 4, 8):
        assert uses.swap("belief", rank).follow.value == 1
        assert uses.swap("complement", rank).keep.value == 1
        assert uses.swap("belief", rank).to_donor.value < 0.01 < uses.swap("belief", rank).to_own.value


def test_random_subspaces_of_that_agent_leave_its_turn_alone(uses):
    # A swap in a random direction moves the side by cos²; of 14 numbers rank 1 passes one half hardly ever.
    assert uses.swap("random", 1).follow.value < 0.05
    assert uses.swap("random", 1).keep.value > 0.95
    assert uses.swap("random", 2).follow.value < 0.1


def test_a_wrong_turn_costs_that_agent_the_treasure(uses):
    # Alone it earns 4 γ^L; with the wrong side −0.1 γ^L.
    assert uses.swap("whole").loss.value == pytest.approx(4.1 * 0.98**L, rel=1e-5)
    assert uses.swap("complement", 1).loss.value == pytest.approx(0, abs=1e-6)


def test_an_agent_that_ignores_the_belief_in_its_memory_is_not_said_to_use_it(ignores):
    assert ignores.verdict == "readable; not used through this subspace"
    assert ignores.readable.low > 0.95
    assert ignores.swap("whole").follow.value == 1, "the coin comes with the whole memory"
    assert ignores.swap("belief", 1).keep.value == 1
    assert ignores.swap("complement", 1).follow.value == 1
    assert ignores.swap("belief", 8).directions == 1, "no more is needed to read the side"


def test_steering_turns_the_agent_that_uses_the_belief_and_no_other(uses, ignores):
    follow = [swap.follow.value for swap in uses.steering]
    assert (follow[0], follow[-1]) == (0, 1)
    assert all(np.diff(follow) >= 0)
    assert all(swap.keep.value == 1 for swap in ignores.steering)


def test_swaps_at_equal_belief_change_nothing_where_the_memory_is_a_function_of_the_belief(uses):
    assert uses.equal.changed == (0, 0, 0)
    assert uses.equal.values == (0, 0, 0)
    assert uses.equal.loss == (0, 0, 0)


def test_swaps_at_equal_belief_show_what_else_the_agent_acts_on():
    maze, agent = coin_maze(L), FlatAgent(HandBuilt(of_coin=1.0))
    prepared: Any = prepare(jax.random.key(1), agent, maze, filter_of_paper(maze), **EPISODES)
    coins = [
        each.memory[:, memory_parts(agent.agent)[".coin"]].ravel()
        for each in (prepared.equal.recipient, prepared.equal.donor)
    ]
    found: Any = swapped_at_equal_belief(prepared)
    assert found.changed.value == pytest.approx(np.mean(coins[0] != coins[1]))
    assert found.changed.low > 0.1


def test_a_belief_that_is_not_remembered_is_not_readable():
    forgets: Any = intervene(
        jax.random.key(2), HandBuilt(of_coin=1.0, keeps_side=0.0), coin_maze(L), erase=False, **EPISODES
    )
    assert forgets.verdict == "not readable"
    assert forgets.readable.high < 0.1


def losses(agent, memory=None) -> dict[str, float]:
    found: Any = erase(jax.random.key(3), agent, TMaze(L), memory=memory, num_episodes=200)
    return {each.part: each.loss.value for each in found}


def test_erasing_one_of_two_copies_changes_nothing_and_erasing_both_does():
    twice = HandBuilt(of_side=1.0, of_copy=1.0)
    assert losses(twice, ".side")["side"] == 0
    assert losses(twice, ".copy")["side"] == 0
    # Without a side all turn alike, and half of them wrongly.
    assert losses(twice)["side"] == pytest.approx(4.1 / 2 * 0.98**L, rel=0.2)


def test_erasing_the_side_costs_the_agent_that_uses_it_and_not_the_one_that_ignores_it(uses, ignores):
    parts = {each.part: each for each in uses.erasures}
    assert parts["side"].rank == 1
    assert not parts["side"].everything
    assert parts["side"].loss.low > parts["side"].random_loss.high
    assert parts["time"].loss.value == 0
    assert parts["belief"].everything, "side and time are all that varies"
    assert parts["side"].sufficiency_loss is None, "too few episodes for a share"
    # Every coin is as good as another: it loses nothing beyond chance.
    assert {each.part: each.loss for each in ignores.erasures}["side"] == (0, 0, 0)


@pytest.mark.slow
def test_erasing_the_side_costs_sufficiency_if_no_copy_is_left():
    maze = coin_maze(L)
    side = {"side": belief_labels(maze)["side"]}

    def lost(agent, memory=None) -> Any:
        given = (FlatAgent(agent), maze, filter_of_paper(maze))
        return erased(jax.random.key(4), *given, labels=side, memory=memory, num_episodes=250)[0]

    used, one = lost(HandBuilt(of_side=1.0)), lost(HandBuilt(of_side=1.0, of_copy=1.0), ".side")
    assert used.sufficiency.value > 0.95
    assert used.sufficiency_loss.low > 0.8
    assert used.random_sufficiency_loss.high < 0.2
    assert one.sufficiency_loss == pytest.approx((0, 0, 0), abs=0.1), "the copy tells the same"


def test_the_summary_is_plain_sentences(uses):
    text = str(uses)
    assert text.startswith("Verdict: readable and used.\nA linear decoder reads ")
    assert "With 1 direction of the belief 100% [100, 100]" in text
    assert all(line.endswith(".") for line in text.splitlines())
