"""Training longer: a run begins with what a shorter run of the same settings has stored.

What an agent learns in an episode does not depend on how many are to come, so that a run that goes on from a shorter
one has the same bits as one that is trained so long from the start (on the same machine).
"""

import dataclasses
import json
from pathlib import Path

from beliefscope.agent.run_folder import RunFolder
from beliefscope.agent.training_spec import TrainingSpec
from beliefscope.errors import require
from beliefscope.store.files import read_bytes, write_atomic
from beliefscope.store.layout import StudyFiles, is_file
from beliefscope.store.lock import lock
from beliefscope.store.pieces import training_name


def begin_from(shorter: RunFolder, run: RunFolder) -> None:
    """Copy what the shorter run has stored; a run that has begun already stays as it is.

    The state to resume from is copied last: what it says counts.
    """
    if is_file(run.files.resume) or run.finished() or run.failed() is not None:
        return
    with lock(shorter.files.study.lock(training_name(shorter.spec.id))):
        _copy(shorter, run)


def _copy(shorter: RunFolder, run: RunFolder) -> None:
    state = shorter.resume()
    done, agent = (0, None) if state is None else state
    networks = [] if state is None else [each for each in run.spec.learner.checkpoints() if each <= done]
    missing = sorted(set(networks) - set(shorter.checkpoints()))
    require(
        state is not None and not missing,
        rule="a run is lengthened from its resume.eqx and its networks",
        received=f"{shorter.path} without {f'the networks after {missing} episodes' if missing else 'resume.eqx'}",
        advice="leave out --lengthen, which trains from the start",
    )
    for episode in networks:
        write_atomic(run.files.network(episode), read_bytes(shorter.files.network(episode)))
    write_atomic(run.files.metrics, read_bytes(shorter.files.metrics))
    run.save_state(agent, done)


def shorter_run(spec: TrainingSpec, folder: Path) -> RunFolder:
    """The run in the folder that has the same settings and seed, and fewer episodes."""
    for files in StudyFiles(folder).runs():
        text = read_bytes(files.spec).decode("utf-8", "replace")
        try:
            episodes = json.loads(text)["learner"]["num_episodes"]
            learner = dataclasses.replace(spec.learner, num_episodes=episodes)
        except (ValueError, KeyError, TypeError):
            continue
        found = RunFolder(folder, dataclasses.replace(spec, learner=learner))
        if found.spec.canonical_json() == text and episodes < spec.learner.num_episodes:
            return found
    raise ValueError(
        "--lengthen takes a folder with the same runs of fewer episodes, all other settings being the same, but got "
        f"{str(folder)!r}, which has none for seed {spec.seed}; repeat the settings of the runs there, with a larger "
        "--num-episodes."
    )
