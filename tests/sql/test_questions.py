"""The worked questions of ``sql/README.md`` have the answers shown."""

from pathlib import Path

import pytest

from s3gym.warehouse import Warehouse, dictionary
from tests.sql import questions

QUESTIONS = sorted(questions.FOLDER.glob("*.sql"))


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    return questions.measured(tmp_path_factory.mktemp("questions") / "data")


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda path: path.stem)
def test_a_question_has_the_answer_shown(asked: Warehouse, question: Path) -> None:
    shown = question.with_suffix(".csv").read_text()

    assert questions.answer(asked, question) == shown
    assert len(shown.splitlines()) > 1, "an answer without a row"
    assert shown in dictionary()


def test_ten_questions_are_worked() -> None:
    assert len(QUESTIONS) == 10
    assert all(path.read_text().splitlines()[0].endswith("?") for path in QUESTIONS)
