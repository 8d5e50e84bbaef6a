"""Kills, flipped bits and hostile requests: what must hold whatever happens.

    python benchmarks/attack.py [kills|flips|requests] [COUNT]

Everything stays on this machine: requests go to 127.0.0.1 only, and every loop has an end.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from lab_tasks import walk
from seqlaw.lab.errors import StoreError
from seqlaw.lab.run import run
from seqlaw.lab.store import FILE, contents, read

dice = random.Random(34)


def tasks() -> list[dict[str, Any]]:
    return [{"i": i, "sleep": 0.02} for i in range(150)]


def drive(folder: str) -> None:
    """A driver; each line that it prints is a number of records that it has acknowledged."""
    run(walk, tasks(), folder=folder, seed=5, jobs=2,
        progress=lambda summary, share: print(summary.done + summary.skipped, flush=True))  # fmt: skip


def descendants(pid: int) -> list[int]:
    """The processes below a process (Linux)."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for file in Path(f"/proc/{pid}/task").glob("*/children"):
            for child in file.read_text().split():
                found += [int(child), *descendants(int(child))]
    return found


def kills(count: int) -> None:
    """Kill drivers, and workers under them, amid the work; resume until the rows are complete."""
    with tempfile.TemporaryDirectory() as place:
        run(walk, tasks(), folder=f"{place}/whole", seed=5)
        whole = {one.key: one.rows for one in read(Path(place) / "whole")}
        seen, finished, folder, amid, done = Counter[str](), 0, 0, 0, 0
        while sum(seen.values()) < count:
            out = Path(place) / str(folder)
            line = [sys.executable, __file__, "drive", str(out)]
            with subprocess.Popen(line, stdout=subprocess.PIPE, text=True) as driver:
                assert driver.stdout is not None
                told, early = 0, dice.random() < 0.2
                moments = sorted(dice.randint(done, len(whole)) for _ in range(3))
                if early:
                    time.sleep(dice.uniform(0.2, 5.0))
                    driver.kill()
                    seen["driver, starting"] += 1
                for text in driver.stdout:
                    told = int(text)
                    if moments and told >= moments[0]:
                        moments.pop(0)
                        time.sleep(dice.uniform(0, 0.3))
                        workers = [pid for pid in descendants(driver.pid) if is_worker(pid)]
                        victim = dice.choice(workers) if moments and workers else driver.pid
                        if driver.poll() is None and victim in (driver.pid, *workers):
                            os.kill(victim, signal.SIGKILL)
                            seen["driver, amid" if victim == driver.pid else "worker"] += 1
            kept = {one.key: one.rows for one in read(out)} if (out / FILE).exists() else {}
            assert len(kept) >= told, "an acknowledged record is lost"
            assert kept.items() <= whole.items(), "a record differs"
            amid += 0 < len(kept) < len(whole)
            done = len(kept) % len(whole)
            if len(kept) == len(whole):
                finished, folder = finished + 1, folder + 1
        print(f"kills: {dict(seen)}; {amid} ends amid the work, {finished} sweeps completed; none lost, "
              "all rows the same")  # fmt: skip


