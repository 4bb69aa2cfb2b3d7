"""What a run may spend on model calls; it is asked before each one, so that a run stops between two."""

from s3gym.errors import Explained
from s3gym.records import CallFacts


class Spent(Explained):
    """The limit the user set is reached. Nothing is lost: raised, the run goes on."""


class Allowance:
    """Calls and US dollars of one run, over all its restarts."""

    def __init__(
        self, max_calls: int | None = None, max_cost: float | None = None, calls: int = 0, cost_usd: float = 0.0
    ) -> None:
        """Starts with what earlier runs of the same request have spent.

        Args:
            max_calls: most calls, failed ones included; exact.
            max_cost: most dollars; calls in flight when it is reached are still paid for.
            calls: made before.
            cost_usd: spent before; calls whose cost nobody knows are not in it.
        """
        self.max_calls, self.max_cost = max_calls, max_cost
        self.calls, self.cost_usd = calls, cost_usd
        self._is_unpriced = False  # an answer came whose cost nobody knows

    def admit(self) -> None:
        """Counts a call that is about to be made; raises Spent when there may be none."""
        if self.max_calls is not None and self.calls >= self.max_calls:
            raise Spent(f"{self.calls} calls are made, max_calls = {self.max_calls}; all are kept, raise it to go on")
        if self.max_cost is not None and self.cost_usd >= self.max_cost:
            raise Spent(
                f"{self.cost_usd:.6g} dollars are spent, max_cost = {self.max_cost:g}; "
                "every answer is kept, raise it to go on"
            )
        if self.max_cost is not None and self._is_unpriced:
            raise Spent(
                f"an answer came whose cost nobody knows, so max_cost = {self.max_cost:g} cannot be kept; "
                "give the model's prices, have its tokens reported, or use max_calls"
            )
        self.calls += 1

    def paid(self, facts: CallFacts) -> None:
        """Adds what a call cost, answered or not."""
        self.cost_usd += facts.cost_usd or 0.0
        self._is_unpriced |= facts.cost_usd is None and facts.error_kind is None
