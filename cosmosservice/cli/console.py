"""What the commands share: options, connections, output and readable errors."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import json
import os
import re
import shlex
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import click
from rich.console import Console

from cosmosservice.account.settings import Settings
from cosmosservice.errors import (
    AlreadyExistsError,
    ConfigurationError,
    CosmosServiceError,
    SessionNotFoundError,
    StaleSessionError,
)

T = TypeVar("T")
Command = TypeVar("Command", bound=Callable[..., Any])

FAILED = 1
WRONG_USAGE = 2

out = Console(highlight=False)
err = Console(stderr=True, highlight=False)


class SessionName(NamedTuple):
    """The full name of a session."""

    app_name: str
    user_id: str
    session_id: str


class GivenName(NamedTuple):
    """How a user names a session: by its id, and by app and user if the id is not unique."""

    app_name: str | None
    user_id: str | None
    session_id: str


class Problem(click.ClickException):
    """A message and an exit code instead of a traceback."""

    exit_code = FAILED


class UsageProblem(Problem):
    """The command or the settings are wrong: the same command would fail again."""

    exit_code = WRONG_USAGE


class Interrupted(Problem):
    """Ctrl-C: what was done so far, and how to continue."""

    exit_code = 130


# The method of a service that a message begins with.
_METHOD = re.compile(r"(?:connect|[a-z]+(?:_[a-z]+)+): (?=(.))")


def message_of(error: Exception) -> str:
    """Without the name of a method: here somebody called a command."""
    text = str(error)
    found = _METHOD.match(text)
    return text if found is None else found[1].upper() + text[found.end() + 1 :]


# Options of the client of a command for which nobody waits.
LOW_PRIORITY = {"priority": "Low"}


class Commands(click.Group):
    """Turns the package's exceptions into messages."""

    def invoke(self, context: click.Context) -> Any:
        try:
            return super().invoke(context)
        except ConfigurationError as error:
            problem: Problem = UsageProblem(message_of(error))
        except (
            CosmosServiceError,
            AlreadyExistsError,
            SessionNotFoundError,
            StaleSessionError,
        ) as error:
            problem = Problem(message_of(error))
        except KeyboardInterrupt:
            problem = Interrupted("Interrupted.")
        raise problem


# Characters in stored text that are not printed unchanged: control characters, characters that
# change the direction of text, and invisible ones. Newlines and tabs are kept.
CONTROL = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    r"\U000e0000-\U000e007f]"
)

uri_option = click.option(
    "--uri",
    metavar="URI",
    help="cosmosdb://… Default: COSMOSDB_* from the environment or .env.",
)
interval_option = click.option(
    "--interval",
    default=1.0,
    show_default=True,
    type=click.FloatRange(0, min_open=True),
    help="Seconds between two reads.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, for scripts.")


def example(*commands: str) -> str:
    """The end of a command's help."""
    lines = "".join(f"\n  cosmosservice {each}" for each in commands)
    return f"\b\nExample{'s' * (len(commands) > 1)}:{lines}"


def settings_of(uri: str | None, *, existing: bool = False) -> Settings:
    """The settings; with `existing`, an embedded store must be there already."""
    settings = Settings.from_uri(uri) if uri else Settings.from_env()
    path = settings.embedded_path
    if existing and path not in (None, ":memory:"):
        if not os.path.exists(str(path)):
            raise ConfigurationError(f"There is no file {path}: nothing was ever stored in it.")
        if os.path.isfile(str(path)) and not os.path.getsize(str(path)):
            raise ConfigurationError(f"{path} is empty: nothing was ever stored in it.")
    return settings


def run(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(work)


@contextlib.contextmanager
def interruptible(message: Callable[[], str]) -> Iterator[None]:
    """Ctrl-C ends the command with the message that `message` returns."""
    try:
        yield
        return
    except KeyboardInterrupt:
        pass
    raise Interrupted(f"Interrupted. {message()}")


def print_continuation(
    words: Sequence[object], options: Mapping[str, object], uri: str | None
) -> None:
    """Prints the command that continues where this one ended. Options that are None or False are
    left out."""
    command = ["cosmosservice", *map(str, words)]
    for name, value in {"--uri": uri, **options}.items():
        if value not in (None, False):
            command += [name] if value is True else [name, str(value)]
    err.print(f"To continue: {shlex.join(command)}", markup=False, soft_wrap=True)


def print_json(value: Any) -> None:
    click.echo(json_line(value))


def json_line(value: Any) -> str:
    """A value as JSON on one line, without characters that a terminal would interpret."""
    from cosmosservice.data_converters import to_json

    text = to_json(value).decode("utf-8", "backslashreplace")
    return CONTROL.sub(lambda found: json.dumps(found[0])[1:-1], text)


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """`1 session`, `2,000 sessions`."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


@contextlib.contextmanager
def bar(of: str) -> Iterator[Callable[[int, int], None]]:
    """A progress bar on stderr, if that is a terminal. Call it with (done, total)."""
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = TextColumn(of), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    hidden = not err.is_terminal
    with Progress(*columns, console=err, disable=hidden, transient=True) as progress:
        task = progress.add_task("", total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


def age(context: click.Context, parameter: click.Parameter, value: str) -> datetime.timedelta:
    """`90d`, `12h`, `30m`, `45s`."""
    found = re.fullmatch(r"(\d+)([dhms])", value.strip())
    if found is None:
        raise click.BadParameter(
            "must be a number followed by d, h, m or s: 30d, 12h.", context, parameter
        )
    unit = {"d": "days", "h": "hours", "m": "minutes", "s": "seconds"}[found[2]]
    return datetime.timedelta(**{unit: int(found[1])})


def age_or_none(
    context: click.Context, parameter: click.Parameter, value: str | None
) -> datetime.timedelta | None:
    return None if value is None else age(context, parameter, value)
