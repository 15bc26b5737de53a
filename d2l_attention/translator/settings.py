"""The settings of a run: everything that decides its result."""

import argparse
import dataclasses
import hashlib
import math
from pathlib import Path

from d2l_attention.datasets import parallel_text
from d2l_attention.datasets.corpus import corpus_path
from d2l_attention.datasets.vocabularies import PIECES_PER_TOKEN
from d2l_attention.models.bahdanau import BahdanauSeq2Seq
from d2l_attention.models.rnnsearch import RNNSearch
from d2l_attention.models.transformer import Transformer

MODELS = {
    "bahdanau": BahdanauSeq2Seq,
    "rnnsearch": RNNSearch,
    "transformer": Transformer,
}
DEFAULT_LAYERS = {"bahdanau": 1, "rnnsearch": 1, "transformer": 2}
MIXED_PRECISION = ("float16", "bfloat16")
FINAL = ("last", "best", "average")
# The paths among the settings, and the checksums, which are compared instead.
TEXTS = {"corpus": "corpus_sha256", "test_corpus": "test_corpus_sha256"}


class RunError(Exception):
    """A run cannot begin, go on or be read. Nothing was overwritten."""


@dataclasses.dataclass(frozen=True)
class Settings:
    """Everything that decides what a run learns.

    Two runs with equal settings give equal results. How often a run logs and
    saves is no setting. Neither is the number of workers: without dropout it
    changes a result by no more than rounding. (With dropout, all workers draw
    the same masks for their parts.)

    Each field has one line of help in `HELP`.
    """

    model: str = "transformer"
    dim: int = 128
    num_layers: int | None = None
    num_heads: int = 4
    ffn_dim: int = 512
    dropout: float = 0.1
    normalize_first: bool = False
    corpus: str | list | None = None
    test_corpus: str | list | None = None
    columns: list | None = None
    reverse: bool = False
    max_bad_share: float = 0.01
    max_length: int = 16
    num_pairs: int | None = None
    num_validation: int | None = None
    num_test: int | None = None
    vocab_size: int | None = None
    subwords: int | None = None
    min_frequency: int = 2
    epochs: int = 10
    batch_size: int = 64
    learning_rate: float = 2e-3
    warmup_steps: int = 300
    warmup_share: float | None = None
    label_smoothing: float = 0.0
    patience: int | None = None
    final: str = "last"
    average: int = 5
    seed: int = 0
    mixed_precision: str | None = None
    xla: bool = False
    resume_from: str | None = None

    def identity(self):
        """Dict of the settings, with a checksum of each file of a corpus.

        The checksums name the corpus; its path is kept for people to read.
        """
        return {
            **dataclasses.asdict(self),
            "corpus_sha256": _digest(self.corpus or str(corpus_path())),
            "test_corpus_sha256": _digest(self.test_corpus),
        }

    def warmup(self, steps):
        """Number of steps up to the peak, of a training of so many."""
        if self.warmup_share is None:
            return self.warmup_steps
        return round(self.warmup_share * steps)

    def longest(self):
        """Longest sentence in ids: of pieces, a sentence has more."""
        return self.max_length * (PIECES_PER_TOKEN if self.subwords else 1)

    def languages(self):
        """From which to which; of another's corpus, the names of its files."""
        if self.corpus is None:
            names = ["English", "French"]
            return " to ".join(names[::-1] if self.reverse else names)
        files = [self.corpus] if isinstance(self.corpus, str) else self.corpus
        return " and ".join(Path(file).name for file in files)

    def share(self, workers):
        """Number of sentences of a global batch that each worker takes."""
        if self.batch_size % workers:
            raise RunError(
                f"A global batch of {self.batch_size} cannot be shared evenly "
                f"among {workers} workers."
            )
        return self.batch_size // workers

    def make_model(self, source_vocab_size, target_vocab_size):
        """A new, untrained model for vocabularies of these sizes."""
        options = {}
        if self.model == "transformer":
            options = {
                "num_heads": self.num_heads,
                "ffn_dim": self.ffn_dim,
                "normalize_first": self.normalize_first,
                # A translation may be longer than any training sentence.
                "max_length": 2 * self.longest() + 10,
            }
        return MODELS[self.model](
            source_vocab_size,
            target_vocab_size,
            dim=self.dim,
            num_layers=self.num_layers or DEFAULT_LAYERS[self.model],
            dropout=self.dropout,
            **options,
        )


