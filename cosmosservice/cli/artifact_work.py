"""What `cosmosservice artifacts …` does. Imports ADK, so commands import it when they run."""

from __future__ import annotations

import contextlib
import dataclasses
import mimetypes
import os
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import IO, Any

from google.adk.errors.input_validation_error import InputValidationError

from cosmosservice import CosmosArtifactService
from cosmosservice.cli.console import (
    Problem,
    UsageProblem,
    bar,
    counted,
    err,
    print_json,
    settings_of,
)
from cosmosservice.cli.layout import print_table
from cosmosservice.cli.session_work import owner_of
from cosmosservice.cli.timeline import clean, moment
from cosmosservice.explore.texts import natural

_BLOCK = 1024 * 1024


@contextlib.asynccontextmanager
async def service_of(
    uri: str | None, *, writes: bool = False
) -> AsyncIterator[CosmosArtifactService]:
    """Only commands that store artifacts create a store; reading a missing one is an error. A file
    in which there are no artifacts yet is none."""
    settings = settings_of(uri, existing=not writes)
    ensure: Any = None if writes or settings.embedded_path is not None else "verify"
    async with CosmosArtifactService(uri=uri, ensure=ensure) as service:
        try:
            yield service
        except InputValidationError as wrong:
            problem = UsageProblem(str(wrong))
        else:
            return
    raise problem


async def _found(service: CosmosArtifactService, scope: dict[str, Any]) -> dict[str, Any]:
    """The same with app and user, which the id of a session tells."""
    return scope | (await owner_of(service.account, scope))._asdict()


async def list_artifacts(uri: str | None, scope: dict[str, Any], *, as_json: bool) -> None:
    rows = []
    async with service_of(uri) as service:
        scope = await _found(service, scope)
        for name in sorted(await service.list_artifact_keys(**scope), key=natural):
            latest = await service.get_artifact_version(**scope, filename=name)
            if latest is not None:
                rows.append((name, latest))
    if as_json:
        for name, latest in rows:
            print_json({"filename": name} | latest.model_dump())
        return
    if not rows:
        err.print("No artifacts.")
        return
    print_table(
        ("name", "versions", "type", "saved"),
        (
            (
                clean(name),
                f"{latest.version + 1:,}",
                clean(latest.mime_type or ""),
                moment(latest.create_time),
            )
            for name, latest in rows
        ),
    )


async def versions(uri: str | None, artifact: dict[str, Any], *, as_json: bool) -> None:
    async with service_of(uri) as service:
        artifact = await _found(service, artifact)
        found = await service.list_artifact_versions(**artifact)
    if as_json:
        for each in found:
            print_json(each.model_dump())
        return
    if not found:
        raise _missing(artifact)
    print_table(
        ("version", "type", "saved", "metadata"),
        (
            (
                str(each.version),
                clean(each.mime_type or ""),
                moment(each.create_time),
                clean(", ".join(f"{k}={v}" for k, v in each.custom_metadata.items())),
            )
            for each in found
        ),
    )


async def get(uri: str | None, artifact: dict[str, Any], output: Path | None) -> None:
    async with service_of(uri) as service:
        reader = await service.open_artifact(**await _found(service, artifact))
        if reader is None:
            raise _missing(artifact)
        with bar("bytes") as progress, _whole_or_nothing(output) as target:
            done = 0
            async for piece in reader:
                target.write(piece)
                done += len(piece)
                progress(done, reader.size)
    err.print(f"Version {reader.version}, {counted(reader.size, 'byte')}.")


@contextlib.contextmanager
def _whole_or_nothing(output: Path | None) -> Iterator[IO[bytes]]:
    """A file that is removed again if it cannot be written completely, or stdout."""
    if output is None:
        yield sys.stdout.buffer
        return
    with output.open("wb") as target:
        try:
            yield target
        except BaseException:
            if output.is_file():
                output.unlink()
            raise


async def put(
    uri: str | None, artifact: dict[str, Any], file: Path, mime_type: str | None, *, as_json: bool
) -> None:
    kind = mime_type or mimetypes.guess_type(file.name)[0] or "application/octet-stream"
    async with service_of(uri, writes=True) as service:
        artifact = await _found(service, artifact)
        with file.open("rb") as source, bar("bytes") as progress:
            size = os.fstat(source.fileno()).st_size
            version = await service.save_artifact_stream(
                **artifact, data=_blocks(source, size, progress), mime_type=kind
            )
    if as_json:
        print_json({"filename": artifact["filename"], "version": version, "bytes": size})
        return
    err.print(f"Saved as version {version}.")


async def _blocks(
    source: IO[bytes], size: int, progress: Callable[[int, int], None]
) -> AsyncIterator[bytes]:
    done = 0
    while block := source.read(_BLOCK):
        done += len(block)
        progress(done, size)
        yield block


async def delete(uri: str | None, artifact: dict[str, Any]) -> None:
    async with service_of(uri) as service:
        artifact = await _found(service, artifact)
        if not await service.list_versions(**artifact):
            raise _missing(artifact)
        await service.delete_artifact(**artifact)
    err.print("Deleted.")


async def sweep(uri: str | None, *, as_json: bool) -> None:
    async with service_of(uri) as service:
        with bar("scopes") as progress:
            report = await service.sweep(progress=progress)
    if as_json:
        print_json(dataclasses.asdict(report))
        return
    removed = (
        f"{counted(report.payloads, 'unused payload')}, {counted(report.pieces, 'piece')};"
        f" {counted(report.deletions, 'deletion')} finished"
    )
    err.print(f"{counted(report.scopes, 'scope')} looked at. Removed: {removed}.")


def _missing(artifact: dict[str, Any]) -> Problem:
    return Problem(
        f"There is no artifact {artifact['filename']!r} there, or not this version of it."
        " `cosmosservice artifacts list` shows the existing ones."
    )
