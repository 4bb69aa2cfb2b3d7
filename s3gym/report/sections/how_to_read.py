"""The words of the page, a short paragraph each, with links to where they are used."""

from typing import TYPE_CHECKING

from markupsafe import Markup

from s3gym import registry

if TYPE_CHECKING:
    from s3gym.warehouse import Warehouse

TITLE = "How to read this"
ORDER = 95
MARTS = ("int_selected_cells",)

WORDS = {
    "Cell": (
        "One model in one game under one pathway, and one set of exploration seeds (a replicate). The pathway says how "
        "experience is carried on: as raw history, as a memory that the agent writes, as trained weights, or not at "
        "all. `none` is the control: it explores nothing, and all else is the same.",
        ("summary", "data_quality"),
    ),
    "Checkpoint": (
        "A point on the curve: after so many exploration episodes the agent plays held-out episodes under stricter "
        "rules. Their mean is its score there. One with a failed or missing episode has no score, and its neighbours "
        "are joined.",
        ("improvement",),
    ),
    "Self-score and verifier reward": (
        "With every action the agent says what reward it expects: the self-score. The verifier, a program, knows the "
        "true one, which the agent never sees. The two agree when both are above zero or both are not. After an "
        "episode the agent is asked once more, for the final score and for its belief in success.",
        ("judge_reliability", "retrospective_reliability", "judge_coupling"),
    ),
    "Interval": (
        "Numbers in brackets: [low, high]. Had other held-out instances been drawn, such an interval would hold the "
        "true value in about 95 of 100 cases. It speaks of one number: among twenty that are truly zero, one excludes "
        "zero by chance. Where all values are alike there is no interval; their number says how much that is worth.",
        ("improvement", "transfer"),
    ),
    "Beyond noise": (
        "What is called an improvement: the interval leaves out zero, and a permutation test stays below 5 % after "
        "Holm's correction for all comparisons on this page, so that no more than one page in twenty holds a false "
        "one. A page of fewer models or games corrects for fewer.",
        ("summary", "game_ranks"),
    ),
    "Over-claiming": (
        "Looking back at an explored episode, the agent believed in success (more likely than not) and the verifier "
        "says there was none. An agent is said to believe in success where there is none when the interval of that "
        "share lies above a quarter of the episodes, and seldom to do so when it lies below.",
        ("summary", "retrospective_reliability"),
    ),
    "Noise floor": (
        "What a measure would be if experience had changed nothing. AUC+, NABA and the best checkpoint are above zero "
        "by chance alone, so that each stands beside what chance gives.",
        ("noise_floor",),
    ),
    "Too few": (
        "Not even the clearest outcome of so many episodes could have been told from noise. That says nothing of the "
        "agent: more episodes or checkpoints would. No improvement shown is something else: it could have been seen, "
        "and what may be there unseen is in the table of what each cell could have shown.",
        ("summary", "game_ranks"),
    ),
    "AUC+ and NABA": (
        "The published measures. AUC+ is the area of the curve above its first score, in score times episodes; what "
        "lies below counts as nothing. NABA is AUC+ in units of the first score. Neither compares across games.",
        ("improvement", "paper_comparison"),
    ),
    "A dash": (
        "Missing is not zero. A dash says why there is no number when the pointer rests on it, and to a screen reader.",
        ("data_quality",),
    ),
}


def build(warehouse: "Warehouse") -> str:
    """A list of words; the same on every page."""
    entries = [_entry(word, *told) for word, told in WORDS.items()]
    return Markup('<dl class="words">{}</dl>').format(Markup("\n").join(entries))


def _entry(word: str, text: str, sections: tuple[str, ...]) -> Markup:
    titles = [(name, registry.load(__package__, name, "section").TITLE) for name in sections]
    links = Markup(", ").join(Markup('<a href="#{}">{}</a>').format(name, title) for name, title in titles)
    code = Markup("").join(
        Markup("<code>{}</code>").format(piece) if i % 2 else Markup("{}").format(piece)
        for i, piece in enumerate(text.split("`"))
    )
    return Markup("<dt>{}</dt><dd>{} See {}.</dd>").format(word, code, links)
