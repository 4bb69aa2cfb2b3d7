"""The derived tables: one frozen dataclass a table, one field a column, as in ``records``.

They hold numbers that resampling makes of the facts, by ``resampling`` alone, and can be made again at any time.
What they were made with is fixed here, so that whoever reads them can tell whether they are those of today's rows.
"""

from dataclasses import dataclass

VERSION = 1
"""Raise it when ``resampling``, or a view that it reads, would make other numbers of the same rows."""
RESAMPLES = 2_000
"""Draws behind an interval."""
PERMUTATIONS = 9_999
"""Draws behind a noise floor, at least: so many that the smallest p survives Holm's correction over 250 cells."""
SEED = 20_260_831
"""Of all draws; each cell has its own stream, whatever other cells there are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """How far a number may be off by the chance of the episodes. Table ``intervals``."""

    cell_id: str
    """Of several replicates the first."""
    scope: str
    """``cell``, what it explored taken as it was, or ``replicates``: the mean over them, which vary as well."""
    contrast: str
    """``own``, or the difference to another cell: ``over_control`` (minus ``none``) or ``over_history`` (memory
    minus history)."""
    metric: str
    reference_cell_id: str | None
    """The cell that is taken away; of several replicates the first."""
    estimate: float | None
    """From the scores as they are; null where it is not defined."""
    bias: float | None
    """Mean of the resamples minus ``estimate``: what noise alone adds. Null unless ``status`` is ok."""
    standard_error: float | None
    low: float | None
    high: float | None
    status: str
    """``ok``, ``undefined`` (the number itself, or in some resample), ``too_few`` (nothing to draw from) or
    ``no_spread`` (all resamples alike)."""
    replicate_count: int
    unit_count: int
    """Instances, or episodes, that are drawn."""
    resample_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseFloor:
    """What a number would be if experience had changed nothing. Table ``noise_floors``."""

    cell_id: str
    null_kind: str
    """``checkpoints``: scores of an instance dealt anew among the checkpoints; ``control``: among those of the cell and
    of its control."""
    metric: str
    control_cell_id: str | None
    """Null where ``null_kind`` is checkpoints."""
    observed: float | None
    """Over checkpoints valid in both cells where there is a control; all that follow are null where it is."""
    null_mean: float | None
    null_high: float | None
    """The value that 5 % of the draws exceed."""
    p_above: float | None
    """Share of draws at or above ``observed``, itself among them."""
    p_below: float | None
    p_randomised: float | None
    """``p_above`` with its ties broken by a lot: uniform from 0 to 1 when experience changes nothing."""
    smallest_p: float | None
    """That any outcome of so many episodes could have; only of the metric ``gain``."""
    permutation_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CouplingTest:
    """How sure one can be of a rank correlation of ``judge_coupling``. Table ``coupling_tests``."""

    unit: str
    game: str
    """``*`` is all games together."""
    quality: str
    low: float | None
    high: float | None
    status: str
    """``ok``, ``too_few`` (units, or cells to draw from), ``undefined`` (a series is constant), ``undefined_in_draws``
    (it is in some draw) or ``no_spread`` (all draws alike)."""
    p_value: float | None
    """Two-sided; null where no two cells of a game can change places."""
    resample_count: int
    permutation_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class InterventionTest:
    """How sure one can be that a replaced link made a difference. Table ``intervention_tests``."""

    difference_id: str
    """Of a chain of cells and a contrast, as in the view ``int_intervention_pairs``."""
    p_value: float
    """Two-sided."""
    permutation_count: int


DERIVED: dict[str, type] = {
    "intervals": Interval,
    "noise_floors": NoiseFloor,
    "coupling_tests": CouplingTest,
    "intervention_tests": InterventionTest,
}
