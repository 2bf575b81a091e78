"""Tests of the Studio in a real browser."""
