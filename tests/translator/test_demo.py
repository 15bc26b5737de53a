"""The page that translates, as a browser and as other programs meet it."""

from contextlib import closing, contextmanager
import os
import signal
import socket
import subprocess
import sys
from threading import Thread
import time

from browsing import visits
from d2l_attention import __main__
from d2l_attention.translator import load_translator
from d2l_attention.translator.commands.demo import (
    LONGEST,
    about,
    main,
    make_app,
)
from d2l_attention.translator.run_folder import Run
from d2l_attention.translator.settings import Settings
import psutil
import pytest
import requests

uvicorn = pytest.importorskip("uvicorn")
pytest.importorskip("starlette")
pytestmark = pytest.mark.ci

TEXT = "The red cup xyzzy."


@contextmanager
def serving(translator, **search):
    """The address of the page, served by a thread of this process."""
    listening = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(make_app(translator, **search), log_level="error")
    server = uvicorn.Server(config)
    thread = Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/"
    finally:
        server.should_exit = True
        thread.join()


@pytest.fixture
def translator(finished):
    return load_translator(finished)


@pytest.fixture
def address(translator):
    with serving(translator) as address:
        yield address


def ask(address, **body):
    return requests.post(f"{address}translate", json=body, timeout=60)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_one_types_and_sees_the_translation_and_its_map(
    scheme, address, translator, browser
):
    axe_playwright = pytest.importorskip(
        "axe_playwright_python.sync_playwright"
    )
    (expected,) = translator.translate([TEXT])
    assert expected
    with visits(browser, address) as visit:
        page = visit("", width=390, color_scheme=scheme)
        page.wait_for_selector("#text:focus")  # a moment after it has loaded
        page.keyboard.type(TEXT)
        page.keyboard.press("Enter")
        page.wait_for_selector("#found:not([hidden])")
        assert page.inner_text("#translation") == expected
        assert page.inner_text("#unknown").endswith("as [UNK]: cup, xyzzy.")
        inside = page.frame_locator("#map")
        inside.locator("#map").wait_for()
        shown = inside.locator(".tokens bdi").all_inner_texts()
        assert shown == [*expected.split(), *"the red cup xyzzy .".split()]
        wide = "() => document.documentElement.scrollWidth"
        assert page.evaluate(wide) <= 390
        high = inside.locator("html").evaluate("x => x.scrollHeight")
        frame = page.locator("#map").bounding_box()["height"]
        assert 0 <= frame - high < 40  # no bar of its own, no empty half
        found = axe_playwright.Axe().run(page)
        assert found.violations_count == 0, found.generate_report()


def test_the_page_says_what_the_run_is_and_tries_a_sentence(
    finished, translator, browser
):
    run = Run(finished)
    told = about(run)
    sources = [source for source, _ in run.held_out_pairs()]
    assert len(told["examples"]) == len({*told["examples"]}) == 3
    assert {*told["examples"]} <= {*sources}
    scores = run.read_json("scores.json")
    assert f"BLEU {scores['bleu']['score']:.1f} on 40 held" in told["run"]
    first, second, _ = told["examples"]
    with serving(translator, about=told) as address:
        with closing(browser.new_page()) as page:
            page.goto(address)
            page.wait_for_selector("#found:not([hidden])")
            assert page.inner_text("#about") == told["run"]
            assert page.input_value("#text") == first
            page.click(f"text={second}")
            (translation,) = translator.translate([second])
            page.locator("#translation", has_text=translation).wait_for()
            page.keyboard.type("the cup")  # in place of the example
            assert page.input_value("#text") == "the cup"


@pytest.mark.parametrize(("bleu", "is_told"), [(9.9, True), (10.0, False)])
def test_a_run_that_is_barely_trained_is_told(bleu, is_told, finished):
    class Scored(Run):
        def read_json(self, name):
            found = super().read_json(name)
            if name == "scores.json":
                found["bleu"]["score"] = bleu
            return found

    assert ("barely trained" in Scored(finished).describe()) == is_told


@pytest.mark.parametrize(
    ("settings", "languages"),
    [
        ({}, "English to French"),
        ({"reverse": True}, "French to English"),
        ({"corpus": "data/fra.txt"}, "fra.txt"),
        ({"corpus": ["a/one.de", "a/two.en"]}, "one.de and two.en"),
    ],
)
def test_a_run_names_its_languages_or_its_corpus(settings, languages):
    assert Settings(**settings).languages() == languages


def test_a_run_without_scores_says_so(finished, tmp_path):
    (tmp_path / "settings.json").write_bytes(
        (finished / "settings.json").read_bytes()
    )
    assert Run(tmp_path).describe().endswith("was not scored yet.")


