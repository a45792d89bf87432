"""The command `selftest`."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click
from rich.text import Text

from cosmosservice.account.settings import Settings
from cosmosservice.cli.console import (
    FAILED,
    Problem,
    UsageProblem,
    err,
    example,
    json_option,
    out,
    run,
    uri_option,
)
from cosmosservice.cli.layout import Folded, print_table
from cosmosservice.errors import CosmosServiceError

if TYPE_CHECKING:
    from cosmosservice.selftest.run import Finding
    from cosmosservice.selftest.scratch import Scratch

_NAME = 11  # cells for the name of a promise


@click.command(epilog=example("selftest", "selftest --uri cosmosdb://embedded/test.db --json"))
@uri_option
@click.option("--endpoint", help="The account, instead of COSMOSDB_ENDPOINT or a URI.")
@click.option("--keep", is_flag=True, help="Leave what was stored, to look at it.")
@click.option(
    "--in-place",
    is_flag=True,
    help="In the configured database, under new names. For Entra ID, which may create none.",
)
@click.option("--yes", is_flag=True, help="Do not ask before it costs something.")
@json_option
def selftest(
    uri: str | None,
    endpoint: str | None,
    keep: bool,
    in_place: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Prove on your own account what the documentation promises.

    In a scratch database, which is created and removed: several processes write, one is killed,
    sessions are deleted, created again and erased, and all containers are searched for what is
    left. It takes a few minutes on Azure.
    """
    from cosmosservice.selftest.run import DOLLARS, ESTIMATE, HOUR
    from cosmosservice.selftest.scratch import Scratch

    # A scratch database has a name of its own, so that none needs to be configured.
    settings = Settings.given(uri=uri, endpoint=endpoint, database=None if in_place else "selftest")
    if settings.key is None and settings.embedded_path is None and not in_place:
        raise UsageProblem(
            "There is no COSMOSDB_KEY, and Entra ID may not create a scratch database. Set the key,"
            " or run it with --in-place: under new names in the configured database, and everything"
            " is erased at the end."
        )
    if not _is_local(settings) and not yes:
        click.confirm(
            f"This takes about {ESTIMATE:,} request units on {settings.endpoint}: ${DOLLARS:.2f} on"
            f" a serverless account, and ${HOUR:.2f} on a provisioned one, for 1,000 RU/s that are"
            " paid for an hour. Go on?",
            abort=True,
            err=True,
        )
    if not run(_test(Scratch(settings, in_place=in_place), keep=keep, as_json=as_json)):
        raise SystemExit(FAILED)


def _is_local(settings: Settings) -> bool:
    host = urlsplit(settings.endpoint).hostname
    return settings.embedded_path is not None or host in ("localhost", "127.0.0.1", "::1")


async def _test(scratch: Scratch, *, keep: bool, as_json: bool) -> bool:
    from cosmosservice.selftest.run import findings, measured, unkept

    found: list[Finding] = []
    report: dict[str, Any] = {}
    try:
        async for finding in findings(scratch):
            found.append(finding)
            if not as_json:
                out.print(_line(finding), soft_wrap=True)
        if found[0].kept:
            try:
                figures, lag = await measured(scratch)
            except CosmosServiceError as error:
                found.append(unkept("figures", "what operations cost and take", error))
                if not as_json:
                    out.print(_line(found[-1]), soft_wrap=True)
            else:
                report = {"figures": [dataclasses.asdict(each) for each in figures], "lag_ms": lag}
                if not as_json:
                    _print_figures(report)
    finally:
        await _clean_up(scratch, keep=keep)
    kept = all(each.kept for each in found)
    if as_json:
        promises = [dataclasses.asdict(each) for each in found]
        click.echo(json.dumps({"kept": kept, "promises": promises} | report, indent=2))
    elif kept:
        out.print(f"\nAll {len(found)} promises were kept.")
    else:
        broken = sum(not each.kept for each in found)
        out.print(
            f"\n{broken} of {len(found)} promises were not kept, or could not be tried: see above."
        )
    return kept


async def _clean_up(scratch: Scratch, *, keep: bool) -> None:
    if keep:
        err.print(f"Kept: database {scratch.settings.database}, names with {scratch.mark}.")
        return
    failure: str | None = None
    try:
        await scratch.remove()
    except CosmosServiceError as error:
        failure = str(error)
    if failure is not None:
        raise Problem(f"Not removed: database {scratch.settings.database}. {failure}")


def _line(finding: Finding) -> Folded:
    mark, style = ("✓", "green") if finding.kept else ("✗", "red")
    text = Text(f"{finding.title}\n")
    text.append(f"{finding.seen} ({finding.seconds:.1f} s)", "dim" if finding.kept else style)
    if finding.advice:
        text.append(f"\n→ {finding.advice}", style)
    label = Text.assemble((f"{mark} ", style), (finding.promise.ljust(_NAME), "bold"))
    return Folded(text, label.cell_len, label)


def _print_figures(report: dict[str, Any]) -> None:
    out.print()
    print_table(
        ["operation", "RU", "RU in the docs", "ms"],
        [
            [
                each["operation"].removesuffix(" that this process has seen, of any length"),
                f"{each['request_units']:.1f}",
                f"{each['documented']:.1f}",
                f"{each['milliseconds']:.1f}",
            ]
            for each in report["figures"]
        ],
    )
    lag = report["lag_ms"]
    out.print(
        f"\nAnother client saw an event {lag['median']:.0f} ms after it was acknowledged (median),"
        f" {lag['longest']:.0f} ms at the latest."
    )
