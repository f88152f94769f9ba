"""The paper's claims as texts: what is claimed, where, and the rule by which it is judged, fixed before any data."""

from beliefscope.report.verdict import Claim

_SEEDS = "t-interval over seeds, Holm over the tests of the claim"
_WELCH = "Welch's t-interval of the difference over seeds, Holm over the tests of the claim"
_AGREE = (
    "the k-th seeds of the five cells give a rank correlation of J and I over the cells at each checkpoint (left out "
    "where all J or all I are equal), its mean over the checkpoints is above 0 (t-interval over k)"
)
_AS_3 = f"final J and I: nBRC > LSTM and BRC > LSTM ({_WELCH}); LSTM has the lowest mean final I of the five; {_AGREE}."


REMARKS = {
    2: ["Some 3 of 60 such intervals miss by chance."],
    8: [
        "Halves of one normal or one even group have D = 2.65 or 3.46 already: D > 2 alone is little evidence of a gap."
    ],
    9: [
        "That the correlation is even clearer here is contradicted by the paper's own table: Pearson 0.5982, against "
        "0.8233 in the T-Maze, L = 50."
    ],
}
CLAIMS = (
    Claim(
        1,
        "Return and mutual information rise in training, in every environment and for every cell.",
        "sections 4.2 and 4.3, figures 2, 3, 4, 6 and 7",
        "Final − start > 0 for J and for I, in each of the five environments for each of the five cells "
        f"({_SEEDS}); shown without a verdict where they were measured: the same for I/H(b), where H(b) is not "
        "flagged at any checkpoint used, and for I at ε = 1.",
    ),
    Claim(
        2,
        "Return and mutual information correlate.",
        "sections 4.2 and 4.3, appendix G, tables 4 and 5",
        "Pearson's and Spearman's coefficient over all (checkpoint, run) points of the five cells: the 95 % "
        "interval of the jackknife over runs lies above 0, with Holm's correction of the p-values that belong "
        "to the intervals; beside it, without a verdict, the trend-free value and whether the paper's value "
        "lies inside.",
    ),
    Claim(
        3,
        "T-Maze, L = 50: nBRC and BRC are higher in both return and mutual information, LSTM is the lowest in "
        "mutual information; at any given episode a higher return goes with a higher mutual information.",
        "section 4.2, figure 2",
        _AS_3[0].upper() + _AS_3[1:],
    ),
    Claim(
        4,
        "No network with less than 5 bits (T-Maze, L = 50), 5.0 bits (L = 100) or 4.5 bits (stochastic) is optimal.",
        "section 4.2, figures 2, 3 and 4",
        "Among all (checkpoint, run) points of the five cells, those with J ≥ 0.99 J* (0.95 J* in the "
        "stochastic T-Maze): at least 20 (else there is not enough data), and the least I is at least the "
        "threshold − 0.25.",
    ),
    Claim(
        5,
        "The estimates are tight: 6.5 of 6.67 bits (T-Maze, L = 50) and 7.0 of 7.66 bits (L = 100) at most.",
        "section 4.2, figures 2 and 3",
        "The greatest I of all (checkpoint, run) points of the five cells lies in [H − 0.4, H + 0.25] for L = "
        "50, H = log2 102, and in [6.5, H + 0.25] for L = 100, H = log2 202.",
    ),
    Claim(
        6,
        "T-Maze, L = 100: GRU struggles too, its mutual information rises more slowly; MGU overtakes BRC after "
        "2000 episodes in both; the lower the mutual information, the lower the return.",
        "section 4.2, figure 3",
        "Final J: nBRC > GRU; MGU > BRC in J and in I, each the mean over the checkpoints from episode 2000 on "
        f"({_WELCH}); {_AGREE}. How fast GRU's I rises has no rule: shown is its mean over training less nBRC's.",
    ),
    Claim(
        7,
        "Stochastic T-Maze: BRC and nBRC are best and higher in mutual information, LSTM is low in both.",
        "section 4.2, figure 4",
        f"As claim 3: {_AS_3}",
    ),
    Claim(
        8,
        "Mountain Hike: the best policies, with a return near −20, are separate from the others and higher in "
        "mutual information.",
        "section 4.3, figure 6",
        "The returns of all (checkpoint, run) points of the five cells are split in two by 2-means: Ashman's D "
        "= √2 |μ₁ − μ₂| / √(σ₁² + σ₂²) > 2; the mean of the upper group lies in [−25, −15]; mean I of the upper "
        "less the lower group, within each run that has points in both (at least 4 runs), is above 0 "
        "(t-interval over these runs).",
    ),
    Claim(
        9,
        "Varying Mountain Hike: LSTM and BRC are worse in both; the return rises sharply from 2.5 to 4.5 bits; "
        "the correlation is even clearer than elsewhere.",
        "section 4.3, figure 7",
        f"Final J and I: LSTM and BRC each below each of GRU, nBRC and MGU ({_WELCH}); the mean J of all points "
        "with I in [4.25, 4.75] less that of all points with I in [2.25, 2.75] exceeds half the range (greatest "
        "− least) of J over all points. The last clause has no rule.",
    ),
    Claim(
        10,
        "With irrelevant variables, relevant mutual information rises and irrelevant falls, also after the "
        "optimum. d = 4: irrelevant stays above relevant (T-Maze); LSTM and BRC fail, LSTM's relevant mutual "
        "information is the lowest, BRC's does not rise, and its irrelevant does not fall even with d = 1. With "
        "larger d the optimum comes later and irrelevant mutual information is higher.",
        "section 4.4 and appendix H, figures 8, 9 and 13 to 20",
        "T-Maze, L = 50, and Mountain Hike, d = 1 and 4, each cell: final − start of I > 0 for the relevant and "
        f"< 0 for the irrelevant part ({_SEEDS}), but for BRC in the T-Maze, where neither the 95 % interval of "
        "the relevant part (d = 4) may lie above 0 nor that of the irrelevant part (d = 1, d = 4) below it. "
        "T-Maze, GRU, nBRC and MGU: the slope of I by least squares from a run's first J ≥ 0.95 J* on (at least "
        "10 checkpoints, at least 4 runs) has the same signs; LSTM and BRC, which fail, are shown. T-Maze, d = "
        "4: at every checkpoint the mean irrelevant I over seeds exceeds the mean relevant I, each cell; LSTM "
        "and BRC: final J < 0.9 J*; LSTM has the lowest mean final relevant I of the five. d = 4 against d = 1: "
        "final irrelevant I is higher, each cell, both environments; the first episode with J ≥ 0.95 J* is "
        "later (T-Maze: GRU, nBRC, MGU; Mountain Hike, where J* is unknown: each cell, 95 % of the way from its "
        "mean J at the start to its best mean J of a checkpoint with either d); a run that never gets there "
        "counts as 100 episodes past its last checkpoint.",
    ),
    Claim(
        11,
        "Mutual information rises under every ε; the higher ε, the lower the mutual information.",
        "appendix F, figure 12",
        f"GRU, ε = 0, 0.2, 0.4, 0.6, 0.8, 1, five environments: final − start of I > 0 ({_SEEDS}); Kendall's τ "
        "of ε and final I, one for each seed over the six ε, is below 0 in each environment.",
    ),
)
