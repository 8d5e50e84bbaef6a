"""The server: one page, its files, and a JSON API that hands each question to a worker."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import asdict, replace
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse
from starlette.exceptions import HTTPException

import seqlaw
from seqlaw.answers.glossary import SIGNS, WORDS
from seqlaw.answers.spectrum import NO_NUMBER
from seqlaw.files import explain
from seqlaw.model.checks import InputError
from seqlaw.model.teacher import PRESETS
from seqlaw.model.threads import cores
from seqlaw.web.guard import Guard, problem
from seqlaw.web.pool import Busy, Fault, Job, Jobs, Lost, OutOfTime, Pool
from seqlaw.web.schema import METHOD, VIEWS, JobState, Refusal, body_of, controls, question_of
from seqlaw.web.views import VIEWS as SHOWN
from seqlaw.web.views import to_json

LOOPBACK = ("127.0.0.1", "localhost", "::1")
ANSWER_SECONDS = 10.0
JOB_SECONDS = 240.0
_SCRIPT = "text/javascript; charset=utf-8"
_STATIC = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/style.css": ("style.css", "text/css; charset=utf-8"),
    "/icon.svg": ("icon.svg", "image/svg+xml"),
    **{
        f"/{name}.js": (f"{name}.js", _SCRIPT)
        for name in ["app", "state", "controls", "charts", "answers", "ladders", "leaving", "theme", "words"]
    },
}
_ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": Refusal, "description": text}
    for status, text in (
        (400, "The body is not JSON."),
        (408, "The body did not come."),
        (415, "The body is not called application/json."),
        (422, "A value breaks a rule; the error names the field."),
        (429, "Too many questions or jobs at once."),
        (503, "A worker ended amid the question."),
    )
}


class _Services:
    """What lives as long as the server: the workers, the jobs, and the panels once computed."""

    def __init__(self, results: str | None) -> None:
        self.results = results
        self.quick = Pool(size=max(1, min(4, cores() - 1)), queue=16, seconds=ANSWER_SECONDS)
        self.slow = Pool(size=1, queue=Jobs.ACTIVE, seconds=JOB_SECONDS)
        self.jobs = Jobs(self.slow)
        self.panels: bytes | None = None

    async def close(self) -> None:
        await self.jobs.close()
        await self.quick.close()
        await self.slow.close()


def create_app(
    *, hosts: Iterable[str] | None = LOOPBACK, results: str | Path | None = None, method: str = METHOD
) -> FastAPI:
    """The application. `hosts` are the names it answers to (None: any); `results` a reproduce folder.

    `method` is that of the curves, which no request can change: it may be code of the user's.
    """
    services: dict[str, _Services] = {}

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        own = services["own"] = _Services(None if results is None else str(results))
        await own.quick.warm()
        try:
            yield
        finally:
            await own.close()

    app = FastAPI(
        title="seqlaw explorer",
        version=seqlaw.__version__,
        description=(
            "Linear RNN scaling laws. Every body is a setting of the Python library; errors name the field."
        ),
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
    )
    app.add_middleware(Guard, hosts=hosts)
    _handle_errors(app)
    _serve_files(app)

    async def ask(view: str, body: Any, request: Request) -> Response:
        """The view from a worker; a question that nobody waits for any more leaves the queue."""
        started = asyncio.Event()
        answer = asyncio.create_task(services["own"].quick.run(view, body, started=started))
        gone = asyncio.create_task(_disconnected(request))
        await asyncio.wait({answer, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not answer.done():
            if not started.is_set():
                answer.cancel()  # one that runs is let run: a new worker costs more than an answer
            await asyncio.wait({answer})
            if answer.cancelled():
                return Response(status_code=499)
        gone.cancel()
        return _json(answer.result())

    @app.get("/api/start", summary="Presets, limits, version, and what words mean")
    async def start() -> dict[str, Any]:
        presets = {name: asdict(teacher) for name, teacher in PRESETS.items()}
        told = {"version": seqlaw.__version__, "presets": presets, "controls": controls()}
        return told | {"signs": SIGNS, "words": WORDS}

    def asks(path: str, name: str, words: str | None = None, *, job: bool = False, **fixed: Any) -> None:
        """An address that takes the question of a view; a job answers in the background."""
        view = VIEWS[name]

        async def answer(body: Any, request: Request) -> Response:
            question = replace(question_of(view, body), **fixed)
            _refuse_early(question)
            if job:
                return _state(services["own"].jobs.start(name, question), status=202)
            return await ask(name, (question, method) if name == "curve" else question, request)

        kind = body_of(path.replace("-", " ").title().replace(" ", ""), view)
        answer.__annotations__ |= {"body": kind, "request": Request}
        answer.__doc__, answer.__name__ = words or SHOWN[name].__doc__, path.replace("-", "_")
        made: dict[str, Any] = {"response_model": JobState, "status_code": 202} if job else {}
        where = f"/api/{'jobs/' * job}{path}"
        app.post(where, responses=_ERRORS, **({"response_model": dict[str, Any]} | made))(answer)

    for name in ("spectrum", "curve", "tradeoff", "plan", "ladders"):
        asks(name, name)
    asks("sampled", "sampled", "Sample points of a curve in the background.", job=True)
    words = "Plan one pass in the background, which takes some seconds; gamma is chosen."
    asks("one-pass", "plan", words, job=True, one_pass=True)

    @app.get("/api/panels", response_model=dict[str, Any], responses=_ERRORS)
    async def panels(request: Request) -> Response:
        """The paper's six panels, computed once."""
        own = services["own"]
        if own.panels is not None:
            return _json(own.panels)
        answer = await ask("panels", (own.results, method), request)
        if answer.status_code == 200:  # and not that of a client that left
            own.panels = bytes(answer.body)
        return answer

    missing: dict[int | str, dict[str, Any]] = {404: {"model": Refusal, "description": "No such job."}}

    @app.get("/api/jobs/{key}", response_model=JobState, responses=missing)
    async def job(key: str) -> Response:
        """How far a job is, and its answer once it is done."""
        return _state(_find(services["own"].jobs, key))

    @app.delete("/api/jobs/{key}", response_model=JobState, responses=missing)
    async def cancel(key: str) -> Response:
        """Stop a job at once."""
        found = _find(services["own"].jobs, key)
        await services["own"].jobs.cancel(found)
        return _state(found)

    return app


