"""Whether agents that judge themselves well go on to improve: blocks of exploration, and whole cells."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from s3gym.report import charts, fragments
from s3gym.report.fragments import Column, Row

if TYPE_CHECKING:
    from s3gym.warehouse import Warehouse

TITLE = "Judging and improving"
ORDER = 35
MARTS = ("judge_coupling", "judge_coupling_blocks", "stg_published_judge_coupling")

_BLOCKS = """
    select cell_id, model_id, game, pathway, replicate, from_checkpoint, to_checkpoint, scored_count, agreement, gain
    from judge_coupling_blocks
    where intervention = 'main' and agreement is not null and gain is not null
    order by game, model_id, pathway, replicate, cell_id, from_checkpoint
"""
_STATISTICS = """
    select
        coupling.*,
        case coupling.quality when 'agreement' then published.agreement_rho else published.negative_error_rho end
            as published_rho,
        case coupling.quality when 'agreement' then published.agreement_gap else published.error_gap end
            as published_gap
    from judge_coupling as coupling
    left join stg_published_judge_coupling as published
        on published.game = if(coupling.game = '*', 'all', coupling.game) and coupling.unit = 'block'
    order by coupling.unit, coupling.game = '*', coupling.game, coupling.quality desc
"""
_PLAYERS = """
    select
        count(distinct cells.model_id) as models,
        count(distinct cells.model_id) filter (starts_with(cells.model_id, 'player:')) as players
    from judge_coupling_units as units
    inner join int_selected_cells as cells on units.cell_id = cells.cell_id
