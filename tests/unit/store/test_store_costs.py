"""Money: what is not known is never 0, and nothing counts twice."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.run_folder import RunFolder, run_config

from hkbench.records import Price, Rates, Reply, SampleKey, Usage
from hkbench.store.costs import Spending, cost_of, money
from hkbench.store.events import read_history
from hkbench.store.resume import spent_before
from hkbench.store.state import RunState

PRICE = Price(currency="XTS", entry="m", rates=Rates(input=2.0, cached_input=0.5, output=10.0), source="f")
MILLION = 1_000_000


def key(sample: int) -> SampleKey:
    return SampleKey(problem="1_ReLU", attempt=1, sample=sample)


@pytest.mark.parametrize(
    ("usage", "cost"),
    [
        (Usage(input=MILLION, output=MILLION), 12.0),
        (Usage(input=MILLION, output=0, cached_input=MILLION // 2), 1.25),
        (Usage(input=0, output=MILLION, reasoning=MILLION), 10.0),
        (Usage(input=100, output=0, cached_input=MILLION), 100 * 0.5 / MILLION),
        (Usage(input=MILLION), None),
        (Usage(output=MILLION), None),
        (Usage(), None),
    ],
)
def test_the_cost_of_a_reply(usage: Usage, cost: float | None) -> None:
    assert cost_of(usage, PRICE) == (None if cost is None else pytest.approx(cost))
    assert cost_of(usage, None) is None


def test_cached_input_without_a_price_of_its_own_costs_as_input() -> None:
    price = PRICE.model_copy(update={"rates": Rates(input=2.0, output=10.0)})
    assert cost_of(Usage(input=MILLION, output=0, cached_input=MILLION), price) == 2.0


def test_money_in_words() -> None:
    assert [money(x, "XTS") for x in (0.0, 0.001234, 0.5, 1.005, 12345.678)] == [
        "0.00 XTS", "0.00123 XTS", "0.5 XTS", "1.00 XTS", "12,345.68 XTS",
    ]  # fmt: skip
    assert money(2, None) == "2.00"


def test_spending_counts_a_reply_once_and_replayed_ones_not_at_all() -> None:
    spending = Spending(PRICE)
    assert (spending.cost, spending.cautious_cost, spending.cautious_tokens) == (0.0, 0.0, 0)
    spending.take(key(1), Usage(input=MILLION, output=MILLION), replayed=False)
    spending.take(key(1), Usage(input=MILLION, output=0), replayed=False)
    spending.take(key(2), Usage(input=MILLION, output=MILLION), replayed=True)
    assert (spending.calls, spending.tokens, spending.cost, spending.unpriced) == (1, MILLION, 2.0, 0)


def test_a_reply_that_did_not_say_counts_as_the_dearest_one() -> None:
    spending = Spending(PRICE)
    spending.take(key(1), Usage(), replayed=False)
    assert (spending.cost, spending.cautious_cost, spending.cautious_tokens) == (None, None, None)
    spending.take(key(2), Usage(input=MILLION, output=0), replayed=False)
    spending.take(key(3), Usage(input=0, output=MILLION), replayed=False)
    assert (spending.cost, spending.unpriced) == (12.0, 1)
    assert (spending.cautious_cost, spending.cautious_tokens) == (22.0, 3 * MILLION)


def test_what_a_folder_has_spent_counts_replies_that_the_journal_missed(tmp_path: Path) -> None:
    run = RunFolder(tmp_path, run_config(samples=3))
    run.start()
    run.answered(run.asked("1_ReLU", 1, 1), Usage(input=MILLION, output=0))
    run.answered(run.asked("1_ReLU", 1, 2), Usage(input=MILLION, output=MILLION), replayed=True)
    run.store_exchange(key(3), Reply(text="", model="m", usage=Usage(input=0, output=MILLION)))
    spending = spent_before(run.paths, RunState.after(read_history(run.paths.journal), run.config, PRICE))
    assert (spending.calls, spending.tokens, spending.cost) == (2, 2 * MILLION, 12.0)
