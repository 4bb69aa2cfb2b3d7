"""Where it breaks: a chain of four links a model and game, the failing one marked, and the differences that tell."""

from typing import TYPE_CHECKING
from urllib.parse import quote

from markupsafe import Markup

from s3gym.report import fragments
from s3gym.report.fragments import Column, Row

if TYPE_CHECKING:
    from s3gym.warehouse import Warehouse

TITLE = "Where does it break?"
ORDER = 26
MARTS = ("break_location", "intervention_effect")

LINKS = ("testing", "judging", "consolidation", "execution and transfer")
WORKS, BREAKS, UNTOLD = "works", "breaks", "not told"
STATES = {
    "none": (WORKS, WORKS, WORKS, WORKS),
    "testing": (BREAKS, UNTOLD, WORKS, WORKS),
    "judging": (WORKS, BREAKS, WORKS, WORKS),
    "consolidation": (UNTOLD, UNTOLD, BREAKS, WORKS),
    "transfer": (WORKS, WORKS, WORKS, BREAKS),
    "execution_or_transfer": (UNTOLD, UNTOLD, UNTOLD, BREAKS),
}
"""What a verdict says of each link: a link is told to work where the chain gained with it in place."""
SIGNS = {WORKS: "✓", BREAKS: "✗", UNTOLD: "?"}
SENTENCES = {
    "none": "It improves on its own: no link is broken.",
    "testing": "What it explores shows too little: it gains from the expert's exploration, not from true scores.",
    "judging": "It misjudges what it explores: with true scores of the very same steps it gains.",
    "consolidation": "It does not make use of what it lived through: with our guide in its place it gains.",
    "transfer": "What it learnt holds where the rules forgive, and not under the strict ones.",
    "execution_or_transfer": "Nothing helps, not even the guide: it does not act on what it reads.",
    "not_enough_evidence": "Too little to tell: an effect that would matter is neither shown nor excluded.",
}
CONTRASTS = {
    "own": ("own", "Own experience"),
    "oracle": ("oracle_judge", "True scores"),
    "shuffled": ("shuffled_scores", "Shuffled scores"),
    "expert": ("expert_exploration", "Expert explores"),
    "reference": ("reference_memory", "Our guide"),
    "placebo": ("placebo_memory", "Another game's guide"),
    "over_placebo": ("reference_over_placebo", "Our guide over another's"),
    "relaxed": ("relaxed_evaluation", "Relaxed rules"),
}
"""Columns of ``break_location``: the contrast, and its heading."""
IN_BRIEF = ("own", "oracle", "expert", "reference", "relaxed")
"""Those that stand beneath a chain; the others only refute one of them."""

_ASKED = "select count(*) from intervention_effect where contrast != 'own'"
_ROWS = "from break_location order by model_id, game, replicate, pathway, chain_id"
_EFFECTS = {
    "helps": ("helps", "good"),
    "hurts": ("hurts", "bad"),
    "not": ("no gain", "plain"),
    "open": ("open", "plain"),
}
_NOT_ASKED = "not asked: this was not run"


def build(warehouse: "Warehouse") -> str:
    """A card a model and game, then the table of every chain; nothing where no intervention was run."""
    if not warehouse.sql(_ASKED).item():
        return ""
    rows = warehouse.sql(_ROWS).to_dicts()
    together = {(row["model_id"], row["game"], row["replicate"]) for row in rows if row["pathway"] == "*"}
    cards = [
        row for row in rows if row["pathway"] == "*" or (row["model_id"], row["game"], row["replicate"]) not in together
    ]
    return Markup("\n").join(
        [
            fragments.lead(
                "Each intervention replaced exactly one link and kept everything else: the same held-out instances, "
                "seeds and budgets, and every stage before it. What gains from a replaced link was broken there. "
                "Numbers are mean differences of held-out scores with the 95 % interval of that one comparison; words "
                "hold after Holm's correction over the run, by permutation tests. No gain: one of half of the way from "
                "the random to the expert player is excluded; open: it is not."
            ),
            fragments.notice(
                "Cells with the intervention `oracle_judge` are the only ones whose prompts held rewards of the "
                "verifier, in place of the agent's own scores. No cell with an intervention is a result of an agent."
            ),
            Markup('<div class="grid wide">{}</div>').format(Markup("\n").join(_card(row) for row in cards)),
            fragments.table("Every chain, and what each replaced link is worth", rows, _columns(), "model_id"),
        ]
    )


