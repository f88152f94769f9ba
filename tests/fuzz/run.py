"""Many odd inputs for every reader: python tests/fuzz/run.py --inputs 1000000, or --minutes; --seed for others.

Ends with one line: how many inputs of which kind, how many were accepted, and what went wrong.
"""

import argparse
import os
import sys
import time
import traceback
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # as pytest does
os.environ |= {"JAX_PLATFORMS": "cpu", "NPROC": "1", "RUST_BACKTRACE": "0"}
from fuzz.inputs import fuzzer

# How many of a hundred inputs: what is quick is tried more often.
SHARES = {"record": 40, "lines": 35, "pomdp": 12, "array": 4, "csv": 3, "toml": 2.8, "npz": 1.5, "log": 1.5}
SHARES |= {"study": 0.1, "command": 0.1, "report": 0.003, "parquet": 0.003, "trajectories": 0.001}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", type=int, default=1_000_000)
    parser.add_argument("--minutes", type=float, default=10_000.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=SHARES, help="one kind of inputs")
    options = parser.parse_args()
    start, given, accepted, wrong = time.monotonic(), Counter(), 0, 0
    with fuzzer(options.seed) as inputs:
        while given.total() < options.inputs and time.monotonic() - start < 60 * options.minutes:
            (kind,) = [options.only] if options.only else inputs.draw.choices(list(SHARES), list(SHARES.values()))
            given[kind] += 1
            try:
                accepted += inputs.once(kind)
            except BaseException as error:
                if isinstance(error, KeyboardInterrupt):
                    break
                wrong += 1
                traceback.print_exc()
            if given.total() % 20_000 == 0:
                print(f"{time.monotonic() - start:.0f} s: {given.total()} inputs, {wrong} went wrong", flush=True)
    kinds = ", ".join(f"{number} {kind}" for kind, number in given.most_common())
    print(f"{given.total()} inputs ({kinds}), {accepted} accepted, {wrong} went wrong, seed {options.seed}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
