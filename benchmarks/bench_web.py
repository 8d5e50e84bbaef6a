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
    "curve": ("view=curve", "< 120"),
    "plan": ("view=plan", "< 400"),
    "plan tested at 2048": ("view=plan&eval_length=2048", "< 400"),
}
"""What the hand looks at: the address, and the median it should have."""


def drag(address: str, browser: str) -> list[float]:
    """Milliseconds from each slider event to the picture it led to, over a drag of θ."""
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
        page.wait_for_selector('.chart[aria-busy="false"]')
        script = "() => performance.getEntriesByName('slider-to-picture').map(e => e.duration)"
        return [float(value) for value in page.evaluate(script)]


def main() -> None:
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    with explorer() as (address, process):
        if browser is not None:
            for name, (state, median) in STATES.items():
                times = drag(f"{address}/#{state}", browser)
                report(
                    f"explorer: slider to {name}, median ms of {len(times)}", statistics.median(times), median
                )
                report(f"explorer: slider to {name}, worst ms", max(times), "no stale queue")
        statuses, memory = asyncio.run(load(address, process.pid, 200, 20.0))
        other = sum(count for status, count in statuses.items() if status not in (200, 429, 503))
        report(f"explorer: 200 at once for 20 s, {dict(statuses)}: other answers", other, "0")
        half = len(memory) // 2
        growth = max(memory[half:]) / max(memory[2:half])
        report(f"explorer: memory of the second half over the first ({memory[-1]:.0f} MiB)", growth, "1.0")


if __name__ == "__main__":
    main()