def test_what_cannot_be_translated_is_told_and_the_next_one_works(
    address, browser
):
    with closing(browser.new_page()) as page:
        page.goto(address)
        page.fill("#text", "cup " * 9)
        page.click("button")
        page.wait_for_selector("#error:not(:empty)")
        assert "1 to 8 tokens. Received 9" in page.inner_text("#error")
        assert page.locator("#found").is_hidden()
        page.fill("#text", "the red cup")
        page.click("button")
        page.wait_for_selector("#found:not([hidden])")
        assert page.inner_text("#error") == ""
        assert page.inner_text("button") == "Translate"


def test_a_server_that_is_gone_is_told(translator, browser):
    with closing(browser.new_page()) as page:
        with serving(translator) as address:
            page.goto(address)
        page.fill("#text", "the red cup")
        page.click("button")
        page.wait_for_selector("#error:not(:empty)")
        assert "Is the command still running?" in page.inner_text("#error")


def test_only_this_machine_may_ask(address):
    elsewhere = {"Host": "evil.example"}
    for path in ("", "map?text=a&translation=b"):
        answer = requests.get(address + path, headers=elsewhere, timeout=60)
        assert answer.status_code == 400
    answer = requests.post(
        f"{address}translate",
        json={"text": "cup"},
        headers=elsewhere,
        timeout=9,
    )
    assert answer.status_code == 400


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({"text": ""}, "1 to 8 tokens. Received 0"),
        ({"text": 3}, "Received no"),
        ({"text": "a \ud800 cup"}, "half a surrogate pair"),
        ({}, "text"),
        ([], "Received no"),
        ({"text": "a" * LONGEST}, f"at most {LONGEST} bytes"),
    ],
)
def test_requests_that_make_no_sense_are_refused(body, told, address):
    answer = requests.post(f"{address}translate", json=body, timeout=60)
    assert answer.status_code == 400
    assert told in answer.json()["error"]
    broken = requests.post(f"{address}translate", data="{", timeout=60)
    assert broken.status_code == 400 and broken.json()["error"]
    assert requests.get(f"{address}map?text=cup", timeout=60).status_code == 400


def test_it_searches_as_the_command_was_told():
    class Told:
        def unknown_tokens(self, text):
            return ["b", "a", "b"]

        def translate(self, texts, beam, length_penalty):
            return [f"{texts} {beam} {length_penalty}"]

    with serving(Told(), beam=3, length_penalty=0.5) as address:
        assert ask(address, text="cup").json() == {
            "translation": "['cup'] 3 0.5",
            "unknown": ["b", "a"],
        }


def test_a_translation_of_no_word_has_a_map(address):
    asked = {"text": "the red cup", "translation": ""}
    page = requests.get(f"{address}map", params=asked, timeout=60)
    assert page.status_code == 200 and "[end]" in page.text


def test_a_text_is_never_markup(address):
    text = "<script>alert(1)</script>"
    asked = {"text": text, "translation": text}
    page = requests.get(f"{address}map", params=asked, timeout=60)
    assert page.status_code == 200 and "alert" in page.text
    assert "<script>alert" not in page.text


@pytest.mark.skipif(os.name == "nt", reason="no Ctrl-C for another process")
def test_ctrl_c_ends_the_command(finished, environment):
    words = [sys.executable, "-m", "d2l_attention", "demo", str(finished)]
    process = subprocess.Popen(
        [*words, "--port=0"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        line = process.stdout.readline()
        address = line.split()[0]
        assert f"translates with {finished}: the finished run." in line
        for _ in range(100):  # it listens before it answers
            if ask(address, text="the red cup").ok:
                break
            time.sleep(0.1)
        places = psutil.Process(process.pid).net_connections("tcp")
        heard = {x.laddr.ip for x in places if x.status == "LISTEN"}
        assert heard == {"127.0.0.1"}  # and at no address of the network
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert (process.returncode, out, err) == (0, "", "")


def test_what_cannot_be_served_is_refused(
    finished, tmp_path, capsys, monkeypatch
):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main([str(finished), f"--port={port}"]) == 2
        err = capsys.readouterr().err
        assert f"Port {port} cannot be used" in err and "--port 8001" in err
    with pytest.raises(SystemExit):
        main([str(finished), "--port=70000"])
    assert "below 65536. Received: 70000" in capsys.readouterr().err
    assert main([str(tmp_path)]) == 2
    assert "is no run folder" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "starlette", None)
    assert __main__.main(["demo", str(finished)]) == 2
    assert 'pip install "starlette' in capsys.readouterr().err
