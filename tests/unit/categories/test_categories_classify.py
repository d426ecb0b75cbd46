"""Which category a problem gets, on what ground, and with which doubts."""

from __future__ import annotations

from pathlib import Path

import pytest
from categories_file import TEXT

from hkbench.categories import CategoryBook, load_categories
from hkbench.records import GraphFacts, OperatorClass, Problem, ProblemFacts, SizeSet


@pytest.fixture
def book(tmp_path: Path) -> CategoryBook:
    path = tmp_path / "categories.toml"
    path.write_text(TEXT)
    return load_categories(path)


def problem(name: str, level: int = 1) -> Problem:
    return Problem(number=1, name=name, level=level, path=Path(f"{name}.py"), source="", sha256="0")


def facts(*classes: OperatorClass, intensity: float = 100.0, dtype: str = "float32") -> ProblemFacts:
    product = dtype if OperatorClass.MATMUL in classes else None
    graph = GraphFacts(
        operators={}, classes=dict.fromkeys(classes, 1), steps=len(classes), product_dtype=product,
        product_flops=round(intensity * 10) if product else 0, other_flops=0, bytes=10, intensity=intensity,
    )  # fmt: skip
    return ProblemFacts(sizes=SizeSet.FULL, inputs=(), init_inputs=(), outputs=(), parameters=(), graph=graph)


UNTRACED = ProblemFacts(sizes=SizeSet.FULL, inputs=(), init_inputs=(), outputs=(), parameters=())


def test_what_the_reference_contains_decides(book: CategoryBook) -> None:
    found = book.classify(problem("1_Anything"), facts(OperatorClass.MATMUL, OperatorClass.POOL))
    assert (found.category, found.by, found.doubtful) == ("product", "graph", None)
    assert found.why == "matmul, pool; 100 FLOP/byte, 5x the ridge point of float32"


def test_a_name_does_not_overrule_the_graph(book: CategoryBook) -> None:
    found = book.classify(problem("1_ReLU"), facts(OperatorClass.MATMUL))
    assert found.category == "product"


def test_the_name_decides_where_the_graph_does_not(book: CategoryBook) -> None:
    found = book.classify(problem("1_Matmul"), facts(OperatorClass.ELEMENTWISE))
    assert (found.category, found.by) == ("product", "name")
    assert found.why == "the name matches '(?i)matmul'"
    assert found.doubtful == "no condition on the graph holds: by the name alone"


def test_the_name_decides_without_a_graph(book: CategoryBook) -> None:
    found = book.classify(problem("1_Matmul"), UNTRACED)
    assert (found.category, found.by) == ("product", "name")
    assert found.doubtful == "the reference could not be traced: by the name alone"


def test_names_count_for_their_levels(book: CategoryBook) -> None:
    found = book.classify(problem("1_Matmul", level=2), UNTRACED)
    assert (found.category, found.by) == ("generic", "generic")


def test_what_nothing_matches_is_generic(book: CategoryBook) -> None:
    found = book.classify(problem("1_ReLU"), facts(OperatorClass.ELEMENTWISE))
    assert (found.category, found.by, found.doubtful) == ("generic", "generic", None)
    assert "no pattern matches the name" in found.why


@pytest.mark.parametrize(("intensity", "doubtful"), [(20.0, True), (39.9, True), (40.0, False), (400.0, False)])
def test_near_the_ridge_it_is_doubtful(book: CategoryBook, intensity: float, doubtful: bool) -> None:
    found = book.classify(problem("1_A"), facts(OperatorClass.MATMUL, intensity=intensity))
    assert found.category == "product"
    assert (found.doubtful is not None and "the ridge point" in found.doubtful) is doubtful


def test_operators_of_no_known_class_are_doubtful(book: CategoryBook) -> None:
    found = book.classify(problem("1_A"), facts(OperatorClass.MATMUL, OperatorClass.OTHER))
    assert found.doubtful == "1 operator is of no known class"


def test_a_dtype_without_a_ridge_is_not_known_to_be_compute_bound(book: CategoryBook) -> None:
    found = book.classify(problem("1_A"), facts(OperatorClass.MATMUL, dtype="float8_e4m3fn"))
    assert found.by == "generic"


def test_another_category_by_name_is_a_doubt(tmp_path: Path) -> None:
    other = TEXT.replace(
        '[[categories]]\nname = "generic"', '[[categories]]\nname = "rows"\ntitle = "rows"\nmatch.names = ["Norm"]\n'
        + TEXT[TEXT.index("[[categories.stages]]") : TEXT.index("skip =")] + '\n[[categories]]\nname = "generic"',
    )  # fmt: skip
    path = tmp_path / "categories.toml"
    path.write_text(other)
    found = load_categories(path).classify(problem("1_Norm"), facts(OperatorClass.MATMUL))
    assert (found.category, found.doubtful) == ("product", "its name says rows")
