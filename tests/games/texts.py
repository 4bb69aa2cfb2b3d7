"""Texts an agent may answer with: nonsense of every kind, and spellings made from a game's own actions."""

import random
import re
import string
from collections.abc import Callable, Iterator, Sequence

from hypothesis import strategies as st

MILLION = 1_000_000

AWKWARD = (
    "\x00",
    "\ud800",  # half a surrogate pair, which cannot be encoded
    "\udfff\ud800",
    "\u200f",  # right-to-left mark
    "\u202e",  # right-to-left override
    "\ufeff",
    "\u0301",
    "\x1b[31m",
    "\r\n",
    "\u2028",
    "-0",
    "-0.0",
    "1e9",
    "1e309",
    "1,000",
    "1.000,5",
    "1_000",
    "0x1F",
    "NaN",
    "inf",
    "½",
    "²³",
    "１２",  # full-width
    "٣",  # Arabic-Indic
    "ﬁ ſ ı İ",  # letters whose other case is ASCII or longer than they are
    "左 ⬅️ 🐍",
    "%s %d {0} {x}",
    "__import__('os')",
    "99999999999999999999",
    "END",
)
"""Each has broken a parser somewhere."""
SEPARATORS = ("", " ", "  ", "\t", "\n", ",", ", ", ";", "; ", ":", "/", "|", "-", " and ", "\u00a0", "\u3000", "，")
BRACKETS = ("()", "[]", "{}", "<>", "（）", ")(", "((", "  ", '""', "``")
_FULL_WIDTH = str.maketrans(string.digits, "０１２３４５６７８９")
_ARABIC = str.maketrans(string.digits, "٠١٢٣٤٥٦٧٨٩")
_LOOK_ALIKES = str.maketrans("iIsSkK", "ıİſſ\u212a\u212a")
_SEPARATOR = re.compile(r"[\s,;:/|-]+")


def replies(actions: Sequence[str]) -> st.SearchStrategy[str]:
    """Short texts: arbitrary, awkward, and about the game's own ``actions``."""
    return st.one_of(
        st.text(st.characters(), max_size=40),  # surrogates as well
        st.lists(st.sampled_from([*AWKWARD, *actions[:8], *string.punctuation]), max_size=6).map("".join),
        misspelt(actions),
        misspelt(actions),  # twice as often
    )


@st.composite
def replies_of_any_length(draw: st.DrawFn, actions: Sequence[str]) -> str:
    """The same, and now and then a million characters of it."""
    unit = draw(replies(actions))
    is_long = draw(st.sampled_from([False] * 19 + [True]))
    return (unit * (MILLION // max(len(unit), 1) + 1))[:MILLION] if is_long else unit


@st.composite
def misspelt(draw: st.DrawFn, actions: Sequence[str]) -> str:
    """One of ``actions``, changed in up to two ways: separators, brackets, case, digits, something awkward inside."""
    text: str = draw(st.sampled_from(actions))
    for kind in draw(st.lists(st.sampled_from(["separators", "brackets", "around", "letters", "inside"]), max_size=2)):
        if kind == "separators":
            text = _SEPARATOR.sub(lambda found: draw(st.sampled_from([*SEPARATORS, found[0]])), text)
        elif kind == "letters":
            text = draw(st.sampled_from(CHANGES))(text)
        elif kind == "inside":
            place = draw(st.integers(0, len(text)))
            text = text[:place] + draw(st.sampled_from(AWKWARD)) + text[place:]
        else:
            pair = draw(st.sampled_from(BRACKETS))
            is_around = kind == "around"
            text = pair[0] + text + pair[1] if is_around else text.replace("(", pair[0]).replace(")", pair[1])
    return text


def wide(text: str) -> str:
    """The text with full-width digits."""
    return text.translate(_FULL_WIDTH)


def _negative(text: str) -> str:
    return re.sub(r"\d+", lambda found: f"-{found[0]}", text)


def _decimal(text: str) -> str:
    return re.sub(r"\d+", lambda found: f"{found[0]}.0", text)


CHANGES: tuple[Callable[[str], str], ...] = (
    str,
    str.upper,
    str.lower,
    str.swapcase,
    str.title,
    wide,
    _negative,
    _decimal,
)


def tolerated(action: str) -> Iterator[str]:
    """Spellings that every grammar reads as ``action``: marks around it, blanks, commas."""
    yield from (f"  {action}\n", f"`{action}`", f"'{action}'", f'"{action}"', f"**{action}**", f"{action}.")
    yield from (f"({action})", f" [{action}]", f"<{action}>.")
    yield from (action.replace(" ", "  "), action.replace(" ", "\t"))
    yield from (re.sub(", *", " , ", action), re.sub(", *", ",", action))


def recased(action: str) -> tuple[str, str]:
    """Spellings that nearly every grammar reads as ``action``."""
    return action.upper(), action.lower()


def turned_down(action: str) -> Iterator[str]:
    """Texts that no grammar guesses at: prose around ``action``, and letters and digits that only look like it."""
    yield from (f"{action} because it is safe", f"I choose {action}")
    for other in (wide(action), action.translate(_ARABIC), action.translate(_LOOK_ALIKES)):
        if other != action:
            yield other


def hostile_texts() -> list[str]:
    """A fixed set for every game, the largest included."""
    rng = random.Random(0)
    marks = "ABcx01,.;:()[]{}<>/*-+#=?!'\"`|\\ \n\tLEFTflaguncover"
    return [
        *AWKWARD,
        "",
        " ",
        "\n\r\n",
        "A" * MILLION,
        " " * MILLION,
        "(" * MILLION,
        "1 " * (MILLION // 2),
        "-" * MILLION,
        "9" * 5_000,
        "(" * 5_000 + ")" * 5_000,
        "-1",
        "(-1,-1)",
        "(99999999999999999999,0)",
        "0/0",
        bytes(range(256)).decode("latin-1"),
        *("".join(rng.choice(marks) for _ in range(rng.randrange(1, 30))) for _ in range(100)),
        *("".join(chr(rng.randrange(0xD800)) for _ in range(12)) for _ in range(50)),
    ]
