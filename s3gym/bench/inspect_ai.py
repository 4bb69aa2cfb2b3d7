"""inspect_ai, timed beside: as many turns of the same size, on the same endpoint, as many at once."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from s3gym.bench import _inspect_probe
from s3gym.bench._episode import user_texts
from s3gym.bench.environment import Peer
from s3gym.bench.harness import Harness, Load, Pass, as_pass, endpoint

INSPECT_AI = Peer("inspect_ai", "inspect_ai, openai", ("inspect-ai==0.3.285", "openai==3.57.0"), "--inspect")

TARGET = 5.0
"""How many times less a turn should take with the harness, the clients apart."""


class Inspect(NamedTuple):
    """What inspect_ai did."""

    version: str
    whole: Pass
    openai: Pass
    """The client library that it asks with, alone."""

    @property
    def own_cpu_ms(self) -> float:
        """CPU milliseconds a turn without its client's."""
        return self.whole.cpu_ms - self.openai.cpu_ms

    def compare(self, harness: Harness) -> "Comparison":
        """How many times more a turn takes than with the harness."""
        return Comparison(
            self.whole.overhead_ms / harness.litellm.overhead_ms,
            self.whole.cpu_ms / harness.litellm.cpu_ms,
            self.own_cpu_ms / harness.none.cpu_ms,
        )


class Comparison(NamedTuple):
    """Ratios, inspect_ai's figure over the harness's."""

    overhead: float
    """Of the wall time over the ideal."""
    cpu: float
    """Of CPU time with the clients."""
    own_cpu: float
    """Of CPU time without them: what the frameworks themselves take."""

    @property
    def is_target_reached(self) -> bool:
        """Whether the harness itself takes so much less."""
        return self.own_cpu >= TARGET


def measure_inspect(load: Load, env: Path | None, on_pass: Callable[[str], None]) -> Inspect:
    """Both passes; installs inspect_ai first where it is not there.

    Args:
        load: as of the harness.
        env: folder of the environment, kept; None takes a temporary one.
        on_pass: told what is timed next.

    Raises:
        PeerError: with what to do.
    """
    request = {**load._asdict(), "texts": user_texts(load.turn_count)}
    with INSPECT_AI.installed(env) as python:
        passes = []
        for client in ("inspect_ai", "openai"):
            on_pass(client)
            with endpoint(load) as (base_url, seen):
                asked = json.dumps({**request, "client": client, "base_url": base_url})
                told = json.loads(INSPECT_AI.run(python, _inspect_probe.__file__, asked))
            passes.append(as_pass(load, told["took"], seen))
    return Inspect(told["version"], *passes)
