"""Train translators without attention, with it, of nothing else; score them.

    python data/results/translators.py > data/results/DATE_translators.csv
    python data/results/translators.py \
        --only FixedContextSeq2Seq BahdanauSeq2Seq RNNSearch \
        > data/results/DATE_rnnsearch.csv
    python data/results/translators.py \
        --only FixedContextSeq2Seq BahdanauSeq2Seq Transformer \
        --path fra.txt --num-pairs 30000 --max-length 10 \
        --num-test 2000 --epochs 10 --dropout 0.2 --learning-rate 4e-3 \
        > data/results/DATE_fra_eng.csv

All models see the same batches for the same number of epochs. The one
without attention is a little wider, so that it has no fewer parameters than
Bahdanau's. Each is trained at every learning rate, the Transformer at 0.4 of
it after a warm-up; the one whose translations of the validation split have
the highest BLEU is scored. A p-value compares a model with the one above it.
"""

import argparse
import csv
import sys
import time

from d2l_attention import (
    BahdanauSeq2Seq,
    FixedContextSeq2Seq,
    GreedyDecoder,
    RNNSearch,
    Transformer,
)
from d2l_attention.datasets import (
    END,
    START,
    ids_to_text,
    load_alignments,
    load_pairs,
    load_translation,
    text_to_ids,
)
from d2l_attention.heatmaps import (
    alignment_error_rate,
    alignment_from_attention,
)
from d2l_attention.translator import bleu, chrf, paired_bootstrap
import keras
import numpy as np

RECURRENT = {"num_layers": 1, "rate": 1.0, "warmup_steps": 0}
MODELS = {
    FixedContextSeq2Seq: {**RECURRENT, "width": 1.0625},
    BahdanauSeq2Seq: {**RECURRENT, "width": 1.0},
    RNNSearch: {**RECURRENT, "width": 1.0},
    Transformer: {
        "num_layers": 2,
        "rate": 0.4,
        "warmup_steps": 300,
        "width": 1.0,
        "options": {"num_heads": 4, "ffn_dim": 256, "max_length": 64},
    },
}
COLUMNS = (
    "model,seed,parameters,epochs,learning_rate,validation_bleu,"
    "tokens_per_second,split,target_tokens,"
    "sentences,bleu,bleu_low,bleu_high,chrf,chrf_low,chrf_high,"
    "alignment_error_rate,p_value"
).split(",")


def train(make_model, data, learning_rate, steps, arguments):
    """A trained model, and the target tokens it saw a second."""
    keras.utils.set_random_seed(arguments.seed)
    settings = MODELS[make_model]
    model = make_model(
        data.source_vectorizer.vocabulary_size(),
        data.target_vectorizer.vocabulary_size(),
        dim=int(arguments.dim * settings["width"]),
        num_layers=settings["num_layers"],
        dropout=arguments.dropout,
        **settings.get("options", {}),
    )
    warmup_steps, peak = settings["warmup_steps"], learning_rate
    rate = keras.optimizers.schedules.CosineDecay(
        0.0 if warmup_steps else peak,
        arguments.epochs * steps - warmup_steps,
        alpha=0.01,
        warmup_target=peak if warmup_steps else None,
        warmup_steps=warmup_steps,
    )
    model.compile(
        keras.optimizers.Adam(rate, clipnorm=1.0),
        keras.losses.SparseCategoricalCrossentropy(
            from_logits=True, reduction="mean_with_sample_weight"
        ),
        jit_compile=True,
    )
    epochs = arguments.epochs
    model.fit(data.train, epochs=1, shuffle=False, verbose=0)  # compiles
    started = time.perf_counter()
    model.fit(
        data.train, initial_epoch=1, epochs=epochs, shuffle=False, verbose=0
    )
    tokens = sum(float(np.sum(weights)) for *_, weights in data.train)
    elapsed = time.perf_counter() - started
    return model, (epochs - 1) * tokens / elapsed


def translate(model, pairs, data, source_length, target_length):
    vocabulary = data.target_vectorizer.get_vocabulary()
    decoder = GreedyDecoder(
        model, vocabulary.index(START), vocabulary.index(END), target_length
    )
    source = text_to_ids(
        [s for s, _ in pairs], data.source_vectorizer, source_length
    )
    ids = decoder.predict(source, batch_size=250, verbose=0)
    return ids_to_text(ids, data.target_vectorizer)