def _card(row: Row) -> Markup:
    links = zip(LINKS, STATES.get(row["verdict"], (UNTOLD,) * len(LINKS)), strict=True)
    facts = [
        Markup("<dt>{}</dt><dd>{} {}</dd>").format(CONTRASTS[name][1], _estimate(row, name), _effect(row, name))
        for name in IN_BRIEF
        if row[f"{name}_gain"] is not None
    ]
    return Markup(
        '<article class="broken"><h3>{model}: {whose}</h3>\n'
        '<ul class="chain" aria-label="Links of the chain">{links}</ul>\n<p>{told}</p>\n'
        '<dl class="facts">{facts}</dl>\n{shown}</article>'
    ).format(
        model=row["model_id"],
        whose=_whose(row),
        links=Markup("").join(_link(name, state) for name, state in links),
        told=_sentence(row),
        facts=Markup("").join(facts),
        shown=_shown(row),
    )


def _whose(row: Row) -> str:
    pathway = "" if row["pathway"] == "*" else f", {row['pathway']}"
    replicate = f", replicate {row['replicate']}" if row["replicate"] else ""
    return f"{row['game']}{pathway}{replicate}"


def _link(name: str, state: str) -> Markup:
    return Markup('<li class="{}"><span aria-hidden="true">{}</span> {} <strong>{}</strong></li>').format(
        state.replace(" ", "-"), SIGNS[state], name, state
    )


def _sentence(row: Row) -> str:
    if row["verdict"] is None:
        if row["not_asked"] is None:
            return "The tests have not been made yet."
        return f"Not asked: {row['not_asked']} would decide next."
    told = SENTENCES[row["verdict"]]
    if row["undecided"]:
        told += f" Undecided: {_named(row['undecided'])}."
    if row["decisive_episodes"]:
        told += f" Some {row['decisive_episodes']:,} held-out episodes a checkpoint would decide."
    return told


def _named(contrasts: str) -> str:
    headings = {contrast: heading.lower() for contrast, heading in CONTRASTS.values()}
    return ", ".join(headings[contrast] for contrast in contrasts.split(", "))


def _shown(row: Row) -> Markup:
    """Links to the two episodes that show it."""
    if row["treated_episode_id"] is None:
        return Markup("")
    heading = next(heading for contrast, heading in CONTRASTS.values() if contrast == row["shown_contrast"])
    link = Markup('<a href="#episode={}&amp;step=1">{}</a>')
    return Markup("<p>See an instance where the difference is close to its mean: {} and {}.</p>\n").format(
        link.format(quote(row["treated_episode_id"], safe=""), f"with ({heading.lower()})"),
        link.format(quote(row["reference_episode_id"], safe=""), "without"),
    )


def _estimate(row: Row, name: str) -> Markup:
    return fragments.estimate(row[f"{name}_gain"], row[f"{name}_low"], row[f"{name}_high"], _NOT_ASKED, signed=True)


def _effect(row: Row, name: str) -> Markup:
    effect = row[f"{name}_effect"]
    return fragments.badge(*_EFFECTS[effect]) if effect else Markup("")


def _columns() -> list[Column]:
    def column(name: str) -> Column:
        contrast, heading = CONTRASTS[name]
        return Column(heading, lambda r: Markup("{} {}").format(_estimate(r, name), _effect(r, name)), f"As {contrast}")

    return [
        Column("Game", _whose, is_text=True),
        Column("It breaks at", _verdict, "By the rule in sql/marts/break_location.sql", is_text=True),
        *map(column, CONTRASTS),
        Column(
            "Would decide",
            lambda r: fragments.count(r["decisive_episodes"], "decided, or not known"),
            "Held-out episodes a checkpoint",
        ),
    ]


def _verdict(row: Row) -> Markup:
    if row["verdict"] is None:
        return fragments.missing("not asked" if row["not_asked"] else "not tested yet")
    words = row["verdict"].replace("_", " ")
    return fragments.badge(words, {"none": "good", "not_enough_evidence": "plain"}.get(row["verdict"], "bad"))
