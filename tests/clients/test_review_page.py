# SPDX-License-Identifier: Apache-2.0
"""The review as a page, in a real browser: light and dark, on a desktop and on a phone, and printed."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from tests.support.browser import browser
from tests.support.review_samples import whole_review
from trainyard.review.forms import FORMS

# The contrast of text and background (WCAG: 4.5 for text of this size).
CONTRAST = """(() => {
  const parse = text => text.match(/[\\d.]+/g).map(Number).slice(0, 3).map(one => one / 255)
    .map(one => one <= 0.03928 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4);
  const light = text => { const [r, g, b] = parse(text); return 0.2126 * r + 0.7152 * g + 0.0722 * b };
  const paper = light(getComputedStyle(document.body).backgroundColor);
  return Math.min(...[...document.querySelectorAll('h1, h2, h3, li, p, figcaption, .picture text')].map(one => {
    const style = getComputedStyle(one);
    const ink = light(one.closest('svg') ? style.fill : style.color);
    return (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
  }));
})()"""


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1280, 360], ids=["desk", "phone"])
def test_the_page_is_readable_in_both_colour_schemes_and_on_a_phone(width: int, dark: bool, tmp_path: Path) -> None:
    file = tmp_path / "review.html"
    file.write_text(FORMS["html"]([whole_review("vision-prod-with-a-rather-long-name", 12)], ()), "utf-8")
    with browser(tmp_path) as seen:
        page = seen.open(file.as_uri(), width, 900, dark)
        page.wait("document.readyState === 'complete' && !!document.querySelector('h1')")
        # Only the drawing is wider than the window, and it scrolls in its frame.
        assert page.value("document.documentElement.scrollWidth") <= width
        assert page.value(CONTRAST) >= 4.5
        assert page.value("parseFloat(getComputedStyle(document.body).fontSize)") >= 16
        boxes = page.value("document.querySelectorAll('.picture .box').length")
        assert boxes == 3
        (tmp_path / "seen.png").write_bytes(page.picture(whole=True))


def test_the_page_is_printed_completely(tmp_path: Path) -> None:
    file = tmp_path / "review.html"
    file.write_text(FORMS["html"]([whole_review(many=12)], ()), "utf-8")
    with browser(tmp_path) as seen:
        page = seen.open(file.as_uri())
        page.wait("document.readyState === 'complete' && !!document.querySelector('h1')")
        printed = base64.b64decode(page.call("Page.printToPDF", printBackground=True)["data"])
        assert printed.startswith(b"%PDF")
        page.call("Emulation.setEmulatedMedia", media="print")
        assert page.value("getComputedStyle(document.querySelector('figure')).overflowX") == "visible"
