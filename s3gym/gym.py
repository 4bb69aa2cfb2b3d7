"""The games as Gymnasium environments: text in, text out. For training and debugging, not for measuring.

Warning:
    ``step`` returns the verifier's reward, which the measured protocol never shows to an agent. So numbers gathered
    here compare with nothing this package reports, and what an agent learned here it did not learn by judging itself.
    Train in the phase ``exploration``: its unseeded episodes meet no held-out instance, where a game has instances
    enough to keep the phases apart. An explicit ``seed`` picks whatever instance it names.

Importing this module registers ``s3gym/<Game>-v0`` for every game, in camel case: ``s3gym/LatentChess-v0``.
Gymnasium imports it when the id says so::

    env = gymnasium.make("s3gym.gym:s3gym/Snake-v0", phase="exploration", horizon=20)

An observation is the feedback on the last answer, if any, and the state, as an agent sees them; the rules are in
``info``. An action is what an agent writes behind ``Answer:``, without a score. It needs the extra ``gym``.
"""

from typing import Any

from s3gym.games.base import EVALUATION, EXPLORATION, EpisodeOver, Game, Taken
from s3gym.protocol.splits import SplitError, phase_of
from s3gym.registry import GAMES, UnknownName, load, names
from s3gym.transcript import env_text

try:
    import gymnasium
    from gymnasium.error import InvalidAction, ResetNeeded, UnsupportedMode
    from gymnasium.spaces import Text
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(f"{error}: s3gym.gym needs it, install s3gym[gym]", name=error.name) from None

CHARACTERS = "\n" + "".join(map(chr, range(32, 127)))
"""What observations are written with, and any usable action: printable ASCII and the line break."""
ACTION_LENGTH = 1024
"""Characters; no usable action of any game is longer."""
FIRST_LENGTHS, FEEDBACK_LENGTH, RECORD_LENGTH = 4, 1024, 256
"""An observation is no longer than so many first ones, so many characters, and so many more for each step."""
SEEDS = 2**32
"""Unseeded episodes draw their instance from this many."""
MOST_DRAWS = 1000
"""Instances drawn in search of one that the phase may use."""


class GameEnv(gymnasium.Env[str, str]):
    """One game in one phase; the settings of its configuration are keywords of ``gymnasium.make``.

    ``terminated`` means ended by the rules, ``truncated`` cut off by the horizon. Any text is a safe action, also one
    outside ``action_space``: what the game cannot use costs what its rules say. ``action_space.sample()`` hardly ever
    hits a usable action; the rules name those.

    ``info`` holds ``rules``, ``config`` (JSON), ``seed`` and ``instance_id`` of the episode, and of the last answer
    ``action_status``, ``action`` (canonical, None when unusable), ``feedback`` and ``end_reason``.
    """

    metadata: dict[str, Any] = {"render_modes": ["ansi"], "render_fps": 1}

    def __init__(self, game: str, phase: str = EXPLORATION, render_mode: str | None = None, **settings: Any) -> None:
        if phase not in (EXPLORATION, EVALUATION):
            raise UnknownName("phase", phase, (EXPLORATION, EVALUATION))
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise UnsupportedMode(f"render_mode = {render_mode!r}: expected None or 'ansi'")
        self.game: Game[Any, Any, Any] = load(GAMES, game, "game").GAME
        self.phase = phase
        self.render_mode = render_mode
        self.config = getattr(self.game, phase).changed(settings, game)
        first = self.game.render(self.game.view(self.game.reset(self.config, 0)))
        longest = FIRST_LENGTHS * len(first) + FEEDBACK_LENGTH + RECORD_LENGTH * self.config.horizon
        self.observation_space = Text(longest, charset=CHARACTERS)
        self.action_space = Text(ACTION_LENGTH, min_length=0, charset=CHARACTERS)
        self._rules = self.game.rules(self.config)
        self._seed = 0
        self._instance_id = ""
        self._state: Any = None
        self._last: Taken | None = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Starts the instance that ``seed`` names, else one for the phase, drawn from ``np_random``. No options."""
        super().reset(seed=seed)
        self._seed = self._drawn_seed() if seed is None else seed
        self._state, self._last = self.game.reset(self.config, self._seed), None
        self._instance_id = self.game.instance_id(self._state)
        return self._observation(), self._info()

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Takes any text as an answer.

        Raises:
            ResetNeeded: before the first ``reset`` and after the end of an episode.
            InvalidAction: the action is no text.
        """
        if self._state is None:
            raise ResetNeeded(f"{self.game.id}: no step before reset")
        if not isinstance(action, str):
            raise InvalidAction(f"an action is a text, got {action!r}")
        try:
            self._last = self.game.take(self._state, action)
        except EpisodeOver as error:
            raise ResetNeeded(str(error)) from error
        outcome = self._last.outcome
        self._state = outcome.state
        terminated = outcome.end_reason is not None
        truncated = not terminated and self._state.step_index >= self.config.horizon
        return self._observation(), outcome.reward, terminated, truncated, self._info()

    def render(self) -> str | None:
        """The observation as it stands, for ``ansi``."""
        return self._observation() if self.render_mode == "ansi" else None

    def _drawn_seed(self) -> int:
        for _ in range(MOST_DRAWS):
            seed = int(self.np_random.integers(SEEDS))
            instance_id = self.game.instance_id(self.game.reset(self.config, seed))
            if self.game.is_instances_shared or phase_of(instance_id) == self.phase:
                return seed
        raise SplitError(f"{self.game.id}: none of {MOST_DRAWS} instances is for {self.phase}; give reset a seed")

    def _observation(self) -> str:
        feedback = self._last.outcome.feedback if self._last else None
        return env_text(feedback, self.game.render(self.game.view(self._state)))

    def _info(self) -> dict[str, Any]:
        last = self._last
        return {
            "rules": self._rules,
            "config": self.config.to_json(),
            "seed": self._seed,
            "instance_id": self._instance_id,
            "action_status": last.status if last else None,
            "action": last.action if last else None,
            "feedback": last.outcome.feedback if last else None,
            "end_reason": last.outcome.end_reason if last else None,
        }


def env_id(game: str) -> str:
    """The id an environment is made by: ``latent_chess`` gives ``s3gym/LatentChess-v0``."""
    return f"s3gym/{''.join(word.capitalize() for word in game.split('_'))}-v0"


for _game in names(GAMES):
    gymnasium.register(env_id(_game), entry_point="s3gym.gym:GameEnv", kwargs={"game": _game})
