"""`seqlaw explore`: the explorer in a browser."""

from __future__ import annotations

import ipaddress
import os
import socket
import threading
import webbrowser
from typing import Annotated

import typer

from seqlaw.methods.ask import method_name, method_of
from seqlaw.model.checks import InputError, MissingLibrary, needs, whole


def explore(
    host: Annotated[str, typer.Option(help="Address to listen on.", metavar="ADDRESS")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on; 0 takes a free one.")] = 8765,
    no_open: Annotated[bool, typer.Option("--no-open", help="Do not open a browser.")] = False,
    allow_remote: Annotated[
        bool, typer.Option("--allow-remote", help="Let other machines in: there is no password.")
    ] = False,
    method: Annotated[
        str,
        typer.Option(help="Method of the curves, or your own by import path.", metavar="NAME|MODULE:NAME"),
    ] = "equivalent",
    results: Annotated[
        str | None, typer.Option(help="A folder of `seqlaw reproduce` for the six panels.", metavar="DIR")
    ] = None,
) -> None:
    """See the law move in a browser.

    Sliders for the teacher and the sizes, and the curves that follow them.

    Example: seqlaw explore --port 0
    """
    if not _is_loopback(host) and not allow_remote:
        raise InputError("host", "must be a loopback address without --allow-remote", host)
    try:
        import uvicorn

        from seqlaw.web.app import LOOPBACK, create_app

        hosts = None if allow_remote else {*LOOPBACK, host.lower()}
        named = method_name(method_of(method))
        app = create_app(hosts=hosts, results=results, method=named)
    except ImportError as error:
        raise MissingLibrary(f"seqlaw explore {needs(error.name or 'fastapi', 'web')}") from None
    if results is not None:
        from seqlaw.web.panels import check_results

        check_results(results, named)
    listener = _listen(host, whole("port", port, least=0, most=65535))
    name = f"[{host}]" if ":" in host else host
    url = f"http://{name}:{listener.getsockname()[1]}/"
    # Idle connections outlast the five seconds of common clients: closing first would race with a reuse.
    config = uvicorn.Config(
        app, log_level="warning", server_header=False, access_log=False, timeout_keep_alive=30
    )
    print(f"seqlaw explorer: {url} (Ctrl-C stops it)", flush=True)
    if not no_open:
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
