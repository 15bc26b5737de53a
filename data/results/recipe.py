"""What each part of the trainer's recipe brings, on 30,000 pairs.

    python data/results/recipe.py FOLDER --corpus fra.txt \
        > data/results/DATE_recipe.csv

Each recipe adds one thing to the recipe above it. Each is trained with three
seeds, by the command `train`, in a folder of its own within FOLDER; a run
that is there already is only scored. A seed decides the pairs, too. Every
run is scored with its last weights and with the mean of its last five epochs,
greedily and with a beam.
"""

import argparse
import csv
import dataclasses
from pathlib import Path
import subprocess
import sys

from d2l_attention.translator.run_folder import Run, make_translator
from d2l_attention.translator.scores import score

OPTIONS = {
    "num-pairs": 30000,
    "num-test": 2000,
    "epochs": 10,
    "dropout": 0.2,
    "final": "average",  # keeps the last epochs
}
RECIPE = {
    "words": [],
    "subwords": ["--subwords=4000"],
    "pre-norm": ["--normalize-first"],
    "label smoothing": ["--label-smoothing=0.1"],
}
COLUMNS = (
    "recipe,seed,parameters,weights,beam,"
    "bleu,bleu_low,bleu_high,chrf,chrf_low,chrf_high"
).split(",")


def train(run, corpus, seed, options):
    """Train a run by the command, or go on with it."""
    if (run / "scores.json").exists():
        return
    command = [sys.executable, "-m", "d2l_attention", "train", str(run)]
    command += [f"--corpus={corpus}", f"--seed={seed}"]
    command += [f"--{name}={value}" for name, value in OPTIONS.items()]
    command += options
    subprocess.run(command, check=True, stdout=sys.stderr)


def rows(run):
    """Scores of a run, by the weights it ends with and the search."""
    run = Run(run)
    settings = run.load_settings()
    vectorizers = run.load_vectorizers(settings.subwords)
    run.load_checkpoint()  # and with it the history
    pairs = run.held_out_pairs()
    for final in ("last", "average"):
        parameters, _ = run.final_parameters(
            dataclasses.replace(settings, final=final)
        )
        translator = make_translator(settings, vectorizers, parameters)
        for beam in (1, 4):
            _, scores = score(translator, pairs, beam)
            yield {
                "parameters": translator.model.count_params(),
                "weights": final,
                "beam": beam,
                **_flat("bleu", scores),
                **_flat("chrf", scores),
            }


def _flat(name, scores):
    found = scores[name]
    names = {name: "score", f"{name}_low": "low", f"{name}_high": "high"}
    return {column: round(found[key], 2) for column, key in names.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--corpus", required=True)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--only", nargs="+", default=[*RECIPE])
    arguments = parser.parse_args()
    out = csv.DictWriter(sys.stdout, COLUMNS, lineterminator="\n")
    out.writeheader()
    for seed in arguments.seeds:
        options = []
        for name, more in RECIPE.items():
            options += more
            if name not in arguments.only:
                continue
            run = arguments.folder / f"{name.replace(' ', '_')}_{seed}"
            train(run, arguments.corpus, seed, options)
            for row in rows(run):
                out.writerow({"recipe": name, "seed": seed, **row})
                sys.stdout.flush()


if __name__ == "__main__":
    main()
