"""`penstock consume --subscriptions`: many predicates at once."""

from __future__ import annotations

from pathlib import Path

from tests.cli.log_commands import Commands


def test_many_subscriptions_print_the_names_of_those_that_want_a_record(penstock: Commands, tmp_path: Path) -> None:
    penstock("topics", "create", "orders")
    penstock.fill("orders", ['{"n": 1, "kind": "web"}', '{"n": 200}', '{"n": 300, "kind": "web"}', "no JSON"])
    file = tmp_path / "subscriptions.yaml"
    file.write_text("large: n > 100\nweb: kind = 'web'\nnone: n > 1000\n")
    done = penstock.lines("consume", "orders", "--no-follow", "--subscriptions", file)
    assert done == ['web\t{"n": 1, "kind": "web"}', 'large\t{"n": 200}', 'large,web\t{"n": 300, "kind": "web"}']
    file.write_text("large: n >")
    assert "predicate 'n >'" in penstock("consume", "orders", "--no-follow", "--subscriptions", file, code=2).output
