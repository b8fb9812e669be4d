"""The classes of Trident that users write or name: operations, aggregators, states and queries."""