"""
HEIGHT = 200
ALL = "*"
"""All games together, in ``judge_coupling``."""
FEWEST_CELLS = 5
"""A correlation over fewer is not shown: what moves it is which cells there happen to be."""
UNITS = {"block": "Blocks", "cell": "Cells"}
QUALITIES = {"agreement": "agreement", "accuracy": "accuracy (error, turned round)"}
UNDEFINED = {"too_few": "fewer than three", "undefined": "all judgments or all gains are alike"}


def build(warehouse: "Warehouse") -> str:
    """What the numbers say in a sentence, a scatter a game, then every number."""
    statistics = warehouse.sql(_STATISTICS).to_dicts()
    if not statistics:
        return fragments.notice(
            "No exploration lies between two valid checkpoints yet. `s3gym run` goes on with what is missing."
        )
    found = {row["game"]: row for row in statistics if (row["unit"], row["quality"]) == ("block", "agreement")}
    parts = [
        fragments.lead(
            "A point is what was explored between two checkpoints: how often the agent's self-scores agreed with the "
            "verifier there, and how much the held-out score rose over it, as a share of the range of scores in the "
            "game. If judging well led to learning well, points would rise to the right. Points of one cell are not "
            "independent, so intervals and p are of whole cells that are drawn or change places, and below "
            f"{FEWEST_CELLS} cells no correlation is shown. A correlation is no evidence of a cause."
        ),
        *_players(warehouse.sql(_PLAYERS).to_dicts()[0]),
    ]
    if ALL in found:
        parts.append(Markup("<p>Over all games together: {}.</p>").format(_in_words(found[ALL])))
    blocks = warehouse.sql(_BLOCKS).to_dicts()
    if blocks:
        parts += [fragments.pathway_key(row["pathway"] for row in blocks), _scatters(blocks, found)]
    return Markup("\n").join([*parts, *_tables(statistics)])


def _players(counts: Row) -> list[Markup]:
    """What the points are of, where scripted players are among them."""
    if not counts["players"]:
        return []
    among = "All points are" if counts["players"] == counts["models"] else "Among the points are those"
    return [fragments.notice(f"{among} of scripted players, whose self-scores are made by rules and not by a model.")]


def _in_words(row: Row) -> Markup:
    """The correlation of a row, and how many points it rests on."""
    points = f"{fragments.counted(row['unit_count'], 'block')} of {fragments.counted(row['cell_count'], 'cell')}"
    if row["status"] != "ok":
        return Markup("ρ is not defined, {} ({})").format(UNDEFINED[row["status"]], points)
    if row["cell_count"] < FEWEST_CELLS:
        return Markup("{}, too few for a correlation").format(points)
    return Markup("ρ = {} over {}").format(_interval(row), points)


def _why_not(row: Row) -> str:
    if row["status"] == "ok" and row["cell_count"] < FEWEST_CELLS:
        return f"fewer than {FEWEST_CELLS} cells"
    return UNDEFINED.get(row["status"], "not defined")


def _interval(row: Row) -> Markup:
    if row["cell_count"] < FEWEST_CELLS:
        return fragments.missing(_why_not(row))
    return fragments.estimate(row["spearman"], row["spearman_low"], row["spearman_high"], _why_not(row), signed=True)


def _measured(row: Row, name: str, why: str, decimals: int = 2, signed: bool = False) -> Markup:
    is_shown = row["cell_count"] >= FEWEST_CELLS
    return fragments.number(row[name] if is_shown else None, why if is_shown else _why_not(row), decimals, signed)


def _scatters(blocks: Sequence[Row], found: Mapping[str, Row]) -> Markup:
    chart = _chart(sorted({row["pathway"] for row in blocks}))
    figures = []
    for game in sorted({row["game"] for row in blocks}):
        rows = [row for row in blocks if row["game"] == game]
        description = f"Gain over a block of exploration by agreement of self-scores within it; {game}."
        caption = Markup("{}: {}").format(game, _in_words(found[game]))
        figures.append(charts.figure(chart, {"blocks": rows}, caption, description, HEIGHT))
    return charts.grid(figures)


def _chart(pathways: Sequence[str]) -> dict[str, Any]:
    import altair as alt

    points = (
        alt.Chart(alt.NamedData("blocks"))
        .mark_point(size=30, opacity=0.75, filled=True)
        .encode(
            x=alt.X(
                "agreement:Q",
                title="agreement in the block",
                axis=alt.Axis(format=".0%", grid=False),
                scale=alt.Scale(domain=[0, 1]),
            ),
            y=alt.Y("gain:Q", title="gain", axis=alt.Axis(format="+.0%")),
            color=alt.Color("pathway:N", scale=charts.pathway_scale(pathways), legend=None),
            tooltip=[
                alt.Tooltip("model_id:N", title="model"),
                alt.Tooltip("pathway:N"),
                alt.Tooltip("replicate:N"),
                alt.Tooltip("from_checkpoint:Q", title="from"),
                alt.Tooltip("to_checkpoint:Q", title="to"),
                alt.Tooltip("agreement:Q", format=".1%"),
                alt.Tooltip("gain:Q", format="+.1%"),
                alt.Tooltip("scored_count:Q", title="scored steps"),
            ],
        )
    )
    level = alt.Chart(alt.NamedData("blocks")).mark_rule(color="var(--line)").encode(y=alt.datum(0))
    return charts.specification(alt.layer(level, points))


def _tables(statistics: Sequence[Row]) -> list[Markup]:
    captions = {
        "block": "Blocks of exploration: judgment against the gain over the block",
        "cell": "Cells: judgment of all that was explored against NABA",
    }
    tables = []
    for unit, caption in captions.items():
        rows = [row for row in statistics if row["unit"] == unit]
        if rows:
            tables.append(fragments.table(caption, rows, _columns(unit)))
    return tables


def _columns(unit: str) -> list[Column]:
    return [
        Column("Game", lambda r: "all games" if r["game"] == ALL else r["game"], is_text=True),
        Column("Judgment", lambda r: QUALITIES[r["quality"]], is_text=True),
        Column(
            "Spearman's ρ",
            _interval,
            "Rank correlation of judgment and gain, −1 to 1, with its 95 % interval over draws of cells",
        ),
        Column(
            "p",
            lambda r: _measured(r, "p_value", "no two cells of a game can change places", 3),
            "Chance of a correlation as strong where cells of a game are dealt each other's gains; two-sided",
        ),
        Column(
            "Pearson's r",
            lambda r: _measured(r, "pearson", _why_not(r), signed=True),
            "Linear correlation of judgment and gain, −1 to 1",
        ),
        Column(
            "Third gap",
            lambda r: _measured(r, "tertile_gap", "too few, or too many alike, for thirds", signed=True),
            "Mean gain of the third with the best judgment, less that of the third with the poorest",
        ),
        *(_published() if unit == "block" else []),
        Column(UNITS[unit], lambda r: fragments.count(r["unit_count"]), "Those with both numbers"),
        *(
            [Column("Cells", lambda r: fragments.count(r["cell_count"]), "Cells they are of")]
            if unit == "block"
            else []
        ),
    ]


def _published() -> list[Column]:
    def number(label: str, name: str, note: str) -> Column:
        return Column(
            label,
            lambda r: fragments.number(r[name], "not published", 3, signed=True),
            f"{note}, in the published study: S3Gym, arXiv 2608.31100, CC BY 4.0, seven models, no interval",
        )

    return [
        number("Published ρ", "published_rho", "The same rank correlation"),
        number("Published gap", "published_gap", "The same gap of thirds"),
    ]
