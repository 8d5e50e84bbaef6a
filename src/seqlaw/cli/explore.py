"""`seqlaw explore`: the explorer in a browser."""

from __future__ import annotations

import ipaddress
import os
import socket
import threading
import webbrowser
from dataclasses import dataclass

from seqlaw.cli.output import Output
from seqlaw.methods.ask import method_name, method_of
from seqlaw.model.checks import InputError, MissingLibrary, needs, whole
from seqlaw.questions.options import COUNT, METHOD, OUTPUT, option
from seqlaw.questions.question import Call, Question


@dataclass(frozen=True, kw_only=True)
class Explore(Question):
    """Explore the law in a browser.

    Sliders for the teacher and the sizes, and the curves that follow them.
    """

    command = "explore"
    example = "seqlaw explore --port 0"
    prints = False

    host: str = option("127.0.0.1", "Address to listen on.", OUTPUT, metavar="ADDRESS")
    port: int = option(8765, "Port to listen on; 0 takes a free one.", OUTPUT, kind=COUNT)
    no_open: bool = option(False, "Do not open a browser.", OUTPUT)
    allow_remote: bool = option(False, "Let other machines in: there is no password.", OUTPUT)
    method: str = option(
        "equivalent", "Method of the curves, or your own by import path.", METHOD, metavar="NAME|MODULE:NAME"
    )
    results: str | None = option(
        None, "A folder of `seqlaw reproduce` for the six panels.", OUTPUT, metavar="DIR"
    )

    def call(self) -> Call:
        raise NotImplementedError  # it serves others' questions


def explore(asked: Explore, output: Output | None = None) -> None:
    """Serve until Ctrl-C."""
    if not _is_loopback(asked.host) and not asked.allow_remote:
        raise InputError("host", "must be a loopback address without --allow-remote", asked.host)
    try:
        import uvicorn

        from seqlaw.web.app import LOOPBACK, create_app

        hosts = None if asked.allow_remote else {*LOOPBACK, asked.host.lower()}
        named = method_name(method_of(asked.method))
        app = create_app(hosts=hosts, results=asked.results, method=named)
    except ImportError as error:
        raise MissingLibrary(f"seqlaw explore {needs(error.name or 'fastapi', 'web')}") from None
    if asked.results is not None:
        from seqlaw.web.panels import check_results

        check_results(asked.results, named)
    listener = _listen(asked.host, whole("port", asked.port, least=0, most=65535))
    name = f"[{asked.host}]" if ":" in asked.host else asked.host
    url = f"http://{name}:{listener.getsockname()[1]}/"
    # Idle connections outlast the five seconds of common clients: closing first would race with a reuse.
    config = uvicorn.Config(
        app, log_level="warning", server_header=False, access_log=False, timeout_keep_alive=30
    )
    print(f"seqlaw explorer: {url} (Ctrl-C stops it)", flush=True)
    if not asked.no_open:
        threading.Timer(1.0, webbrowser.open, (url,)).start()
    uvicorn.Server(config).run(sockets=[listener])


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _listen(host: str, port: int) -> socket.socket:
    """A bound socket, so that a taken port is one line and a free one is known before the server starts."""
    listener = None
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
        family, kind, protocol, _, address = found[0]
        # With the protocol named asyncio turns Nagle's delay off: 40 ms of every answer otherwise.
        listener = socket.socket(family, kind, protocol)
        if os.name == "posix":  # on Windows it would share a port that another program has
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except OSError as error:
        if listener is not None:
            listener.close()
        raise InputError("port", f"must be free ({error.strerror})", f"{host}:{port}") from None
    return listener
