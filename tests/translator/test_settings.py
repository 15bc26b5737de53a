"""Every setting is an option, and a corpus is known by what it holds."""

import argparse
import dataclasses

from d2l_attention.translator.settings import (
    MODELS,
    Settings,
    add_arguments,
    settings_of,
)
import pytest


def parse(*arguments):
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return settings_of(vars(parser.parse_args(arguments)))


def test_no_option_is_the_default():
    assert parse() == Settings()


@pytest.mark.parametrize("field", dataclasses.fields(Settings))
def test_each_setting_has_an_option(field):
    given = {
        "model": "rnnsearch",
        "corpus": "pairs.tsv",
        "final": "best",
        "columns": "2,4",
        "mixed_precision": "bfloat16",
        "dropout": "0.5",
        "max_bad_share": "0.5",
        "learning_rate": "0.25",
        "subwords": "500",
        "warmup_share": "0.1",
        "label_smoothing": "0.1",
    }.get(field.name, "7")
    option = f"--{field.name.replace('_', '-')}"
    if isinstance(field.default, bool):
        given = str(not field.default)
        if field.default:
            option = option.replace("--", "--no-", 1)
        found = parse(option)
    else:
        found = parse(option, given)
    value = getattr(found, field.name)
    assert str(value) == ("[2, 4]" if field.name == "columns" else given)
    assert value != field.default
    same = dataclasses.replace(found, **{field.name: field.default})
    assert same == Settings()


@pytest.mark.parametrize(
    "arguments",
    [
        ("--dim", "0"),
        ("--dropout", "-1"),
        ("--dropout", "1"),
        ("--max-bad-share", "1"),
        ("--learning-rate", "inf"),
        ("--learning-rate", "nan"),
        ("--seed", "4294967296"),
        ("--epochs", "many"),
        ("--model", "lstm"),
        ("--mixed-precision", "int8"),
        ("--columns", "2"),
        ("--columns", "0,1"),
        ("--columns", "a,b"),
    ],
)
def test_impossible_values_are_refused(arguments, capsys):
    with pytest.raises(SystemExit):
        parse(*arguments)
    message = capsys.readouterr().err
    assert f"argument {arguments[0]}:" in message
    assert arguments[1] in message


@pytest.mark.parametrize("name", MODELS)
def test_makes_every_model(name):
    settings = Settings(model=name, dim=8, num_heads=2, dropout=0.25)
    model = settings.make_model(11, 13)
    model.build({"source": (None, 5), "target": (None, 6)})
    assert type(model) is MODELS[name]
    sizes = {"source_vocab_size": 11, "target_vocab_size": 13, "dim": 8}
    assert sizes.items() <= model.get_config().items()
    assert model.dropout == 0.25
    if name == "transformer":
        assert model.get_config()["num_heads"] == 2
        assert model.get_config()["ffn_dim"] == settings.ffn_dim


def test_a_corpus_is_known_by_what_it_holds(tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_text("one\teins\n")
    settings = Settings(corpus=str(path))
    before = settings.identity()
    assert before == settings.identity()
    path.write_text("one\tzwei\n")
    assert before != settings.identity()
    assert len(Settings().identity()["corpus_sha256"]) == 64
