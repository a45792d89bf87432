"""A quick part of the model check; `make model` visits all scenarios."""

import re
from pathlib import Path

import pytest

import cosmosservice
from tests.model.suite import FINDINGS, MUTANTS, MUTANTS_OF_LAG, scenario

QUICK = (
    *("S12", "S12b"),
    *("S1", "S2c", "S2d", "S4b", "S4d", "S5c", "S6a", "S6c", "S6e", "S8", "S8b", "S9b", "S9d"),
    *("R2", "R2b", "R4", "R6", "R7b", "R9b", "R11", "P6", "P9", "P11", "P12"),
    *("L1", "L2", "L2b", "L2c", "L2d", "L5", "L6", "D1", "D2", "D3", "D3b", "D4"),
    *("C1", "C1b", "C2", "T1", "T2", "T3", "T4"),
    *("E1b", "E1c", "E2b", "E3", "E3b", "E4", "E4b"),
    *("F1", "F1b", "F2b", "F2c", "F3b", "F4", "F4b", "F5", "F6"),
    *("V1", "V1b", "V1c", "V2b", "V2c", "V3", "V4"),
    *("W1", "W2", "W3", "W3b", "W3c", "W4", "W5", "W6"),
    *("N1", "N1b", "N2", "N3"),
    *("N4", "N4b", "N4c"),
    *("A1", "A1b", "A3", "A4", "A5", "A6", "A6b"),
    *("M1", "M1b", "M1c", "M2", "M2b", "M2c"),
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


@pytest.mark.parametrize("finding", FINDINGS)
def test_without_the_rules_for_lag_clocks_and_erasure(finding):
    name, invariant = FINDINGS[finding]
    case = scenario(name, *MUTANTS_OF_LAG)
    assert invariant in case.check(limit=20_000, until=invariant).violations


def test_the_readme_says_which_module_implements_each_rule():
    text = Path(__file__).with_name("README.md").read_text("utf-8")
    rows = re.findall(r"^\| `(\w+/[^`]+\.py)`(?:, `[^`]+`)? \| (.+) \|$", text, re.MULTILINE)
    package = Path(cosmosservice.__file__).parent
    assert [module for module, _ in rows if not (package / module).exists()] == []
    assert sorted(rule for _, rules in rows for rule in rules.split("; ")) == sorted(MUTANTS)
