"""Proofs by enumeration that the guarantees hold: see docs/reliability.md."""
