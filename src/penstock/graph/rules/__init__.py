"""Rules: on an event, if a condition holds, do actions. The model, its text and how it is bound to streams."""

from penstock.graph.rules.actions import Action, Alert, Delete, Emit, Evaluate, Post, Stop, Switch, Update
from penstock.graph.rules.binding import BoundRule, BoundRules, Emission, Events, bind_rules
from penstock.graph.rules.rule import DEFERRED, IMMEDIATE, Rule, RuleSet

__all__ = [
    "DEFERRED",
    "IMMEDIATE",
    "Action",
    "Alert",
    "BoundRule",
    "BoundRules",
    "Delete",
    "Emission",
    "Emit",
    "Evaluate",
    "Events",
    "Post",
    "Rule",
    "RuleSet",
    "Stop",
    "Switch",
    "Update",
    "bind_rules",
]
