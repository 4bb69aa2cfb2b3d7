import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from s3gym.errors import Explained
from s3gym.journal import Journal
from s3gym.models import load_model
from s3gym.models.base import Completion, ModelError, Request
from s3gym.models.python import AgentError, AgentModel, load
from s3gym.protocol.asking import Asker
from s3gym.records import CallFacts
from s3gym.registry import UnknownName
from tests.models.loopback import CANARY, request_of

NAME = "agent_of_a_test"
Write = Callable[[str], AgentModel]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory; what is imported there is forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # a file written twice in a second would keep its first code
    monkeypatch.delitem(sys.modules, NAME, raising=False)
    return tmp_path


@pytest.fixture
def agent(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Writes a module and takes its ``answer``."""

    def write(code: str) -> AgentModel:
        monkeypatch.delitem(sys.modules, NAME, raising=False)
        (folder / f"{NAME}.py").write_text(dedent(code))
        return load(f"python:{NAME}:answer")

    return write


def module() -> Any:
    return sys.modules[NAME]


def ask(model: AgentModel, request: Request | None = None) -> Completion:
    return asyncio.run(model.complete(request or request_of()))


def error_of(model: AgentModel, request: Request | None = None) -> ModelError:
    with pytest.raises(ModelError) as caught:
        ask(model, request)
    return caught.value


# --- messages in, text out ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "code",
    [
        "def answer(messages): return 'Answer: ' + messages[-1]['content']",
        "async def answer(messages): return 'Answer: ' + messages[-1]['content']",
        "async def later(messages): return 'Answer: ' + messages[-1]['content']\ndef answer(messages):\n"
        "    return later(messages)",
        "class Agent:\n    async def __call__(self, messages): return 'Answer: ' + messages[-1]['content']\n"
        "answer = Agent()",
        "def answer(seed): return 'Answer: ' + seed[-1]['content']",  # the first argument, whatever its name
    ],
)
def test_any_kind_of_callable_gets_the_messages_and_gives_text_back(agent: Write, code: str) -> None:
    assert ask(agent(code), request_of("UP")).text == "Answer: UP"


def test_the_agent_may_do_with_its_messages_what_it_likes(agent: Write) -> None:
    request = request_of("UP")

    ask(
        agent("def answer(messages):\n    messages[0]['content'] = 'mine'\n    messages.clear()\n    return 'x'"),
        request,
    )

    assert request.messages == ({"role": "user", "content": "UP"},)


@pytest.mark.parametrize(
    ("arguments", "passed"),
    [
        ("messages", {}),
        ("messages, seed", {"seed": 7}),
        ("messages, *, purpose, temperature=None", {"purpose": "act", "temperature": 0.25}),
        ("messages, max_output_tokens=1, other='own'", {"max_output_tokens": 100}),
        ("*messages, **given", {"seed": 7, "temperature": 0.25, "max_output_tokens": 100, "purpose": "act"}),
    ],
)
def test_only_what_the_signature_takes_is_passed(agent: Write, arguments: str, passed: dict[str, Any]) -> None:
    known = ("seed", "temperature", "max_output_tokens", "purpose")
    code = f"""
        got = {{}}
        def answer({arguments}):
            got.update(locals())
            got.update(got.get("given", {{}}))
            return "x"
    """

    ask(agent(code), request_of(seed=7, temperature=0.25))

    assert {name: value for name, value in module().got.items() if name in known} == passed


def test_a_mapping_says_what_the_call_took(agent: Write) -> None:
    code = """
        def answer(messages, seed, temperature):
            taken = {"prompt_tokens": 100, "completion_tokens": 5, "cached_tokens": 64, "cost_usd": 0.5}
            return {"text": "UP", "reasoning": "hm", **taken}
    """
    completion = ask(agent(code))

    assert (completion.text, completion.reasoning) == ("UP", "hm")
    seconds = completion.facts.latency_seconds
    assert seconds is not None and 0 <= seconds < 10
    assert completion.facts == CallFacts(
        prompt_tokens=100, completion_tokens=5, cached_tokens=64, cost_usd=0.5, latency_seconds=seconds
    )


def test_what_a_mapping_leaves_out_is_null_and_not_zero(agent: Write) -> None:
    facts = ask(agent("def answer(messages): return {'text': 'UP', 'cost_usd': None}")).facts

    assert (facts.prompt_tokens, facts.completion_tokens, facts.cached_tokens, facts.cost_usd) == (None,) * 4


@pytest.mark.parametrize(
    ("returned", "text", "reasoning"),
    [
        ("'<think>hm</think>UP'", "UP", "hm"),
        ("{'text': '<think>hm</think>UP', 'reasoning': 'first'}", "UP", "first\nhm"),
        (r"'U\ud800P'", "U?P", None),  # half a surrogate pair: no file could hold it
    ],
)
def test_text_and_thinking_are_apart(agent: Write, returned: str, text: str, reasoning: str | None) -> None:
    completion = ask(agent(f"def answer(messages): return {returned}"))

    assert (completion.text, completion.reasoning) == (text, reasoning)


# --- what is no answer --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("returned", "kind", "told"),
    [
        ("None", "empty_reply", "returned no text"),
        ("' '", "empty_reply", "returned no text"),
        ("'<think>UP'", "empty_reply", "outside its thinking"),
        ("{}", "empty_reply", "returned no text"),
        ("{'text': None}", "empty_reply", "returned no text"),
        ("7", "bad_request", "returned a int; return text, or a mapping of text, reasoning"),
        ("b'UP'", "bad_request", "returned a bytes"),
        ("('UP', 1)", "bad_request", "returned a tuple"),
        ("(word for word in 'UP')", "bad_request", "returned a generator"),
        ("{'text': 7}", "bad_request", "a text of type int"),
        ("{'text': 'UP', 'tokens': 7}", "bad_request", "'tokens'; expected text, reasoning, prompt_tokens"),
        ("{'text': 'UP', 'prompt_tokens': 7.0}", "bad_request", "a prompt_tokens of type float"),
        ("{'text': 'UP', 'prompt_tokens': True}", "bad_request", "a prompt_tokens of type bool"),
        ("{'text': 'UP', 'completion_tokens': -1}", "bad_request", "a whole number from 0 to 1000000000"),
        ("{'text': 'UP', 'completion_tokens': 10**5000}", "bad_request", "a whole number from 0"),
        ("{'text': 'UP', 'cost_usd': float('nan')}", "bad_request", "a number of dollars from 0"),
        ("{'text': 'UP', 'prompt_tokens': 7, 'cached_tokens': 8}", "bad_request", "more cached_tokens"),
        ("{7: 'UP'}", "bad_request", "7; expected text"),
    ],
)
@pytest.mark.parametrize("kind_of_function", ["def", "async def"])
def test_what_is_no_answer_is_an_error_that_says_what_is_wanted(
    agent: Write, kind_of_function: str, returned: str, kind: str, told: str
) -> None:
    error = error_of(agent(f"{kind_of_function} answer(messages): return {returned}"))

    assert (error.kind, told in error.message) == (kind, True), error
    assert error.facts.error_kind == kind


def test_an_answer_that_is_none_keeps_what_was_paid_for_it(agent: Write) -> None:
    facts = error_of(agent("def answer(messages): return {'text': '', 'prompt_tokens': 9, 'cost_usd': 0.5}")).facts

    assert (facts.prompt_tokens, facts.cost_usd, facts.error_kind) == (9, 0.5, "empty_reply")


CLIENT = """
import asyncio, sys
from s3gym.models.base import ModelError
class Refused(Exception):
    status_code = 401
class TransportError(Exception): pass
class ConnectError(TransportError): pass
class Status(Exception):
    def __init__(self, **given):
        self.__dict__.update(given)
def response(status):
    return type('Response', (), {'status_code': status, 'headers': {}})
def busy():
    error = Exception('slow down'); error.status_code = 429
    error.response = type('Response', (), {'headers': {'retry-after': '7'}})
    return error
"""


@pytest.mark.parametrize(
    ("raised", "kind"),
    [
        ("KeyError('x')", "bad_request"),
        ("StopIteration('x')", "bad_request"),
        ("SystemExit(3)", "bad_request"),
        ("asyncio.CancelledError()", "bad_request"),
        ("ModelError('content_filter', 'no')", "content_filter"),
        ("ModelError('server', 'oops')", "server"),
        ("ConnectionResetError('gone')", "connection"),
        ("TimeoutError('late')", "timeout"),
        ("asyncio.TimeoutError('late')", "timeout"),
        ("ConnectError('refused')", "connection"),
        ("Refused('who?')", "authentication"),
        ("busy()", "rate_limit"),
        ("Status(status_code=500)", "server"),
        ("Status(status=503)", "server"),  # as aiohttp has it
        ("Status(response=response(500))", "server"),  # as requests has it
        ("Status(response=response(400))", "bad_request"),
    ],
)
@pytest.mark.parametrize("kind_of_function", ["def", "async def"])
def test_what_the_agent_raises_is_a_failed_call(agent: Write, kind_of_function: str, raised: str, kind: str) -> None:
    error = error_of(agent(f"{CLIENT}\n{kind_of_function} answer(messages): raise {raised}"))

    assert error.kind == kind, error
    assert error.retry_after_seconds == (7 if raised == "busy()" else None)


def test_an_error_of_ours_is_passed_on_as_it_is(agent: Write) -> None:
    code = (
        "from s3gym.models.base import ModelError\nfrom s3gym.records import CallFacts\n"
        "def answer(messages): raise ModelError('rate_limit', 'slow down', 7.0, CallFacts(prompt_tokens=9))"
    )
    error = error_of(agent(code))

    assert (error.message, error.retry_after_seconds, error.facts.prompt_tokens) == ("slow down", 7.0, 9)


def test_an_exception_is_told_with_its_line_in_the_agents_file(agent: Write) -> None:
    error = error_of(agent("import json\n\ndef answer(messages):\n    return json.loads('{')\n"))

    assert error.message.startswith(f"python:{NAME}:answer raised JSONDecodeError ({NAME}.py, line 4): Expecting")


@pytest.mark.parametrize("error", ["ValueError", "lambda told: ModelError('server', told)"])
def test_no_key_is_told(agent: Write, monkeypatch: pytest.MonkeyPatch, error: str) -> None:
    monkeypatch.setenv("MY_API_KEY", CANARY)
    code = f"""
        import os
        from s3gym.models.base import ModelError
        def answer(messages):
            raise ({error})("with " + os.environ["MY_API_KEY"] + " x" * 500)
    """
    told = error_of(agent(code))

    assert "with [redacted] x" in told.message
    assert CANARY not in str(told) and len(told.message) <= 300


# --- time ---------------------------------------------------------------------------------------------------


HANGING = """
    import threading
    ended = threading.Event()
    def answer(messages): ended.wait()
"""
WAITING = """
    import asyncio
    async def answer(messages): await asyncio.Event().wait()
"""
STUBBORN = """
    import asyncio
    async def answer(messages):
        for attempt in range(2):
            try:
                await asyncio.sleep(9)
            except asyncio.CancelledError:  # as a retry that catches everything does
                pass
"""


@pytest.mark.parametrize("code", [HANGING, WAITING, STUBBORN], ids=["hanging", "waiting", "stubborn"])
def test_a_call_ends_when_its_time_is_up(agent: Write, code: str) -> None:
    model = agent(code)

    async def timed() -> tuple[ModelError, float]:
        started = time.perf_counter()
        with pytest.raises(ModelError) as caught:
            await model.complete(request_of(timeout_seconds=0.2))
        return caught.value, time.perf_counter() - started

    error, seconds = asyncio.run(asyncio.wait_for(timed(), 30))
    if hasattr(module(), "ended"):
        module().ended.set()
    assert (error.kind, 0.2 <= seconds < 3) == ("timeout", True)


def test_a_sync_agent_that_waits_does_not_stop_the_others(agent: Write) -> None:
    code = """
        import threading
        told = threading.Event()
        def answer(messages):
            told.wait()
            return "UP"
    """
    model = agent(code)

    async def both() -> Completion:
        call = asyncio.create_task(model.complete(request_of()))
        await asyncio.sleep(0)
        module().told.set()  # only if this goes on while the agent waits
        return await call

    assert asyncio.run(both()).text == "UP"


def test_as_many_sync_calls_run_at_once_as_are_made(agent: Write) -> None:
    code = """
        import threading
        all_there = threading.Barrier(40)  # more than a pool has by default: each waits for all the others
        def answer(messages):
            all_there.wait(20)
            return "UP"
    """
    model = agent(code)

    async def together() -> list[Completion]:
        return await asyncio.gather(*(model.complete(request_of()) for _ in range(40)))

    assert [completion.text for completion in asyncio.run(together())] == ["UP"] * 40


def test_an_agent_that_hangs_does_not_keep_the_program_from_its_end(folder: Path) -> None:
    (folder / f"{NAME}.py").write_text(dedent(HANGING))
    code = f"""
        import asyncio
        from s3gym.models.base import ModelError
        from s3gym.models.python import load
        from tests.models.loopback import request_of
        try:
            asyncio.run(load("python:{NAME}:answer").complete(request_of(timeout_seconds=0.1)))
        except ModelError as error:
            print(error.kind)
    """
    command = [sys.executable, "-c", dedent(code)]
    environment = {"PYTHONPATH": str(Path(__file__).parents[2]), "PATH": ""}

    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment)

    assert (ended.stdout, ended.stderr, ended.returncode) == ("timeout\n", "", 0)


def test_a_call_that_is_called_off_calls_the_agent_off(agent: Write) -> None:
    code = """
        import asyncio
        seen = []
        async def answer(messages):
            seen.append("began")
            try:
                await asyncio.Event().wait()
            finally:
                seen.append("ended")
    """
    model = agent(code)

    async def call_off() -> None:
        call = asyncio.create_task(model.complete(request_of()))
        while not module().seen:
            await asyncio.sleep(0)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

    asyncio.run(call_off())
    assert module().seen == ["began", "ended"]


# --- names and keys -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "kind", "told"),
    [
        ("python:agent_of_a_tst:answer", UnknownName, r"or installed: 'agent_of_a_tst'. Did you mean agent_of_a_test"),
        ("python:agent_of_a_test:answr", UnknownName, r"agent_of_a_test.py: 'answr'. Did you mean answer"),
        ("python:agent_of_a_test:TABLE", AgentError, r"TABLE in .*agent_of_a_test.py is a dict, expected a function"),
        ("python:agent_of_a_test:Agent", AgentError, r"is a class: make one there, such as agent = Agent\(\)"),
        (
            "python:agent_of_a_test:pair",
            AgentError,
            r"pair\(a, b\) cannot be called .*missing a required argument: 'b'",
        ),
        ("python:agent_of_a_test:nothing", AgentError, r"cannot be called .*too many positional"),
        ("python:agent_of_a_test", AgentError, r"expected python:<module>:<callable>, such as python:my_agent:answer"),
        ("python::answer", AgentError, r"expected python:<module>:<callable>"),
        ("python:./my agent.py:answer", AgentError, r"expected python:<module>:<callable>"),
        ("python:needy:answer", AgentError, r"module 'needy' imports 'not_there_at_all', which is not there"),
        ("python:broken:answer", AgentError, r"module 'broken' cannot be imported: ZeroDivisionError"),
        ("python:leaving:answer", AgentError, r"module 'leaving' cannot be imported: SystemExit: 3"),
        ("python:garbled:answer", AgentError, r"module 'garbled' cannot be imported: SyntaxError"),
    ],
)
def test_a_name_that_leads_nowhere_is_told_with_what_is_there(
    folder: Path, name: str, kind: type[Explained], told: str
) -> None:
    (folder / f"{NAME}.py").write_text(
        "TABLE = {}\nclass Agent: pass\ndef answer(messages): pass\ndef pair(a, b): pass\ndef nothing(): pass"
    )
    (folder / "needy.py").write_text("import not_there_at_all")
    (folder / "broken.py").write_text("1 / 0")
    (folder / "leaving.py").write_text("import sys\nsys.exit(3)")
    (folder / "garbled.py").write_text("def answer(:")

    with pytest.raises(kind, match=told):
        load_model(name)


def test_an_agent_has_no_base_url(agent: Write) -> None:
    agent("def answer(messages): return 'x'")
    with pytest.raises(ValueError, match="no base_url"):
        load_model(f"python:{NAME}:answer", "http://localhost:8000/v1")


def test_a_module_in_a_package_is_found(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "pack_of_a_test").mkdir()
    (folder / "pack_of_a_test" / "inner.py").write_text("from . import words\ndef answer(messages): return words.WORD")
    (folder / "pack_of_a_test" / "words.py").write_text("WORD = 'UP'")

    assert ask(load("python:pack_of_a_test.inner:answer")).text == "UP"

    for name in [name for name in sys.modules if name.startswith("pack_of_a_test")]:
        del sys.modules[name]


def test_the_working_directory_comes_first_for_the_agent_and_last_for_all_else(agent: Write, folder: Path) -> None:
    agent("import sys\nfirst = sys.path[0]\ndef answer(messages): return 'x'")

    assert module().first == str(folder)
    assert (sys.path[-1], sys.path.count(str(folder))) == (str(folder), 1)


def test_an_edited_agent_has_a_key_of_its_own(agent: Write) -> None:
    first = agent("__version__ = '1.2'\ndef answer(messages): return 'x'").identity()
    edited = agent("__version__ = '1.2'\ndef answer(messages): return 'y'").identity()
    again = agent("__version__ = '1.2'\ndef answer(messages): return 'x'").identity()

    assert (first["agent"], first["version"], first["revision"]) == (f"{NAME}:answer", "1.2", None)
    assert first == again
    assert {name for name in first if first[name] != edited[name]} == {"source"}
    assert agent("def answer(messages): return 'x'").identity()["version"] is None


def test_a_revision_is_part_of_the_key(agent: Write) -> None:
    plain = agent("def answer(messages): return 'x'")
    noted = load_model(f"python:{NAME}:answer", revision="May")

    assert (noted.revision, noted.identity()) == ("May", {**plain.identity(), "revision": "May"})


def test_old_code_does_not_answer_under_the_key_of_new(agent: Write, folder: Path) -> None:
    agent("def answer(messages): return 'x'")
    (folder / f"{NAME}.py").write_text("def answer(messages): return 'y'")

    with pytest.raises(AgentError, match="was changed after this process had imported it; start a new process"):
        load(f"python:{NAME}:answer")


# --- like any other model -----------------------------------------------------------------------------------


def test_an_answer_once_given_is_taken_from_the_journal(agent: Write, tmp_path: Path) -> None:
    model = agent("calls = []\ndef answer(messages):\n    calls.append(1)\n    return 'UP'")
    with Journal(tmp_path / "journal.db") as journal:
        for _ in range(2):
            asker = Asker(model, journal)
            assert asyncio.run(asker.ask(request_of())).text == "UP"
    assert (len(module().calls), asker.calls_made, asker.calls_replayed) == (1, 0, 1)


def test_trouble_that_may_pass_is_tried_again(agent: Write) -> None:
    code = """
        calls = []
        def answer(messages):
            calls.append(1)
            if len(calls) < 3:
                raise ConnectionError("gone")
            return "UP"
    """
    model = agent(code)

    async def at_once(seconds: float) -> None:
        assert 0 < seconds < 3

    assert asyncio.run(Asker(model, sleep=at_once).ask(request_of())).text == "UP"
    assert len(module().calls) == 3


def test_no_thread_is_left_when_all_is_answered(agent: Write) -> None:
    before = threading.active_count()
    ask(agent("def answer(messages): return 'UP'"))

    deadline = time.monotonic() + 5
    while threading.active_count() > before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert threading.active_count() <= before
