"""Models and pathways compared across games: by games improved and by ranks, never by mean scores."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from markupsafe import Markup

from s3gym.report import fragments
from s3gym.report.fragments import Column, Row

if TYPE_CHECKING:
    from s3gym.warehouse import Warehouse

TITLE = "Across games"
ORDER = 45
MARTS = ("game_ranks", "ranks_by_game", "detectable_effect")

_CONTESTANTS = """
    from game_ranks
    where intervention = 'main'
    order by improved_game_count desc, mean_change_standing desc nulls last, model_id, pathway, explorer_id
"""
_GAMES = """
    from ranks_by_game
    where intervention = 'main'
    order by game, change_rank nulls last, model_id, pathway, explorer_id
"""
_EFFECTS = """
    from detectable_effect
    where pair_count > 0 and intervention = 'main'
    order by game, model_id, pathway, replicate, cell_id
"""
_ALONE = "no other to compare with, or no valid curve"
_NO_SPREAD = "no spread to judge by"
_CHANGE = "Last less first held-out score of the curve itself, with no control taken away"


def build(warehouse: "Warehouse") -> str:
    """Three tables: across games, within each, and how small a gain could have been shown."""
    rows = warehouse.sql(_CONTESTANTS).to_dicts()
    if not rows:
        return fragments.notice(
            "Nothing to rank: this needs a pathway other than `none`, for example `s3gym run --pathway history`."
        )
    effects = warehouse.sql(_EFFECTS).to_dicts()
    games = warehouse.sql(_GAMES).to_dicts()
    parts = [
        fragments.lead(
            "Scores of different games have no common unit, so models and pathways are ranked within each game, and "
            "games are counted. A standing is the share of the others that are below: 100 % is first everywhere, 50 % "
            "the middle. Ranks follow the curves as they are, chance included, and no control is taken away: change is "
            "the last score less the first. The games improved are those of the summary."
        ),
        fragments.table("Models and pathways across games", rows, _contestant_columns(rows)),
        fragments.table("Ranks within each game", games, _game_columns(games), "game"),
    ]
    if effects:
        parts += [
            fragments.lead(
                "How large a true gain over the control must be to be shown with a chance of 80 % by as many episodes "
                "as were played, before any correction for the number of cells. A smaller one may be there unseen."
            ),
            fragments.table("What each cell could have shown", effects, _effect_columns(), "game"),
        ]
    return Markup("\n").join(parts)


def _contestant_columns(rows: Sequence[Row]) -> list[Column]:
    return [
        *_identity(rows),
        Column("Improved", _of_judged("improved_game_count"), "Games where most replicates improve beyond noise"),
        Column("Worse", _of_judged("worse_game_count"), "Games where most replicates get worse beyond noise"),
        Column("Too few", _of_judged("too_few_game_count"), "Games with too few episodes to say"),
        Column("Standing by change", lambda r: fragments.percent(r["mean_change_standing"], _ALONE), _CHANGE),
        Column("Mean rank", lambda r: fragments.number(r["mean_change_rank"], _ALONE), "By change; 1 is the highest"),
        Column("Games", lambda r: fragments.count(r["change_game_count"]), "With a rank by change among others"),
        Column("Standing by NABA", lambda r: fragments.percent(r["mean_naba_standing"], _ALONE), fragments.NABA),
        Column("Mean rank", lambda r: fragments.number(r["mean_naba_rank"], _ALONE), "By NABA; 1 is the highest"),
        Column("Games", lambda r: fragments.count(r["naba_game_count"]), "With a rank by NABA among others"),
    ]


def _game_columns(rows: Sequence[Row]) -> list[Column]:
    return [
        *_identity(rows),
        Column("Change", lambda r: fragments.number(r["score_delta"], _ALONE, signed=True), _CHANGE),
        Column("Rank", lambda r: _rank(r, "change"), "By change, of all that have one; ties share their mean rank"),
        Column("NABA", lambda r: fragments.number(r["naba"], _ALONE, decimals=3), fragments.NABA),
        Column("Rank", lambda r: _rank(r, "naba"), "By NABA"),
        Column("Replicates", lambda r: fragments.count(r["replicate_count"]), "Change and NABA are means over them"),
        Column("Improved", _of_replicates, "Replicates that improve beyond noise, of those with a verdict"),
    ]


def _effect_columns() -> list[Column]:
    def measure(label: str, name: str, note: str, signed: bool = False, why: str = _NO_SPREAD) -> Column:
        return Column(label, lambda r: fragments.number(r[name], why, signed=signed), note)

    return [
        Column("Model", lambda r: r["model_id"], is_text=True),
        Column("Pathway", lambda r: fragments.pathway(r["pathway"]), is_text=True),
        Column("Replicate", lambda r: str(r["replicate"])),
        measure("Found", "mean_difference", "Mean gain over the control, in the game's unit", True),
        measure("Could have shown", "detectable_gain", "The smallest true gain, in the game's unit"),
        measure(
            "Normalised",
            "normalised_detectable_gain",
            "The same as a share of the way from the random to the expert player",
            why="no reference players, or no spread to judge by",
        ),
        Column("Pairs", lambda r: fragments.count(r["pair_count"]), "Episodes on the same instance"),
    ]


def _identity(rows: Sequence[Row]) -> list[Column]:
    columns = [
        Column("Model", lambda r: r["model_id"], is_text=True),
        Column("Pathway", lambda r: fragments.pathway(r["pathway"]), is_text=True),
    ]
    if any(row["explorer_id"] != row["model_id"] for row in rows):
        columns.append(Column("Explored by", lambda r: r["explorer_id"], is_text=True))
    return columns


def _of_judged(name: str) -> Callable[[Row], str]:
    return lambda r: (
        f"{r[name]}/{r['judged_game_count']}" if r["judged_game_count"] else fragments.missing("no verdict")
    )


def _rank(row: Row, kind: str) -> Markup:
    if row[f"{kind}_rank"] is None:
        return fragments.missing(_ALONE)
    return Markup("{:g}/{}").format(row[f"{kind}_rank"], row[f"{kind}_rival_count"])


def _of_replicates(row: Row) -> Markup:
    if not row["judged_count"]:
        return fragments.missing("no verdict")
    return Markup("{}/{}").format(row["improved_count"], row["judged_count"])
