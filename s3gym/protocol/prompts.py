"""The wording shared by all games, in the order the protocol fixes; what a game says of itself is in its file.

A step's prompt is: experience from earlier episodes, the current episode so far, then the rules and the state
to decide on. Everything before the last message only grows within an episode, so a provider's prefix cache
serves almost all of it. No verifier reward, score or anything made from one is an argument of any function here.
"""

from collections.abc import Sequence

from s3gym.transcript import CURRENT_CLOSE, CURRENT_OPEN, ENV, Message, PastStep, experience_block

PROMPT_VERSION = 1
"""Raised when any wording or its order changes; part of every key."""

STEP_QUESTION = """\
Choose your next action. You may think first. Finish with one line of exactly this form and nothing after it:
Answer: <ACTION>, Score: <SELF-SCORE>
<SELF-SCORE> is a number: your own estimate of the reward this very action earns at once, in the reward unit of the \
rules. It is not a confidence and not a sum over the episode.
If you believe the episode is already over, write: Answer: END, Score: 0"""

JUDGMENT_QUESTION = """\
The episode above is over. You were never told its score. Judge it in four lines of exactly this form:
Final score: <number, your estimate of the score of the whole episode in the unit of the rules>
Success: <number from 0 to 1, the probability that the final score was at least {success:g}>
Retain: <one sentence, what to keep>
Avoid: <one sentence, what not to repeat>"""


def step_messages(experience: str | None, earlier: Sequence[Message], rules: str, env: str) -> tuple[Message, ...]:
    """The prompt of one step.

    Args:
        experience: what the pathway carries from earlier episodes; None for nothing.
        earlier: the current episode so far, made by ``past_step``; empty at its first step.
        rules: the game's rules for this configuration.
        env: feedback of the last step, if any, and the current state.
    """
    question = f"{rules}\n\n{CURRENT_OPEN}\n{env}\n{CURRENT_CLOSE}\n{STEP_QUESTION}"
    if experience and not earlier:
        question = f"{experience_block(experience)}\n\n{question}"
    return (*earlier, {"role": "user", "content": question})


def past_step(experience: str | None, step: PastStep) -> list[Message]:
    """One finished step as two messages; the experience opens the first step of an episode."""
    opening = f"{experience_block(experience)}\n\n" if experience else ""
    return [
        {"role": "user", "content": f"{opening}{ENV}{step.env}"},
        {"role": "assistant", "content": step.answer},
    ]


def judgment_messages(rules: str, transcript: str, success_score: float) -> tuple[Message, ...]:
    """The retrospective call on one finished episode."""
    question = JUDGMENT_QUESTION.format(success=success_score)
    return ({"role": "user", "content": f"{rules}\n\n{experience_block(transcript)}\n\n{question}"},)
