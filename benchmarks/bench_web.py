"""The explorer under load and under a hand: statuses and memory at 200 requests at once, slider to picture.

Loopback only. The browser part needs a chromium on the PATH and is left out without one.
"""

from __future__ import annotations

import asyncio
import shutil
import statistics
import sys
import time
from pathlib import Path

from timing import report

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from web_server import explorer, load

STATES = {
    "curve": ("view=curve", 120),
    "curve along R": ("view=curve&along=R", 120),
    "curve in epochs": ("view=curve&one_pass=on&epochs=4&batch=16", 120),
    "spectrum": ("view=spectrum", 120),
    "tradeoff": ("view=tradeoff", 120),
    "ladders": ("view=ladders", 120),
    "plan": ("view=plan", 500),
    "plan tested at 2048": ("view=plan&eval_length=2048", 500),
}
"""What the hand looks at: the address, and the milliseconds that 95 % of its answers should stay below."""
JOB = "view=plan&one_pass=on"
"""A plan of one pass is a job, which starts when the hand rests."""


def drag(address: str, browser: str) -> tuple[list[float], float]:
    """Milliseconds from each slider event to its picture, over a drag of θ; seconds from its end to rest."""
    from playwright.sync_api import sync_playwright

    flags = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--no-first-run",
        "--disable-background-networking",
    ]
    with sync_playwright() as play:
        page = play.chromium.launch(executable_path=browser, args=flags).new_page(
            viewport={"width": 1280, "height": 800}
        )
        page.goto(address)
        page.wait_for_selector('.chart[aria-busy="false"] .main-svg')
        box = page.locator("input[name=theta-slider]").bounding_box()
        assert box is not None
        y = box["y"] + box["height"] / 2
        page.mouse.move(box["x"] + 0.1 * box["width"], y)
        page.mouse.down()
        for k in range(150):
            page.mouse.move(box["x"] + (0.1 + 0.005 * k) * box["width"], y)
            time.sleep(0.015)
        page.mouse.up()
        began = time.perf_counter()
        page.wait_for_selector('.chart[aria-busy="false"]')
        page.wait_for_function("() => !document.querySelector('#status progress')")
        rested = time.perf_counter() - began
        script = "() => performance.getEntriesByName('slider-to-picture').map(e => e.duration)"
        return [float(value) for value in page.evaluate(script)], rested


def main() -> None:
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    with explorer() as (address, process):
        if browser is not None:
            for name, (state, asked) in STATES.items():
                times, _ = drag(f"{address}/#{state}", browser)
                middle = f"median {statistics.median(times):.0f}, worst {max(times):.0f} ms of {len(times)}"
                high = statistics.quantiles(times, n=20)[-1]
                report(f"slider to {name}, 95th percentile in ms ({middle})", high, f"< {asked}")
            report(
                "a plan of one pass after the slider rests, seconds",
                drag(f"{address}/#{JOB}", browser)[1],
                "3",
            )
        statuses, memory = asyncio.run(load(address, process.pid, 200, 20.0))
        other = sum(count for status, count in statuses.items() if status not in (200, 429, 503))
        report(f"explorer: 200 at once for 20 s, {dict(statuses)}: other answers", other, "0")
        half = len(memory) // 2
        growth = max(memory[half:]) / max(memory[2:half])
        report(f"explorer: memory of the second half over the first ({memory[-1]:.0f} MiB)", growth, "1.0")


if __name__ == "__main__":
    main()
