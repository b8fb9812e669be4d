"""The test kit: run flows on lists, with a clock the test moves."""
