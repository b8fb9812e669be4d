"""The shell: statements over several lines, history, completion; Ctrl-C stops a query, and Ctrl-D the shell."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console

from penstock.cli.output.failure import show_error
from penstock.cli.sql.typing_state import COMMANDS, is_complete
from penstock.errors import PenstockError, SetupError
from penstock.version import __version__

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession

    from penstock.cli.sql.runner import Runner

HISTORY = Path.home() / ".penstock_history"
FIRST, NEXT = "penstock> ", "      ... "


class Shell:
    r"""Reads statements and carries them out, until the end of input or `\q`.

    Args:
        runner: what carries them out.
        prompts: where lines come from; None is the terminal.
    """

    def __init__(self, runner: Runner, prompts: PromptSession[str] | None = None) -> None:
        self.runner = runner
        self.errors = Console(stderr=True)
        self.prompts = prompts if prompts is not None else prompt_session(runner)

    def loop(self) -> None:
        """Runs until the user leaves."""
        typer.echo(f"penstock {__version__}: statements end with ';', \\? lists the commands, \\q leaves", err=True)
        while (text := self._read()) is not None:
            if text.strip().startswith("\\"):
                if text.strip() == "\\q":
                    return
                self._guarded(self._command, text.strip())
            elif text.strip():
                self._guarded(self.runner.run, text)

    def _read(self) -> str | None:
        """The next statement; nothing after Ctrl-C, None at the end of input."""
        try:
            return str(self.prompts.prompt(FIRST))
        except KeyboardInterrupt:
            return ""
        except EOFError:
            return None

    def _guarded(self, action: Any, text: str) -> None:
        """Carries something out; an error or Ctrl-C ends it, and not the shell."""
        try:
            action(text)
        except KeyboardInterrupt:
            typer.echo("stopped", err=True)
        except PenstockError as error:
            show_error(error, self.errors, runs=False)
        except Exception as error:
            show_error(error, self.errors, runs=False)

    def _command(self, text: str) -> None:
        """A command of the shell itself."""
        word, _, name = text.partition(" ")
        name = name.strip().strip(';`"')
        if word in ("\\d", "\\dt") and not name:
            self.runner.run("SHOW TABLES")
        elif word in ("\\d", "\\dt"):
            self.runner.run(f"DESCRIBE `{name.replace('`', '')}`")
        elif word == "\\?":
            self.runner.rows(("command", "does"), list(COMMANDS.items()))
        else:
            typer.echo(f"no command {word}; \\? lists them", err=True)


def prompt_session(runner: Runner, **more: Any) -> PromptSession[str]:
    """Where lines come from: with history, completion, and lines that go on until a semicolon.

    Raises:
        SetupError: the packages of the shell are not there.
    """
    try:
        from prompt_toolkit import PromptSession
        from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
        from prompt_toolkit.history import FileHistory, InMemoryHistory
    except ImportError:
        raise SetupError(
            "the shell needs the package prompt-toolkit: pip install 'penstock[shell]'; -e and -f run statements without it"
        ) from None
    from penstock.cli.sql.completion import SqlCompleter  # it needs prompt_toolkit

    made: dict[str, Any] = {
        "completer": SqlCompleter(runner.session),
        "multiline": True,
        "key_bindings": _keys(),
        "prompt_continuation": lambda width, line, wrapped: NEXT,
        "complete_while_typing": False,
        "auto_suggest": AutoSuggestFromHistory(),
        "history": FileHistory(str(HISTORY)) if _made_private(HISTORY) else InMemoryHistory(),
    }
    return PromptSession(**(made | more))


def _made_private(file: Path) -> bool:
    """Whether there is a file of lines that only the user sees: statements may have passwords."""
    try:
        os.close(os.open(file, os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600))
        file.chmod(0o600)
    except OSError:  # a home that cannot be written
        return False
    return True


def _keys() -> Any:
    """Enter ends a complete statement, and begins a new line elsewhere."""
    from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

    keys = KeyBindings()

    @keys.add("enter")
    def enter(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if is_complete(buffer.text):
            buffer.validate_and_handle()
        else:
            buffer.insert_text("\n")

    return keys
