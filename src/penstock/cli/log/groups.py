"""`penstock groups`: how far consumer groups have come, how much is left, and moving them."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import typer

from penstock.cli.log.directory import DEFAULT, AsJson, Debug, LogDir, TopicName, examples, opened
from penstock.cli.log.positions import Bounds, at_time, chosen, moment, within
from penstock.cli.options import option
from penstock.cli.output.listing import count, show, show_json
from penstock.log import GroupInfo, LogError, TopicPartition

group = typer.Typer(name="groups", help="Consumer groups of the log: offsets, lag, members.", no_args_is_help=True)
GroupName = Annotated[str, typer.Argument(metavar="GROUP", help="The group.", show_default=False)]


@group.command("list", epilog=examples("penstock groups list"))
def list_(log: LogDir = DEFAULT, as_json: AsJson = False, debug: Debug = False) -> None:
    """List the groups: what they read, how many members live, and the lag over all partitions."""
    with opened(log, debug=debug) as found:
        rows = [_summary(found.groups.describe(name)) for name in found.groups.names()]
        if as_json:
            show_json(rows)
            return
        show([{**row, "topics": ", ".join(row["topics"])} for row in rows], f"no groups in {log}")


def _summary(info: GroupInfo) -> dict[str, Any]:
    topics = sorted({o.topic for o in info.offsets})
    return {"group": info.name, "topics": topics, "members": len(info.members), "lag": info.lag}


@group.command(epilog=examples("penstock groups describe billing", "penstock groups describe billing --json"))
def describe(group: GroupName, log: LogDir = DEFAULT, as_json: AsJson = False, debug: Debug = False) -> None:
    """Show a group: the committed offset, end, lag and member of each partition."""
    with opened(log, debug=debug) as found:
        info = found.groups.describe(group)
        rows = [_offset_row(asdict(o), o.lag) for o in info.offsets]
        if as_json:
            show_json({"group": group, "members": list(info.members), "lag": info.lag, "offsets": rows})
            return
        typer.echo(f"{group}: {count(len(info.members), 'live member')}, lag {info.lag:,}")
        show(rows, f"{group} has committed nothing yet")


def _offset_row(offset: dict[str, Any], lag: int) -> dict[str, Any]:
    names = ("topic", "partition", "committed", "end")
    return {**{name: offset[name] for name in names}, "lag": lag, "member": offset["owner"]}


@group.command(
    "reset-offsets",
    epilog=examples(
        "penstock groups reset-offsets billing orders --to-beginning",
        "penstock groups reset-offsets billing orders --to-time 2026-07-01T10:00 --execute",
        "penstock groups reset-offsets billing orders --shift-by -100 --partition 0 --execute",
    ),
)
def reset_offsets(  # noqa: PLR0913 - each is an option of the command
    group: GroupName,
    topic: TopicName,
    to_beginning: Annotated[bool, option("--to-beginning", help="To the first record.")] = False,
    to_end: Annotated[bool, option("--to-end", help="After the last record.")] = False,
    to_offset: Annotated[int | None, option(metavar="N", help="To an offset.")] = None,
    to_time: Annotated[
        str, option(metavar="TIME", help="To a time: 2026-07-01T10:00 (UTC), milliseconds, or 15m ago.")
    ] = "",
    shift_by: Annotated[int | None, option(metavar="N", help="On by so many, or back; not beyond the ends.")] = None,
    partition: Annotated[
        list[int] | None, option("--partition", min=0, help="Only this partition; may be repeated.")
    ] = None,
    execute: Annotated[bool, option("--execute", help="Do it; without it, only show what would be done.")] = False,
    log: LogDir = DEFAULT,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Move the offsets of a group that has no live member; a dry run unless --execute is given."""
    asked = [to_beginning, to_end, to_offset is not None, bool(to_time), shift_by is not None]
    if sum(asked) != 1:
        raise typer.BadParameter("give one of --to-beginning, --to-end, --to-offset, --to-time, --shift-by")
    with opened(log, debug=debug) as found:
        ends = chosen(found.offsets(topic), topic, partition or ())
        now = {tp.partition: at for tp, at in found.groups.committed(group).items() if tp.topic == topic}
        if to_time:
            since = at_time(found, topic, moment(to_time))
            target = {p: since[p] for p in ends}
        elif shift_by is not None:
            target = _shifted(group, topic, ends, now, shift_by)
        elif to_offset is not None:
            target = {p: within(topic, p, bounds, to_offset) for p, bounds in ends.items()}
        else:
            target = {p: start if to_beginning else end for p, (start, end) in ends.items()}
        if execute:
            found.groups.move(group, {TopicPartition(topic, p): at for p, at in target.items()})
        _show_move(group, topic, [(p, now.get(p), at, ends[p][1] - at) for p, at in target.items()], execute, as_json)


def _shifted(group: str, topic: str, ends: Bounds, now: dict[int, int], by: int) -> dict[int, int]:
    missing = [p for p in ends if p not in now]
    if missing:
        raise LogError(
            f"group {group!r} has committed nothing in {topic}-{missing[0]}, so there is nothing to shift from; use --to-offset"
        )
    return {p: min(max(now[p] + by, start), end) for p, (start, end) in ends.items()}


def _show_move(
    group: str, topic: str, moves: list[tuple[int, int | None, int, int]], executed: bool, as_json: bool
) -> None:
    rows = [{"topic": topic, "partition": p, "committed": was, "new": at, "lag": lag} for p, was, at, lag in moves]
    if as_json:
        show_json({"group": group, "executed": executed, "offsets": rows})
        return
    show(rows, "")
    typer.echo(f"{group} was moved" if executed else "nothing was changed; --execute does it", err=True)


@group.command(epilog=examples("penstock groups delete billing"))
def delete(group: GroupName, log: LogDir = DEFAULT, debug: Debug = False) -> None:
    """Forget a group that has no live member, with its committed offsets."""
    with opened(log, debug=debug) as found:
        found.groups.delete(group)
        typer.echo(f"deleted {group}")