def _digest(path):
    """The SHA-256 of a file, or the two of a list; None of None."""
    if path is None:
        return None
    if isinstance(path, list):
        return [_digest(one) for one in path]
    with open(parallel_text.local(path), "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def at_least(smallest, of=int, below=math.inf):
    """A type for `argparse`: numbers from `smallest` to below `below`."""

    def number(text):
        value = of(text)
        if not smallest <= value < below:
            bounds = f"at least {smallest}"
            if below < math.inf:
                bounds += f" and below {below}"
            raise argparse.ArgumentTypeError(
                f"must be {bounds}. Received: {text}"
            )
        return value

    number.__name__ = of.__name__
    return number


def two_columns(text):
    """A type for `argparse`: a list of two columns, written as `2,4`."""
    try:
        return parallel_text.check_columns([int(x) for x in text.split(",")])
    except ValueError as error:
        raise argparse.ArgumentTypeError(
            "must look like 2,4: two different numbers from 1. Received: "
            f"{text}"
        ) from error


def one_or_two_files(text):
    """A type for `argparse`: a path, or a list of two, `train.en,train.fr`."""
    try:
        return parallel_text.one_or_two(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


HELP = {
    "model": "which model to train",
    "dim": "features D of embeddings and states",
    "num_layers": "layers on each side (default: transformer 2, others 1)",
    "num_heads": "heads (transformer)",
    "ffn_dim": "width of the position-wise nets (transformer)",
    "dropout": "rate of dropout",
    "normalize_first": "normalize what each sublayer reads, not what follows "
    "it: pre-norm (transformer)",
    "corpus": "tab-separated text; plain or gzipped; two files with "
    "aligned lines, as in train.en,train.fr; or download:fra-eng (default: the "
    "shipped corpus)",
    "test_corpus": "the test, in files like those of --corpus; its sources "
    "are not trained on (default: --num-test pairs, drawn at random)",
    "columns": "columns of the source and the target (default: 1,2)",
    "reverse": "let source and target change places, in all files",
    "max_bad_share": "share of lines that may be no pairs, and are skipped",
    "max_length": "longest sentence, in tokens, on either side",
    "num_pairs": "number of pairs to use, drawn at random (default: all)",
    "num_validation": "source sentences kept for validation (default: 1000, or "
    "a tenth of fewer than 10000)",
    "num_test": "the same for the test (without --test-corpus)",
    "vocab_size": "largest number of token ids on either side (default: all)",
    "subwords": "learn pieces of words, at most so many on either side, in "
    "place of words; at least 300, and --min-frequency has no part in it "
    "(default: words)",
    "min_frequency": "rarer tokens become [UNK]",
    "epochs": "passes over the training pairs",
    "batch_size": "sentences in a global batch, which all workers share",
    "learning_rate": "peak of the learning rate",
    "warmup_steps": "steps up to the peak; from there a cosine leads down",
    "warmup_share": "the same as a share of all steps, in place of the number",
    "label_smoothing": "share of a label that all tokens divide; the loss "
    "that is shown includes it",
    "patience": "stop when so many epochs in a row have not lowered the "
    "validation loss (default: never)",
    "final": "which epoch's weights become the model: the last, the best on "
    "validation, or the average of the last ones",
    "average": "number of epochs that --final=average takes",
    "seed": "seed of the splits, the weights, the order and dropout",
    "mixed_precision": "compute in half precision (a GPU, or bfloat16 on a "
    "processor that has it)",
    "xla": "compile with XLA",
    "resume_from": "run folder whose model the training begins with; its "
    "settings are the defaults",
}


def add_arguments(parser):
    """Add one option for each setting to an `ArgumentParser`."""
    numbers = {
        "dropout": at_least(0.0, float, below=1.0),
        "max_bad_share": at_least(0.0, float, below=1.0),
        "learning_rate": at_least(0.0, float),
        "warmup_steps": at_least(0),
        "warmup_share": at_least(0.0, float, below=1.0),
        "label_smoothing": at_least(0.0, float, below=1.0),
        "seed": at_least(0, below=2**32),
        "subwords": at_least(300),
    }
    choices = {
        "model": sorted(MODELS),
        "mixed_precision": MIXED_PRECISION,
        "final": FINAL,
    }
    for field in dataclasses.fields(Settings):
        name, default = field.name, field.default
        option = f"--{name.replace('_', '-')}"
        if isinstance(default, bool):
            parser.add_argument(
                option,
                action=argparse.BooleanOptionalAction,
                default=default,
                help=HELP[name],
            )
            continue
        kind = {"default": default, "help": HELP[name]}
        if default is not None:
            kind["help"] += " (%(default)s)"
        if name in choices:
            kind["choices"] = choices[name]
        elif name == "columns":
            kind["type"] = two_columns
        elif name in ("corpus", "test_corpus"):
            kind["type"] = one_or_two_files
        elif name != "resume_from":
            kind["type"] = numbers.get(name, at_least(1))
        parser.add_argument(option, **kind)


def settings_of(values):
    names = [field.name for field in dataclasses.fields(Settings)]
    return Settings(**{name: values[name] for name in names})


def changed_texts(before, now):
    """List of the files whose path is the same in two, but not their text.

    Both are `Settings.identity()`, of when a run began and of today.
    """
    return [
        parallel_text.named(now[name] or "the shipped corpus")
        for name, checksum in TEXTS.items()
        if before.get(checksum) != now.get(checksum)
        and before.get(name) == now[name]
    ]


def as_options(values):
    """Names and values as options; a value of None is left to its default."""
    options = []
    for name, value in values.items():
        option = name.replace("_", "-")
        if isinstance(value, bool):
            options.append(f"--{option}" if value else f"--no-{option}")
        elif isinstance(value, list):
            options.append(f"--{option}={','.join(map(str, value))}")
        elif value is not None:
            options.append(f"--{option}={value}")
    return options
