"""The emulator's file after kill -9; `make power-cut` runs many more."""

from __future__ import annotations

import random

from tests.reliability.powercut.cut import Ledger, cut


def test_every_acknowledged_write_survives_cut_after_cut(tmp_path):
    rng, ledger = random.Random(5), Ledger()
    acknowledged = 0
    for number in range(2):
        made = cut(tmp_path / "store.db", ledger, number * 400, 400, rng)
        assert made.problems == []
        assert not made.finished
        acknowledged += made.acknowledged
    assert acknowledged > 50


def test_the_check_sees_what_it_looks_for(tmp_path):
    ledger = Ledger()
    for line in ("+ 1 1", "+ 2 1", "+ 2 2", "+ 3 1", "- 3", "= 4-0 4-1 4-2"):
        assert ledger.take(line)
    whole = {"1": 1, "2": 2, "4-0": 1, "4-1": 1, "4-2": 1}
    assert ledger.check(whole, 9) == []
    for wrong in (
        dict.fromkeys(whole, 1),  # an older version
        {name: version for name, version in whole.items() if name != "1"},
        whole | {"3": 1},
        whole | {"9-0": 1},
        whole | {"77": 1},
    ):
        assert ledger.check(wrong, 9)