def _refuse_early(question: Any) -> None:
    """What the library refuses needs no worker; where double precision ends, the worker says so."""
    try:
        question.call()
    except InputError:
        raise
    except NO_NUMBER:
        pass


def _find(jobs: Jobs, key: str) -> Job:
    job = jobs.get(key)
    if job is None:
        raise HTTPException(404)
    return job


def _state(job: Job, *, status: int = 200) -> Response:
    """The state of a job; its answer is JSON already and is put in as it is."""
    error = None if job.error is None else _problem(job.error)
    head = to_json({"id": job.id, "state": job.state, "done": job.done, "total": job.total, "error": error})
    return _json(head[:-1] + b',"answer":' + (job.answer or b"null") + b"}", status=status)


def _json(text: bytes, *, status: int = 200) -> Response:
    return Response(text, media_type="application/json", status_code=status)


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _problem(error: InputError) -> dict[str, str]:
    shown = "nothing" if error.value is None else error.value
    return problem(error.field, error.rule, shown if isinstance(shown, str) else repr(shown))


def _refuse(status: int, error: InputError, *others: InputError) -> Response:
    headers = {"retry-after": "1"} if status in (429, 503) else {}
    also = {"also": [_problem(other)["message"] for other in others]} if others else {}
    body = to_json({"error": _problem(error) | also})
    return Response(body, status_code=status, media_type="application/json", headers=headers)


# What pydantic finds, by its name for it, in the words of the library's own rules.
_RULES = {
    "float_parsing": "must be a valid number",
    "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number",
    "literal_error": "must be {expected}",
    "less_than_equal": "must be at most {le:g}",
    "greater_than_equal": "must be at least {ge:g}",
    "too_short": "must name at least {min_length}",
    "too_long": "must name at most {max_length}",
}


def _explain(found: dict[str, Any]) -> InputError:
    error = explain(found)
    rule = _RULES.get(found["type"])
    return (
        error if rule is None else InputError(error.field, rule.format(**found.get("ctx", {})), error.value)
    )


def _handle_errors(app: FastAPI) -> None:
    """Every answer that is not a success is the same JSON: the field, the rule, the value."""

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        found = [dict(one) for one in error.errors()]
        for one in found:
            one["loc"] = [part for part in one["loc"] if part != "body"] or ["body"]
        if found[0]["type"] == "json_invalid":
            return _refuse(400, InputError("body", "must be JSON", str(found[0]["ctx"]["error"])))
        if isinstance(found[0].get("input"), bytes):  # FastAPI reads what is called JSON only
            kind = request.headers.get("content-type", "none")
            return _refuse(415, InputError("content-type", "must be application/json", kind))
        return _refuse(422, *map(_explain, found))

    @app.exception_handler(InputError)
    async def refused(request: Request, error: InputError) -> Response:
        return _refuse(422, error)

    def refuse(kind: type[Exception], status: int, *said: str) -> None:
        @app.exception_handler(kind)
        async def answer(request: Request, error: Exception) -> Response:
            job = kind is Busy and request.url.path.startswith("/api/jobs")
            told = ("jobs", f"must be at most {Jobs.ACTIVE} at once", "one more") if job else said
            return _refuse(status, InputError(*told))

    refuse(Busy, 429, "server", "is busy: try again", "too many questions")
    refuse(OutOfTime, 422, "time", f"must stay below {ANSWER_SECONDS:g} s", "a longer answer")
    refuse(Lost, 503, "server", "must keep its worker", "one that ended")
    refuse(Fault, 500, "server", "met a fault of its own, which it has printed", "no answer")

    @app.exception_handler(HTTPException)
    async def other(request: Request, error: HTTPException) -> Response:
        allowed = (error.headers or {}).get("Allow", "")
        rules = {404: "must exist", 405: f"must be by {allowed}", 413: "must have a shorter body"}
        rule = rules.get(error.status_code, "must be readable")
        asked = f"{request.method} {request.url.path}" if allowed else request.url.path
        refused = _refuse(error.status_code, InputError("request", rule, asked))
        if allowed:
            refused.headers["allow"] = allowed
        return refused


def _serve_files(app: FastAPI) -> None:
    """The page's own files, and plotly.js from the installed package."""
    folder = files("seqlaw.web") / "static"

    def serve(path: str, file: Path, media_type: str) -> None:
        async def read() -> Response:
            return FileResponse(file, media_type=media_type)

        app.get(path, include_in_schema=False)(read)

    for path, (name, media_type) in _STATIC.items():
        serve(path, Path(str(folder / name)), media_type)
    package = find_spec("plotly")  # found, not imported: only its script is wanted
    if package is None or package.origin is None:
        raise ModuleNotFoundError("the page draws with plotly.js", name="plotly")
    script = Path(package.origin).parent / "package_data" / "plotly.min.js"
    serve("/plotly.js", script, _SCRIPT)
