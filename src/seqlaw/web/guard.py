"""The door: which hosts, how large a body, how many at once, and the headers of every answer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any
from urllib.parse import urlsplit

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

MOST_BYTES = 16 * 1024
"""The longest body of a request; the largest question takes about one thousand."""
MOST_AT_ONCE = 64
BODY_SECONDS = 10.0
SEND_SECONDS = 60.0
"""For a client to send its body, and to take each part of an answer."""
# Plotly draws with inline styles and turns pictures into data: and blob: images; nothing else is let in.
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data: blob:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-cache",
}


def problem(field: str, rule: str, value: str) -> dict[str, str]:
    """What was refused, for people and for programs; the value cut to a line."""
    shown = value if len(value) <= 80 else value[:77] + "..."
    return {"field": field, "rule": rule, "value": shown, "message": f"{field} {rule}, got {shown}"}


class Guard:
    """Around the whole application: nothing reaches it or leaves it otherwise.

    `hosts` are the names by which the server may be called (None: any). A page elsewhere that resolves its
    own name to 127.0.0.1 would otherwise read the answers.
    """

    def __init__(self, app: App, hosts: Iterable[str] | None) -> None:
        self._app = app
        self._hosts = None if hosts is None else frozenset(hosts)
        self._inside = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def decorated(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                given = {name for name, _ in message["headers"]}
                message["headers"] = [
                    *message["headers"],
                    *((k.encode(), v.encode()) for k, v in HEADERS.items() if k.encode() not in given),
                ]
            async with asyncio.timeout(SEND_SECONDS):  # a client that reads nothing holds no place for ever
                await send(message)

        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        body, refused = b"", self._refused(headers)
        if refused is None:
            try:
                async with asyncio.timeout(BODY_SECONDS):
                    body = await _body(receive)
            except TimeoutError:
                refused = 408, "body", f"must come within {BODY_SECONDS:g} s", "a slower one"
            except _Gone:
                return
        if refused is None and len(body) > MOST_BYTES:
            refused = 413, "body", f"must be at most {MOST_BYTES} bytes", "more"
        if refused is None and self._inside >= MOST_AT_ONCE:  # a body that is still to come holds no place
            refused = 429, "server", f"takes at most {MOST_AT_ONCE} requests at once", "more"
        if refused is not None:
            await _refuse(decorated, *refused)
            return
        self._inside += 1
        try:
            await self._app(scope, _again(body, receive), decorated)
        finally:
            self._inside -= 1

    def _refused(self, headers: dict[bytes, str]) -> tuple[int, str, str, str] | None:
        host = headers.get(b"host", "")
        name = host.rpartition(":")[0] if not host.endswith("]") and ":" in host else host
        if self._hosts is not None and name.strip("[]").lower() not in self._hosts:
            return 421, "host", "must be a loopback name", host
        if headers.get(b"sec-fetch-site") in ("cross-site", "same-site"):
            return 403, "origin", "must be this page", headers[b"sec-fetch-site"]
        origin = headers.get(b"origin")  # browsers that say no more than this
        if self._hosts is not None and origin and _hostname(origin) not in self._hosts:
            return 403, "origin", "must be this page", origin
        length = headers.get(b"content-length", "0")
        if not length.isdecimal() or len(length) > 9 or int(length) > MOST_BYTES:
            return 413, "body", f"must be at most {MOST_BYTES} bytes", length
        return None


def _hostname(origin: str) -> str | None:
    try:
        return urlsplit(origin).hostname
    except ValueError:  # no address at all: http://[
        return None


class _Gone(Exception):
    """The client left."""


async def _body(receive: Receive) -> bytes:
    """The whole body, or a little more than is allowed of it."""
    body, more = b"", True
    while more and len(body) <= MOST_BYTES:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise _Gone
        body += message.get("body", b"")
        more = message.get("more_body", False)
    return body


def _again(body: bytes, receive: Receive) -> Receive:
    """The body in one piece, then what else comes: that the client leaves."""
    messages = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> MutableMapping[str, Any]:
        return messages.pop() if messages else await receive()

    return replay


async def _refuse(send: Send, status: int, field: str, rule: str, value: str) -> None:
    body = json.dumps({"error": problem(field, rule, value)}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if status == 429:
        headers.append((b"retry-after", b"1"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
