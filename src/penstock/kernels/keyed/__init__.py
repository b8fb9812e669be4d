"""Steps that keep something per key: aggregates, reduce, fold, process."""
