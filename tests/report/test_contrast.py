"""The colours of the page, read from its style sheet: WCAG AA asks 4.5 of text and 3 of shapes that mean something."""

import re
from pathlib import Path

import pytest

from s3gym.report import render

STYLE = re.sub(r"/\*.*?\*/", "", Path(render.__file__).with_name("page.css").read_text(), flags=re.DOTALL)
DARK = "@media screen and (prefers-color-scheme: dark) {"
BACKGROUNDS = ("page", "surface")


def _colours(scheme: str) -> dict[str, str]:
    light, rest = STYLE.split(DARK)
    dark = rest.split("}")[0]
    shown = re.findall(r"--([\w-]+): (#[0-9a-f]{6});", light + (dark if scheme == "dark" else ""))
    return dict(shown)


def _luminance(colour: str) -> float:
    shares = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = [s / 12.92 if s <= 0.04045 else ((s + 0.055) / 1.055) ** 2.4 for s in shares]
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _contrast(one: str, other: str) -> float:
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


def _pairs() -> set[tuple[str, str]]:
    """Text and background of each rule that colours text; without a background of its own it stands on the page's."""
    pairs = set()
    for _, rule in re.findall(r"([^{}]+)\{([^{}]*)\}", STYLE):
        text = re.search(r"(?<![\w-])color: var\(--([\w-]+)\)", rule)
        behind = re.search(r"(?<![\w-])background(?:-color)?: var\(--([\w-]+)\)", rule)
        if text:
            pairs |= {(text[1], name) for name in ([behind[1]] if behind else BACKGROUNDS)}
    return pairs


def test_black_on_white_is_as_far_apart_as_can_be() -> None:
    # (1 + 0.05) / (0 + 0.05) = 21
    assert _contrast("#000000", "#ffffff") == pytest.approx(21)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_can_be_read_on_its_background(scheme: str) -> None:
    colours = _colours(scheme)

    ratios = {pair: _contrast(colours[pair[0]], colours[pair[1]]) for pair in _pairs()}

    assert {("ink", "page"), ("muted", "surface"), ("good", "good-back"), ("bad", "bad-back")} <= set(ratios)
    assert {pair: ratio for pair, ratio in ratios.items() if ratio < 4.5} == {}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_line_and_bar_stands_out_from_its_background(scheme: str) -> None:
    colours = _colours(scheme)
    shapes = [name for name in colours if name.startswith("series-")] + ["control", "under", "over", "accent"]

    ratios = {name: _contrast(colours[name], colours["surface"]) for name in shapes}

    assert {name: ratio for name, ratio in ratios.items() if ratio < 3} == {}
