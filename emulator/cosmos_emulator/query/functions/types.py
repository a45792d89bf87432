"""Type checking: true or false for any value, undefined included. And IIF."""

from typing import Any, Final

from cosmos_emulator.query.functions.datetimes import read_datetime
from cosmos_emulator.query.functions.function import Function, fixed
from cosmos_emulator.query.values import UNDEFINED, is_number
from cosmos_emulator.rids import item_number


def _is_integer(value: Any) -> bool:
    """A whole number that fits into 64 bits."""
    return is_number(value) and -(2**63) <= value <= 2**63 and value == int(value)


def _is_datetime(value: Any) -> bool:
    return type(value) is str and read_datetime(value) is not None


def _iif(condition: Any, then: Any, otherwise: Any) -> Any:
    return then if condition is True else otherwise


def _document_id(document: Any) -> Any:
    """The number of a document in its container, as its rid has it."""
    rid = document.get("_rid") if type(document) is dict else None
    number = item_number(rid) if type(rid) is str else None
    return UNDEFINED if number is None else number


LAZY_FUNCTIONS: Final[dict[str, Function]] = {
    "IS_ARRAY": fixed(lambda value: type(value) is list, 1),
    "IS_BOOL": fixed(lambda value: type(value) is bool, 1),
    "IS_DATETIME": fixed(_is_datetime, 1),
    "IS_DEFINED": fixed(lambda value: value is not UNDEFINED, 1),
    "IS_FINITE_NUMBER": fixed(is_number, 1),
    "IS_INTEGER": fixed(_is_integer, 1),
    "IS_NULL": fixed(lambda value: value is None, 1),
    "IS_NUMBER": fixed(is_number, 1),
    "IS_OBJECT": fixed(lambda value: type(value) is dict, 1),
    "IS_PRIMITIVE": fixed(lambda value: value is None or type(value) in (bool, int, float, str), 1),
    "IS_STRING": fixed(lambda value: type(value) is str, 1),
    "IIF": fixed(_iif, 3),
    "DOCUMENTID": fixed(_document_id, 1),
}
