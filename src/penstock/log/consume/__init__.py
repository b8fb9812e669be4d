"""Reading topics: consumers, their groups and positions."""
