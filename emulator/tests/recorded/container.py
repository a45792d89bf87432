"""What the recordings of Microsoft's container say: one entry for each that was read.

Its charges are all 1. It says the same of the others that were not read, as far as is known.
"""

from .forms import UNPLANNED, Seen, ordered, syntax

MISSING = "Resource Not Found. Learn more: https://aka.ms/cosmosdb-tsg-not-found"
TAKEN = "The document already exists in the collection."
OTHER_KEY = "PartitionKey extracted from document doesn't match the one specified in the header."
NO_ID = "Document does not contain an id field"
NO_JSON = "Failed to parse Json request"
FAILED = "Database query failed: PostgresError(SqlState(EXX000), None)"
NO_PATH = "Invalid path or method"
SYSTEM = " _rid _self _etag _attachments _ts"
FOUND = " id _rid _etag _attachments _ts"  # without _self, and after the rest

TY1 = "id pk i f t fa nu s arr obj emp ea eo ts dt tm uuid b64 dec"


def page(order: str = "", *documents: object) -> Seen:
    return Seen("page", 1, order=ordered(order), documents=documents)


def ids(*names: str) -> Seen:
    return page("id", *({"id": name} for name in names))


def bare(text: str) -> Seen:
    return Seen("bare", says=text)


def refused(text: str, kind: str = "refused") -> Seen:
    return Seen(kind, 1, text)


def error(code: str | int, text: str, start: int | None = None, end: int | None = None) -> Seen:
    return Seen("page", 1, syntax(code, text, start, end))


def item(order: str = "") -> Seen:
    return Seen("item", 1, order=ordered(order + SYSTEM) if order else ())


def plan(**found: object) -> Seen:
    return Seen("page", 1, plan={**UNPLANNED, **found})


COUNTED = Seen(
    "page", 1,
    plan={
        **UNPLANNED, "aggregates": ["Count"], "hasSelectValue": True,
        "rewrittenQuery": "SELECT VALUE COUNT(1) FROM c /*cosmos_emulator_aggregate*/",
    },
)  # fmt: skip

