"""placeholder"""
def bench() -> None:
    """."""