def is_worker(pid: int) -> bool:
    """Whether a process is one that dask has spawned."""
    try:
        return b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def flips(count: int) -> None:
    """Flip one bit of a store at a time: read it, and let the next sweep make it whole."""
    from seqlaw.sweeping.run import rows_of, sweep

    sizes = {"M": list(range(2, 22)), "N": [10, 20], "P": [4, 8], "d": 32}
    tables = {"sizes": sizes, "schedules": [{"L": 50}]}
    with tempfile.TemporaryDirectory() as place:
        out = Path(place) / "out"
        sweep(tables, out)
        sound, columns = (out / FILE).read_bytes(), ["seconds"]
        whole = rows_of(out, None).frame
        seen = Counter[str]()
        for _ in range(count):
            for file in out.iterdir():
                file.unlink()
            bit, data = dice.randrange(8 * len(sound)), bytearray(sound)
            data[bit // 8] ^= 1 << bit % 8
            (out / FILE).write_bytes(data)
            try:
                found = rows_of(out, None)
                same = found.frame.equals(whole)
                kind = "named" if found.damage else "harmless" if same else "SILENT"
            except StoreError as error:
                kind = "refused" if "\n" not in str(error) else "TRACEBACK"
            except Exception as error:
                kind = f"TRACEBACK {error!r}"
            seen[kind] += 1
            if kind == "named" or kind == "harmless":
                sweep(tables, out)
                again = rows_of(out, None)
                healed = again.frame.drop(columns=columns).equals(whole.drop(columns=columns))
                seen["made whole"] += healed and not again.damage and not contents(out).damage
                seen["NOT MADE WHOLE"] += not healed or bool(again.damage)
    print(f"flips: {count} of {len(sound)} bytes: {dict(seen)}")


ODD = [None, True, -1, 0, 1e308, "1e400", "x" * 300, [], {}, [[]], {"a": {"b": []}}, "\ud800", "os:system",
       2**70, "__import__('os')", "inf", "nan", "regime1", 3.5, "../../etc/passwd", "=cmd", "\0",
       "1" * 200]  # fmt: skip
PATHS = ["/api/curve", "/api/spectrum", "/api/tradeoff", "/api/plan", "/api/ladders", "/api/jobs/sampled"]
STRANGE = ["/..%2f..%2fetc/passwd", "/%00", "//evil.example/", "/api/jobs/%2e%2e", "/static/../app.py",
           "/a" * 500, "/api/jobs/" + "x" * 3000, "/openapi.json?a=1&a=2", "/api/start#x", "/plotly.js/",
           "/api//start"]  # fmt: skip
HEADERS = [("origin", "http://["), ("origin", "null"), ("host", "[::1"), ("host", ""), ("host", "evil"),
           ("sec-fetch-site", "cross-site"), ("content-type", "text/plain"),
           ("content-type", "application/json; x"), ("content-length", "99999999999"),
           ("transfer-encoding", "chunked"), ("expect", "100-continue"), ("range", "bytes=0-1"),
           ("x", "y" * 4000), ("cookie", "a=b"), ("origin", "http://localhost:99999999")]  # fmt: skip


def hostile() -> Iterator[tuple[str, str, dict[str, str], bytes]]:
    """Method, path, headers and body, without end."""
    from web_server import QUESTION, TEACHER

    extra = {"along": "P", "start": 2, "stop": 64, "points": 3, "tokens": None, "eval_lengths": [16],
             "budget": {"compute": 200, "tokens": 50}, "method": "canary:X", "sketches": 1, "short": 2,
             "long": 8}  # fmt: skip
    plan = {**TEACHER, "compute": 200, "tokens": 50, "d": 64}
    while True:
        path = dice.choice(PATHS)
        body = dict(plan if path == "/api/plan" else QUESTION | {"points": 2, "stop": 8})
        for _ in range(dice.randrange(3)):
            name = dice.choice([*body, *extra])
            body[name] = dice.choice(
                [*ODD, extra.get(name), {"alpha": dice.choice(ODD)}, {"kind": dice.choice(ODD)}]
            )
        text = json.dumps(body).encode()
        spoil = dice.random()
        if spoil < 0.1:
            text = text[: dice.randrange(len(text))]
        elif spoil < 0.2:
            text = bytes(dice.randrange(256) for _ in range(dice.randrange(200)))
        elif spoil < 0.25:
            text = b"[" * dice.randrange(1, 16000)
        headers = {"content-type": "application/json"}
        headers |= dict([dice.choice(HEADERS)]) if dice.random() < 0.3 else {}
        strange = dice.random() < 0.15
        yield (
            dice.choice(["GET", "POST", "PUT", "DELETE", "OPTIONS"]) if strange else "POST",
            (dice.choice(STRANGE) if strange else path),
            headers,
            text,
        )


def spoken(port: int, method: str, path: str, headers: dict[str, str], body: bytes) -> tuple[int, bytes]:
    """The status and body of one request, written byte by byte: no client would send these."""
    lines = {"host": f"127.0.0.1:{port}", "content-length": str(len(body)), "connection": "close"} | headers
    head = f"{method} {path} HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    data = b""
    with socket.create_connection(("127.0.0.1", port), timeout=100) as one:
        one.sendall(head.encode("latin-1") + b"\r\n" + body)
        try:
            while part := one.recv(65536):
                data += part
        except ConnectionResetError:
            pass
        except TimeoutError:  # answered and left open, or not answered at all: then -1
            pass
    data = data.removeprefix(b"HTTP/1.1 100 Continue\r\n\r\n")
    start, _, rest = data.partition(b"\r\n\r\n")
    return (int(start.split()[1]) if start else -1), rest


def requests(count: int) -> None:
    """Hostile requests to an explorer, with bodies that never come and clients that leave among them."""
    from web_server import QUESTION, explorer

    with explorer() as (address, process):
        port = int(address.rpartition(":")[2])
        seen, slow, asked = Counter[int](), [], hostile()

        def ask(number: int) -> int:
            method, path, headers, body = lines[number]
            status, text = spoken(port, method, path, headers, body)
            if status >= 400 and text and b"Invalid HTTP" not in text:
                found = json.loads(text[text.index(b"{") : text.rindex(b"}") + 1])
                assert {"field", "rule", "value", "message"} <= set(found["error"]), text
            assert status < 500, (method, path, headers, body, text)
            return status

        lines = [next(asked) for _ in range(count)]
        with ThreadPoolExecutor(8) as threads:
            statuses = [threads.submit(ask, number) for number in range(count) if number % 20]
            for number in range(0, count, 20):  # a body that never comes, held open; or a client that leaves
                one = socket.create_connection(("127.0.0.1", port), timeout=30)
                one.sendall(b"POST /api/curve HTTP/1.1\r\nhost: localhost\r\ncontent-length: 400\r\n\r\n{")
                if number % 60:
                    slow.append(one)
                else:
                    one.close()
                    seen[0] += 1
            seen.update(status.result() for status in statuses)
        for one in slow:
            answer = one.recv(65536)
            seen[int(answer.split()[1])] += 1
            one.close()
        good = spoken(port, "POST", "/api/curve", {"content-type": "application/json"},
                      json.dumps(QUESTION).encode())  # fmt: skip
        assert good[0] == 200, good
        assert process.poll() is None
    print(f"requests: {count} to {address}: {dict(sorted(seen.items()))} (0: left); it still answers")


if __name__ == "__main__":
    what, *rest = sys.argv[1:] or ["all"]
    if what == "drive":
        drive(rest[0])
        sys.exit()
    for part, usual in ((kills, 60), (flips, 300), (requests, 2000)):
        if what in ("all", part.__name__):
            part(int(rest[0]) if rest else usual)
