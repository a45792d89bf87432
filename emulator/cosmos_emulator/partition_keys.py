"""Partition keys: their form in requests, their stored form, and their hash.

A key is kept as the JSON text of its components (`["A"]`, `["x",1]`; undefined is `{}`),
which is what two equal keys have in common. The effective partition key (EPK) is a hex string:
ranges of it are what feed ranges and prefixes of hierarchical keys speak of.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import lru_cache
from json.encoder import encode_basestring
from typing import Any

from cosmos_emulator.documents import UNDEFINED, dumps, loads, path_parts, value_at
from cosmos_emulator.errors import BadRequest
from cosmos_emulator.hashing import murmur3_32, murmur3_128
from cosmos_emulator.messages import Document

MAX_KEY_BYTES = 2048
MAX_EPK = "FF"


@dataclass(frozen=True, slots=True)
class PartitionKeys:
    """The partition key definition of one container."""

    paths: tuple[tuple[str, ...], ...]
    kind: str
    version: int

    @classmethod
    def parse(cls, definition: Any) -> PartitionKeys:
        paths = definition.get("paths") if isinstance(definition, dict) else None
        if not isinstance(paths, list) or not paths or not all(isinstance(p, str) for p in paths):
            raise BadRequest("The partition key definition needs a list of paths.")
        kind = definition.get("kind", "Hash")
        if kind not in ("Hash", "MultiHash", "Range"):
            raise BadRequest(f"The partition key kind '{kind}' is unknown.")
        if len(paths) > (3 if kind == "MultiHash" else 1):
            raise BadRequest("Too many partition key paths: one for Hash, three for MultiHash.")
        version = definition.get("version", 1)
        if version not in (1, 2):
            raise BadRequest(f"The partition key version {version} is unknown.")
        parts = tuple(_parts(path) for path in paths)
        if kind == "MultiHash" and (
            definition.get("version", 2) != 2 or len(set(parts)) < len(parts)
        ):
            raise BadRequest("Hierarchical partition keys need version 2 and different paths.")
        return cls(parts, kind, version)

    def of_document(self, document: Document) -> str:
        """The key that a document carries; an object or an array counts as no value."""
        values = [value_at(document, path) for path in self.paths]
        return key_text([UNDEFINED if isinstance(v, (dict, list)) else v for v in values])

    def of_header(self, header: str) -> str:
        """The full key that a request names."""
        key, size = parse_header(header)
        if size == 0:
            return key_text([UNDEFINED] * len(self.paths))
        if size != len(self.paths):
            raise BadRequest(
                "Partition key provided either doesn't correspond to definition in the collection "
                "or doesn't match partition key field values specified in the document.",
                substatus=1001,
            )
        return key

    def epk(self, key: str) -> str:
        return effective_key(key, self.kind, self.version)


def _parts(path: str) -> tuple[str, ...]:
    """A path names one property; a name with a space must be quoted."""
    plain = '"' not in path and "'" not in path
    try:
        parts = path_parts(path)
    except BadRequest:
        parts = ()
    if not parts or (plain and any(map(str.isspace, path))) or {"?", "*", "[]"} & set(parts):
        raise BadRequest(
            f"The partition key component definition path '{path[:100]}' could not be accepted, "
            "failed near position '1'. Partition key paths must contain only valid characters and "
            "not contain a trailing slash or wildcard character."
        )
    return parts


@lru_cache(maxsize=4096)
def parse_header(header: str) -> tuple[str, int]:
    """The kept form of a partition key header, and how many components it has."""
    values = loads(header)
    if not isinstance(values, list):
        raise BadRequest(f"Partition key {header[:100]} is invalid.")
    return key_text([UNDEFINED if value == {} else value for value in values]), len(values)


def key_text(values: list[Any]) -> str:
    if len(values) == 1 and isinstance(values[0], str) and len(values[0]) < MAX_KEY_BYTES // 4:
        return f"[{encode_basestring(values[0])}]"  # What nearly every key is, without detours.
    for value in values:
        if isinstance(value, (dict, list)):
            raise BadRequest(
                "The partition key of an item must be a string, a number, a boolean, null or "
                "absent."
            )
        if isinstance(value, str) and len(value.encode("utf-8", "replace")) > MAX_KEY_BYTES:
            raise BadRequest(f"The partition key is longer than {MAX_KEY_BYTES} bytes.")
    return dumps([{} if value is UNDEFINED else value for value in values])


@lru_cache(maxsize=4096)
def effective_key(key: str, kind: str, version: int) -> str:
    values = loads(key)
    if not values:
        return ""
    if kind == "MultiHash":
        return "".join(_hash_v2([value]) for value in values)
    if version == 2:
        return _hash_v2(values)
    return _hash_v1(values)


def _for_hashing(value: Any, suffix: bytes) -> bytes:
    if value == {} and isinstance(value, dict):
        return b"\x00"
    if value is None:
        return b"\x01"
    if value is False:
        return b"\x02"
    if value is True:
        return b"\x03"
    if isinstance(value, str):
        return b"\x08" + value.encode("utf-8", "replace") + suffix
    return b"\x05" + struct.pack("<d", float(value))


def _hash_v2(values: list[Any]) -> str:
    low, high = murmur3_128(b"".join(_for_hashing(value, b"\xff") for value in values))
    digest = bytearray(((high << 64) | low).to_bytes(16, "big"))
    digest[0] &= 0x3F
    return digest.hex().upper()


def _hash_v1(values: list[Any]) -> str:
    values = [value[:100] if isinstance(value, str) else value for value in values]
    hashed = murmur3_32(b"".join(_for_hashing(value, b"\x00") for value in values))
    return b"".join(binary_v1(value) for value in [float(hashed), *values]).hex().upper()


def binary_v1(value: Any) -> bytes:
    """The order-preserving encoding of version 1 keys."""
    if not isinstance(value, (str, float, int)) or isinstance(value, bool):
        return _for_hashing(value, b"")
    if isinstance(value, str):
        data = value.encode("utf-8", "replace")
        # Every byte is shifted by one, so that the terminating zero sorts below all of them.
        shifted = bytes(min(byte + 1, 0xFF) for byte in data[:101])
        return b"\x08" + shifted + (b"\x00" if len(data) <= 100 else b"")
    (bits,) = struct.unpack("<Q", struct.pack("<d", float(value)))
    mask = 1 << 63
    payload = bits ^ mask if bits < mask else (~bits + 1) & 0xFFFFFFFFFFFFFFFF
    out = bytearray([0x05, payload >> 56])
    payload = payload << 8 & 0xFFFFFFFFFFFFFFFF
    byte = 0
    while payload:
        if byte:
            out.append(byte)
        byte = (payload >> 56) | 0x01
        payload = payload << 7 & 0xFFFFFFFFFFFFFFFF
    out.append(byte & 0xFE)
    return bytes(out)
