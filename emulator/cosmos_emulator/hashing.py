"""MurmurHash3, with which Cosmos DB distributes partition keys over its ranges."""

from __future__ import annotations

_M64 = 0xFFFFFFFFFFFFFFFF
_M32 = 0xFFFFFFFF


def _rotate64(value: int, by: int) -> int:
    return ((value << by) | (value >> (64 - by))) & _M64


def _rotate32(value: int, by: int) -> int:
    return ((value << by) | (value >> (32 - by))) & _M32


def _mix64(value: int) -> int:
    value ^= value >> 33
    value = value * 0xFF51AFD7ED558CCD & _M64
    value ^= value >> 33
    value = value * 0xC4CEB9FE1A85EC53 & _M64
    return value ^ (value >> 33)


def murmur3_128(data: bytes) -> tuple[int, int]:
    """The 128-bit x64 variant with seed 0: two halves of 64 bits."""
    c1, c2 = 0x87C37B91114253D5, 0x4CF5AD432745937F
    h1 = h2 = 0
    blocks = len(data) // 16
    for block in range(blocks):
        k1 = int.from_bytes(data[block * 16 : block * 16 + 8], "little")
        k2 = int.from_bytes(data[block * 16 + 8 : block * 16 + 16], "little")
        h1 ^= _rotate64(k1 * c1 & _M64, 31) * c2 & _M64
        h1 = ((_rotate64(h1, 27) + h2) * 5 + 0x52DCE729) & _M64
        h2 ^= _rotate64(k2 * c2 & _M64, 33) * c1 & _M64
        h2 = ((_rotate64(h2, 31) + h1) * 5 + 0x38495AB5) & _M64
    tail = data[blocks * 16 :]
    k1 = int.from_bytes(tail[:8], "little")
    k2 = int.from_bytes(tail[8:], "little")
    h2 ^= _rotate64(k2 * c2 & _M64, 33) * c1 & _M64
    h1 ^= _rotate64(k1 * c1 & _M64, 31) * c2 & _M64
    h1 ^= len(data)
    h2 ^= len(data)
    h1 = (h1 + h2) & _M64
    h2 = (h2 + h1) & _M64
    h1, h2 = _mix64(h1), _mix64(h2)
    h1 = (h1 + h2) & _M64
    return h1, (h2 + h1) & _M64


def murmur3_32(data: bytes) -> int:
    """The 32-bit variant with seed 0."""
    c1, c2 = 0xCC9E2D51, 0x1B873593
    h1 = 0
    blocks = len(data) // 4
    for block in range(blocks):
        k1 = int.from_bytes(data[block * 4 : block * 4 + 4], "little")
        h1 ^= _rotate32(k1 * c1 & _M32, 15) * c2 & _M32
        h1 = (_rotate32(h1, 13) * 5 + 0xE6546B64) & _M32
    k1 = int.from_bytes(data[blocks * 4 :], "little")
    h1 ^= _rotate32(k1 * c1 & _M32, 15) * c2 & _M32
    h1 ^= len(data)
    h1 = (h1 ^ (h1 >> 16)) * 0x85EBCA6B & _M32
    h1 = (h1 ^ (h1 >> 13)) * 0xC2B2AE35 & _M32
    return h1 ^ (h1 >> 16)
