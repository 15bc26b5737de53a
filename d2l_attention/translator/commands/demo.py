"""A page that translates; see `python -m d2l_attention demo --help`."""

import argparse
import contextlib
import json
from pathlib import Path
import socket
import threading

from d2l_attention._extras import check_extra
from d2l_attention.datasets import END, DataError
from d2l_attention.datasets.tokens import join_tokens
from d2l_attention.heatmaps import view_attention
from d2l_attention.translator.commands import (
    add_search_options,
    errors_in_a_line,
    find_devices,
    search_options,
)
from d2l_attention.translator.run_folder import Run
from d2l_attention.translator.settings import at_least

PAGE = Path(__file__).with_name("demo_page")
HOSTS = ["127.0.0.1", "localhost"]
LONGEST = 20_000  # bytes of a request
EXAMPLES = 3  # sentences that the page offers


@errors_in_a_line
def main(arguments):
    parser = argparse.ArgumentParser(
        prog="python -m d2l_attention demo",
        description="Show a page on this machine that translates with a run, "
        "and shows where it looked. Ctrl-C ends it.",
    )
    parser.add_argument("run", help="the run folder")
    parser.add_argument(
        "--port",
        type=at_least(0, below=65536),
        default=8000,
        help="0 takes a free one (8000)",
    )
    add_search_options(parser)
    options = parser.parse_args(arguments)
    search = search_options(parser, options)
    check_extra(f"`{parser.prog}`", "demo")
    import uvicorn

    find_devices()
    run = Run(options.run)
    translator, what = run.load()
    try:
        listening = socket.create_server(("127.0.0.1", options.port))
    except OSError as error:
        raise OSError(
            f"Port {options.port} cannot be used: {error.strerror}. Name "
            "another one, as in --port 8001."
        ) from error
    app = make_app(translator, **search, about=about(run))
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
    print(
        f"http://127.0.0.1:{listening.getsockname()[1]}/ translates with "
        f"{options.run}: {what}. Ctrl-C ends it.",
        flush=True,
    )
    with contextlib.suppress(KeyboardInterrupt):
        server.run(sockets=[listening])
    return 0


def about(run):
    """What the page says of a run, and three sentences to try."""
    try:
        pairs = run.held_out_pairs()
    except DataError:  # its corpus is gone
        pairs = []
    sources = list(dict.fromkeys(source for source, _ in pairs))[:EXAMPLES]
    raw = run.load_settings().subwords
    examples = sources if raw else [join_tokens(text) for text in sources]
    return {"run": run.describe(), "examples": examples}


def make_app(translator, beam=1, length_penalty=1.0, about=None):
    """The web application: a page, translations and maps.

        GET  /about      →  {"run": sentences, "examples": [text, …]}
        POST /translate  {"text": …}  →  {"translation": …, "unknown": […]}
        GET  /map?text=…&translation=…  →  a page of `view_attention`

    Only this machine may ask, and one translation is made at a time.
    """
    from starlette.applications import Starlette
    from starlette.concurrency import run_in_threadpool
    from starlette.middleware import Middleware
    from starlette.middleware.trustedhost import TrustedHostMiddleware
    from starlette.responses import (
        HTMLResponse,
        JSONResponse,
        PlainTextResponse,
    )
    from starlette.routing import Mount, Route
    from starlette.staticfiles import StaticFiles

    one_at_a_time = threading.Lock()

    def find(text):
        with one_at_a_time:
            unknown = translator.unknown_tokens(text)
            (translation,) = translator.translate(
                [text], beam, length_penalty=length_penalty
            )
        return {
            "translation": translation,
            "unknown": list(dict.fromkeys(unknown)),
        }

    def draw(text, translation):
        with one_at_a_time:
            weights, source, target = translator.attention(text, translation)
        if target[-1] == END and target[1:]:  # no word that the reader sees
            weights, target = weights[:-1], target[:-1]
        view = view_attention(
            weights[None, None], query_tokens=target, key_tokens=source
        )
        return view.to_html()

    async def describe(request):
        return JSONResponse(about or {"run": "", "examples": []})

    async def translate(request):
        try:
            body = b""
            async for some in request.stream():
                body += some
                if len(body) > LONGEST:
                    raise ValueError(f"A request has at most {LONGEST} bytes.")
            asked = json.loads(body)
            if not (isinstance(asked, dict) and isinstance(asked["text"], str)):
                raise ValueError('Received no {"text": …}.')
            return JSONResponse(await run_in_threadpool(find, asked["text"]))
        except (ValueError, KeyError) as error:
            return JSONResponse({"error": str(error)}, 400)

    async def show_map(request):
        asked = request.query_params
        try:
            words = asked["text"], asked["translation"]
            return HTMLResponse(await run_in_threadpool(draw, *words))
        except (ValueError, KeyError) as error:
            return PlainTextResponse(str(error), 400)

    return Starlette(
        routes=[
            Route("/about", describe),
            Route("/translate", translate, methods=["POST"]),
            Route("/map", show_map),
            Mount("/", StaticFiles(directory=PAGE, html=True)),
        ],
        middleware=[Middleware(TrustedHostMiddleware, allowed_hosts=HOSTS)],
    )