SEEN: dict[int, Seen] = {
    1: refused("Database 'dbimp_it' not found", "catalog"),
    2: Seen("catalog", 1),
    5: Seen("catalog", 1),
    6: Seen("catalog", 1),
    7: Seen("catalog", 1),
    33: Seen("catalog", 1),
    34: Seen("listed", 1),
    35: Seen("catalog", 1),
    36: Seen("listed", 1),
    37: Seen("catalog", 1),
    38: Seen("ranges", 1),
    39: item("id pk n s"),
    40: page("n s pk" + FOUND),
    41: page("id"),
    42: refused(NO_ID, "invalid"),
    43: item(TY1),
    45: item("id pk zeta alpha mid b abcdef nu obj"),
    46: page("b nu pk mid obj zeta alpha abcdef" + FOUND),
    47: page("b nu mid zeta alpha abcdef"),
    48: page("nu zeta alpha"),
    52: page("$1 $2 $3"),
    53: error("SC2022", "Object creation error, property name 'a' specified more than once."),
    58: page("$1 $2", {"$1": 3, "$2": 1}),
    59: plan(),
    61: item("id pk i64 u64 i64min ovr huge dec one negzero big tiny under frac"),
    62: item("id pk i64 u64 i64min ovr huge dec one negzero big tiny under frac"),
    63: page("dec i64 one ovr u64 frac huge tiny under i64min negzero"),
    64: page("a b c d", {"a": 9007199254740994, "b": 9007199254740993, "c": 0.1 + 0.2, "d": 1 / 3}),
    65: bare(NO_JSON),
    66: bare(NO_JSON),
    67: item("id pk s"),
    68: bare(NO_JSON),
    70: page("a b d n o s u"),
    80: page("d n v", {"d": True, "n": False, "v": 1.8446744073709552e19}),
    83: page("d"),
    85: bare(FAILED),
    87: bare(FAILED),
    91: ids("d1", "ord1"),
    92: ids("d1", "ty1"),
    93: ids("e2", "nums"),
    95: page("", 2500),
    98: page("n id"),
    105: page("id"),
    107: ids("rp0-0", "rp0-1"),
    108: ids("rp0-2", "rp0-3"),
    110: page(
        "a n grp",
        *({"grp": n, "n": 360, "a": 248.5 + n} for n in range(3)),
        *({"grp": n, "n": 355, "a": 245 + n} for n in range(3, 7)),
    ),
    113: ids("rp4-99"),
    114: COUNTED,
    115: plan(),
    116: COUNTED,
    118: page("a n s mn mx", {"a": 1, "n": 5, "s": 1, "mn": 1, "mx": 1}),
    119: ids("d1", "e2"),
    121: page("n pk", {"n": 2, "pk": "a"}, {"n": 3, "pk": "t"}),
    123: page("", "a", "t"),
    126: ids("d1", "ord1", "e2", "nums", "ty1"),
    131: page("$1"),
    135: bare("Partition key is required for this operation"),
    136: refused(MISSING),
    139: refused("E-tag mismatch detected"),
    140: item("id pk n s new"),
    142: refused(TAKEN),
    143: Seen("gone", 1),
    144: refused(MISSING),
    146: item("id a b v"),
    147: page("a b v" + FOUND),
    149: refused("Document violates unique key constraints."),
    151: refused(MISSING),
    152: Seen("feed", 1),
    153: Seen("catalog", 1),
    155: Seen("catalog", 1),
    156: bare(NO_PATH),
    157: Seen("script", 1),
    158: Seen("page", 1, "Query execution error"),
    159: Seen("script", 1),
    160: bare("Server-side script execution is not supported in this emulator"),
    161: Seen("script", 1),
    162: Seen("empty", 1, order=ordered("_rid Conflicts _count")),
    163: Seen("empty", 1, order=ordered("_rid Users _count")),
    164: Seen("bare"),
    165: error("SC1001", "Syntax error, incorrect syntax near 'FROM'.", 7, 11),
    166: error("SC2005", "'ABC' is not a recognized built-in function name."),
    168: error("SC1002", "Syntax error, unexpected end-of-file.", 0, 0),
    169: error(
        4001,
        "The response content contains a numeric value that cannot be represented in JSON"
        " (e.g. Infinity and NaN).",
    ),
    170: refused(
        "Owner resource does not exist. Database: dbimp_it, Collection: nope", "page"
    ),
    171: refused("Database 'nope' not found", "catalog"),
    172: refused("Database 'dbimp_it' already exists", "catalog"),
    173: refused("Collection 'kv' already exists in database 'dbimp_it'", "catalog"),
    174: refused("partitionKey is required in the request body", "catalog"),
    175: refused("Id cannot contain special characters ? # / \\", "catalog"),
    176: refused(NO_ID, "invalid"),
    177: refused(OTHER_KEY, "catalog"),
    178: item("id pk"),
    # It says how large it would be with what it adds.
    179: bare(NO_JSON),
    180: Seen("bare"),
    181: bare(FAILED),
    183: bare(NO_PATH),
    185: Seen("listed", 1),
    190: error("SC1001", "Syntax error, incorrect syntax near '/'.", 14, 15),
    193: Seen("batch", 1, charges=(0, 0)),
    194: Seen("batch", 1, charges=(0, 0)),
    195: ids("b1", "b2"),
    196: Seen("batch", 1, charges=(0,) * 5),
    197: Seen("batch", 1, charges=(0,)),
    198: refused(NO_ID, "invalid"),
    199: Seen("batch", 1, charges=(0,) * 3),
    200: bare(
        "Request contains too many operations. The maximum number of operations allowed in a single"
        " transaction is 100. Passed operations 101."
    ),
    201: bare(NO_PATH),
    202: page("n s pk new" + FOUND),
    203: Seen("bare"),
    205: item(TY1),
    209: page("", 9),
    210: bare(NO_PATH),
    211: bare(NO_JSON),
    214: plan(),
    215: plan(distinctType="Unordered"),
    216: page("grp", {"grp": 0}, {"grp": 1}),
    248: Seen("catalog", 1),
}  # fmt: skip
