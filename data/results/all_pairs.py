"""A run's test scores, greedy and with a beam of 4.

    python -m d2l_attention train RUN --corpus fra.txt --max-length 20 \
        --num-test 5000 --num-validation 1000 --batch-size 128 --workers 2 \
        --normalize-first --vocab-size 8000 --epochs 10
    python -m d2l_attention train RUN --corpus fra.txt --max-length 20 \
        --num-test 5000 --num-validation 1000 --batch-size 128 --workers 2 \
        --normalize-first --dim 256 --ffn-dim 1024 --dropout 0.2 \
        --learning-rate 0.001 --epochs 5
    python -m d2l_attention train RUN --corpus fra.txt --max-length 20 \
        --num-test 5000 --num-validation 1000 --batch-size 128 \
        --normalize-first --dim 256 --ffn-dim 1024 --dropout 0.2 \
        --learning-rate 0.001 --vocab-size 10000 \
        --mixed-precision bfloat16 --epochs 7
    python data/results/all_pairs.py RUN

Each of the three trainings gives two rows. The minutes are those of the
training, from its first file to its scores.
"""

import csv
from pathlib import Path
import sys

from d2l_attention.translator.run_folder import Run
from d2l_attention.translator.scores import score


def main():
    run = Path(sys.argv[1])
    first, last = (
        (run / name).stat().st_mtime
        for name in ("settings.json", "scores.json")
    )
    translator, _ = Run(run).load()
    pairs = Run(run).held_out_pairs()
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow(
        "parameters,minutes,beam,"
        "bleu,bleu_low,bleu_high,chrf,chrf_low,chrf_high".split(",")
    )
    for beam in (1, 4):
        _, scores = score(translator, pairs, beam)
        found = [
            round(scores[metric][which], 2)
            for metric in ("bleu", "chrf")
            for which in ("score", "low", "high")
        ]
        minutes = round((last - first) / 60, 1)
        out.writerow([translator.model.count_params(), minutes, beam, *found])


if __name__ == "__main__":
    main()
