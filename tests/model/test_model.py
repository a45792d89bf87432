"""A quick part of the model check; `make model` visits all scenarios."""

import pytest

from tests.model.suite import MUTANTS, scenario

QUICK = (
    *("S12", "S12b", "S13"),
    *("S1", "S2c", "S2d", "S4b", "S4d", "S5c", "S6a", "S6c", "S6e", "S8", "S8b", "S9b", "S9d"),
    *("R2", "R2b", "R4", "R6", "R7b", "R11", "P6", "P9", "P11", "P11c", "P12"),
)


@pytest.mark.parametrize("name", QUICK)
def test_the_protocol_keeps_its_guarantees(name):
    result = scenario(name).check()
    assert not result.violations
    assert result.endings


def test_the_accepted_residue_needs_a_late_clock_and_a_stale_cache():
    assert "I8-delta-lost" in scenario("S6g").check().violations
    assert not scenario("S3k").check().violations


@pytest.mark.parametrize("rule", MUTANTS)
def test_a_protocol_that_lacks_a_rule_is_caught(rule):
    name, invariant = MUTANTS[rule]
    assert invariant in scenario(name, rule).check(limit=20_000, until=invariant).violations
