"""The lawn of Plants-vs-Zombies: what planting costs, and what a turn does to plants and zombies.

Chance, the count of turns, texts and scores are elsewhere. Cells are numbered row by row, from the house outwards.
"""

from collections.abc import Container, Iterable
from typing import NamedTuple

SUNFLOWER, PEASHOOTER, THREE_LINE, NUT, TORCH, CHILI = "XWSJHF"
SUN_OF_SUNFLOWER = 10
"""Sun a turn, the one it is planted in included."""


class PlantKind(NamedTuple):
    """What is stated of a kind of plant besides its effect."""

    cost: int
    """In sun."""
    hp: int


class ZombieKind(NamedTuple):
    """What is stated of a kind of zombie."""

    hp: int
    """Hit points of those that come in first."""
    bite: int


PLANTS = {
    SUNFLOWER: PlantKind(50, 2),
    PEASHOOTER: PlantKind(100, 2),
    THREE_LINE: PlantKind(325, 2),
    NUT: PlantKind(50, 10),
    TORCH: PlantKind(125, 2),
    CHILI: PlantKind(300, 1),  # it is gone before anything can bite it
}
ZOMBIES = {"N": ZombieKind(4, 1), "R": ZombieKind(8, 1), "B": ZombieKind(12, 1), "I": ZombieKind(6, 3)}

OFF_FIELD, TAKEN, TOO_DEAR = "off the field", "cell taken", "too little sun"
"""Why a command is skipped."""


class Plant(NamedTuple):
    """One plant."""

    cell: int
    letter: str
    hp: int


class Zombie(NamedTuple):
    """One zombie."""

    cell: int
    letter: str
    hp: int


class Command(NamedTuple):
    """One plant to be planted; the place may be off the field."""

    letter: str
    row: int
    column: int


class Lawn(NamedTuple):
    """All that a turn changes, and the size of the field."""

    rows: int
    columns: int
    sun: int
    plants: tuple[Plant, ...]
    """In the order of planting."""
    zombies: tuple[Zombie, ...]
    """In the order in which they came in."""


def place(lawn: Lawn, commands: Iterable[Command]) -> tuple[Lawn, list[str]]:
    """The lawn with everything planted that can be, in the order given, and why each of the others cannot be."""
    rows, columns, sun, before, zombies = lawn
    plants, refusals = [*before], []
    taken = {plant.cell for plant in before}
    for letter, row, column in commands:
        cell, (cost, hp) = row * columns + column, PLANTS[letter]
        if not (0 <= row < rows and 0 <= column < columns):
            refusals.append(OFF_FIELD)
        elif cell in taken:
            refusals.append(TAKEN)
        elif cost > sun:
            refusals.append(TOO_DEAR)
        else:
            plants.append(Plant(cell, letter, hp))
            taken.add(cell)
            sun -= cost
    return Lawn(rows, columns, sun, tuple(plants), zombies), refusals


def free_cells(lawn: Lawn) -> list[int]:
    """The cells without a plant, in order."""
    taken = {plant.cell for plant in lawn.plants}
    return [cell for cell in range(lawn.rows * lawn.columns) if cell not in taken]


def act(lawn: Lawn) -> tuple[Lawn, bool]:
    """Chilies, sunflowers, shooters, then zombies act; and whether a zombie got through to the house."""
    rows, columns, sun, before, coming = lawn
    plants, zombies = {plant.cell: plant for plant in before}, [*coming]
    shooters, torches = [], set()
    for plant in before:
        if plant.letter == CHILI:
            del plants[plant.cell]
            zombies = [zombie for zombie in zombies if zombie.cell // columns != plant.cell // columns]
        elif plant.letter == SUNFLOWER:
            sun += SUN_OF_SUNFLOWER
        elif plant.letter == TORCH:
            torches.add(plant.cell)
        elif plant.letter != NUT:
            shooters.append(plant)
    for shooter in shooters:
        _shoot(shooter, torches, zombies, rows, columns)
    left, is_through = [], False
    for zombie in zombies:
        cell, letter, hp = zombie
        bitten = plants.get(cell)
        if bitten is not None:
            left.append(zombie)
            plants[cell] = Plant(cell, bitten.letter, bitten.hp - ZOMBIES[letter].bite)
            if plants[cell].hp <= 0:
                del plants[cell]
        elif cell % columns:
            left.append(Zombie(cell - 1, letter, hp))
        else:
            is_through = True
    return Lawn(rows, columns, sun, tuple(plants.values()), tuple(left)), is_through


def _shoot(shooter: Plant, torches: Container[int], zombies: list[Zombie], rows: int, columns: int) -> None:
    """Hits the nearest zombie at or right of the shooter in each of its rows; the dead leave at once."""
    row, column = divmod(shooter.cell, columns)
    damage = 2 if any(cell in torches for cell in range(shooter.cell + 1, (row + 1) * columns)) else 1
    reach = 1 if shooter.letter == THREE_LINE else 0
    for line in range(max(row - reach, 0), min(row + reach, rows - 1) + 1):
        ahead = range(line * columns + column, (line + 1) * columns)
        targets = [index for index, zombie in enumerate(zombies) if zombie.cell in ahead]
        if targets:
            index = min(targets, key=lambda index: zombies[index].cell)
            target = zombies[index]
            zombies[index] = Zombie(target.cell, target.letter, target.hp - damage)
            if zombies[index].hp <= 0:
                del zombies[index]