def error_rate(model, pairs, data, length):
    """Alignment error rate of teacher-forced attention against gold.

    Of a Transformer: the last block's cross-attention, the mean of its heads.
    """
    source = text_to_ids([s for s, _ in pairs], data.source_vectorizer, length)
    target = text_to_ids(
        [f"{START} {t}" for _, t in pairs], data.target_vectorizer, length + 1
    )
    inputs = {"source": source, "target": target}
    _, maps = model(inputs, return_attention_scores=True)
    *_, last = (name for name in maps if not name.endswith("self_attention"))
    weights = np.array(maps[last]).mean(axis=1)
    hypothesis = [
        alignment_from_attention(rows[: len(t.split())])
        for rows, (_, t) in zip(weights, pairs, strict=True)
    ]
    return alignment_error_rate(load_alignments(pairs), None, hypothesis)


def rows(model, name, split, pairs, found, others, facts):
    """A row for all sentences, and one for each four target lengths."""
    lengths = np.array([len(target.split()) for _, target in pairs])
    groups = [("all", np.full(len(pairs), True))]
    for low in range(1, lengths.max() + 1, 4):
        inside = (lengths >= low) & (lengths < low + 4)
        if inside.sum() >= 25:
            groups.append((f"{low}-{low + 3}", inside))
    for label, inside in groups:
        chosen = np.flatnonzero(inside)
        hypotheses = [found[i] for i in chosen]
        references = [pairs[i][1] for i in chosen]
        p_value = ""
        if label == "all" and others:
            p_value = paired_bootstrap(others, hypotheses, references)
        yield {
            **facts,
            "model": name,
            "parameters": model.count_params(),
            "split": split,
            "target_tokens": label,
            "sentences": len(chosen),
            **_score("bleu", bleu(hypotheses, references)),
            **_score("chrf", chrf(hypotheses, references)),
            "p_value": p_value,
        }


def _score(name, score):
    names = (name, f"{name}_low", f"{name}_high")
    values = (round(value, 2) for value in score)
    return dict(zip(names, values, strict=True))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--path")
    parser.add_argument("--max-length", type=int, default=12)
    parser.add_argument("--num-pairs", type=int)
    parser.add_argument("--num-test", type=int, default=1000)
    parser.add_argument("--dim", type=int, default=128)
    parser.add_argument("--dropout", type=float, default=0.0)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument(
        "--learning-rate", type=float, nargs="+", default=[3e-3, 5e-3, 7e-3]
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="+", help="names of models")
    arguments = parser.parse_args()
    length = arguments.max_length
    options = {
        "max_length": length,
        "num_pairs": arguments.num_pairs,
        "num_test": arguments.num_test,
    }
    pairs = load_pairs(arguments.path, **options)
    data = load_translation(arguments.path, batch_size=64, **options)
    out = csv.DictWriter(sys.stdout, COLUMNS, lineterminator="\n")
    out.writeheader()
    others, names = {}, [model.__name__ for model in MODELS]
    for make_model, settings in MODELS.items():
        if make_model.__name__ not in (arguments.only or names):
            continue
        steps = len(pairs.train) // 64
        trials = []
        for learning_rate in arguments.learning_rate:
            learning_rate *= settings["rate"]
            model, speed = train(
                make_model, data, learning_rate, steps, arguments
            )
            found = translate(model, pairs.validation, data, length, length + 8)
            score = bleu(found, [target for _, target in pairs.validation])
            trials.append((score.score, learning_rate, speed, model))
        validation_bleu, learning_rate, speed, model = max(
            trials, key=lambda trial: trial[0]
        )
        for split, size in (("test", length), ("long_test", 2 * length)):
            chosen = getattr(pairs, split)
            found = translate(model, chosen, data, size, size + 8)
            facts = {
                "seed": arguments.seed,
                "epochs": arguments.epochs,
                "learning_rate": round(learning_rate, 6),
                "validation_bleu": round(validation_bleu, 2),
                "tokens_per_second": round(speed),
            }
            if make_model is not FixedContextSeq2Seq and not arguments.path:
                aer = error_rate(model, chosen, data, size)
                facts["alignment_error_rate"] = round(aer, 4)
            before = others.get(split)
            name = make_model.__name__
            out.writerows(
                rows(model, name, split, chosen, found, before, facts)
            )
            sys.stdout.flush()
            others[split] = found


if __name__ == "__main__":
    main()
