"""What the recordings of the account say: one entry for each that was read.

The kind of an answer says which headers it has. A charge stands here with all its digits; the
emulator's is to be within a tenth of it. `says` is the whole message, without the identifiers of
the request.
"""

from .forms import UNPLANNED, Error, Seen, ordered, syntax

MISSING = "Resource Not Found. Learn more: https://aka.ms/cosmosdb-tsg-not-found"
NO_ITEM = (
    "Entity with the specified id does not exist in the system."
    " More info: https://aka.ms/cosmosdb-tsg-not-found"
)
TAKEN = "Entity with the specified id already exists in the system."
EXISTS = "Resource with specified id, name, or unique index already exists."
CROSS = (
    "Cross partition query is required but disabled. Please set"
    " x-ms-documentdb-query-enablecrosspartition to true, specify x-ms-documentdb-partitionkey,"
    " or revise your query to avoid this exception."
)
FEWER = (
    "The partition key supplied in x-ms-partitionkey header has fewer components than defined in"
    " the the collection."
)
INVALID = "The request payload is invalid. Ensure to provide a valid request payload."
NO_VALUE = "Cross partition query only supports 'VALUE <AggregateFunc>' for aggregates."
MERGED = (
    "The provided cross partition query can not be directly served by the gateway. This is a first"
    " chance (internal) exception that all newer clients will know how to handle gracefully. This"
    " exception is traced, but unless you see it bubble up as an exception (which only happens on"
    " older SDK clients), then you can safely ignore this message."
)
URL = "Request url is invalid."

DATABASE = ordered("id _rid _self _etag _colls _users _ts")
CONTAINER = ordered(
    "id indexingPolicy partitionKey conflictResolutionPolicy geospatialConfig _rid _self _etag"
    " _docs _sprocs _triggers _udfs _conflicts"
)
SYSTEM = " _rid _self _etag _attachments _ts"
D1 = ordered("id pk n s" + SYSTEM)
PATCHED = ordered("id pk n s _rid _self _etag _attachments new _ts")
TY1 = ordered(
    "id pk i f t fa nu s arr obj emp ea eo ts dt tm uuid b64 dec" + SYSTEM,
)
ORD1 = ordered("id pk zeta alpha mid b abcdef nu obj" + SYSTEM)
NUMS = ordered("id pk i64 u64 i64min ovr huge dec one negzero big tiny under frac" + SYSTEM)

COUNTED = {
    **UNPLANNED, "aggregates": ["Count"], "hasSelectValue": True,
    "rewrittenQuery": 'SELECT VALUE [{"item": COUNT(1)}]\nFROM c',
}  # fmt: skip


def sorted_by(*paths: str, top: str = "", cut: str = "", payload: str = '"id": c.id') -> str:
    """What the ranges are asked instead of a query with ORDER BY."""
    items = ", ".join(f'{{"item": {path}}}' for path in paths)
    return (
        f"SELECT {top}c._rid, [{items}] AS orderByItems, {{{payload}}} AS payload\nFROM c\n"
        f"WHERE ({{documentdb-formattableorderbyquery-filter}})\nORDER BY {', '.join(paths)}{cut}"
    )


def by(*paths: str, rewritten: str, **more: object) -> dict[str, object]:
    return {
        **UNPLANNED, "orderBy": ["Ascending"] * len(paths), "orderByExpressions": list(paths),
        "rewrittenQuery": rewritten, **more,
    }  # fmt: skip


def merged(**plan: object) -> Seen:
    return Seen("gateway", says=MERGED, plan={**UNPLANNED, **plan}, framed=False)


def page(charge: float, order: str = "") -> Seen:
    return Seen("page", charge, order=ordered(order) if order else ())


def gateway(text: str | Error, *, framed: bool = False) -> Seen:
    return Seen("gateway", says=text, framed=framed or isinstance(text, Error))


PLAIN = page(2.25)  # a query that reads no document
BY_ID = page(2.82)
READ = Seen("item", 1)

CUT = merged(**by("c.id", rewritten=sorted_by("c.id", cut="\nOFFSET 0 LIMIT 3"), offset=1, limit=2))

SEEN: dict[int, Seen] = {
    1: Seen("missing", 2, MISSING),
    2: Seen("catalog", 1, order=DATABASE),
    3: Seen("catalog", 1, order=CONTAINER),
    5: Seen(
        "invalid", 0,
        "The 'kind' value 'MultiHash' specified in the partition key definition is invalid."
        " Please choose 'Hash' partition type.",
    ),
    6: Seen(
        "catalog", 1,
        order=ordered(
            "id indexingPolicy partitionKey defaultTtl uniqueKeyPolicy conflictResolutionPolicy"
            " geospatialConfig _rid _self _etag _docs _sprocs _triggers _udfs _conflicts"
        ),
    ),
    7: Seen("catalog", 1, order=CONTAINER),
    33: Seen("gateway"),
    34: Seen("listed", 2),
    35: Seen("catalog", 2, order=DATABASE),
    36: Seen("listed", 2),
    37: Seen("catalog", 2, order=CONTAINER),
    38: Seen("ranges"),
    39: Seen("item", 6.67, order=D1),
    40: page(2.26, "id pk n s" + SYSTEM),
    41: gateway(CROSS),
    42: Seen("invalid", 0, FEWER),
    43: Seen("item", 14.29, order=TY1),
    44: Seen("item", 9.14, order=ORD1),
    45: Seen("item", 1, order=ORD1),
    46: Seen("page", 2.82, order=ORD1),
    47: page(2.83, "zeta alpha mid b abcdef nu"),
    48: page(2.82, "alpha nu zeta"),
    49: page(3.02),
    50: BY_ID,
    51: page(2.82, "z a"),
    52: page(2.82, "$1 $2 $3"),
    53: gateway(
        syntax("SC2022", "Object creation error, property name 'a' specified more than once.")
    ),
    54: page(2.25, "x y z t"),
    55: page(2.8),
    56: page(2.99),
    57: BY_ID,
    58: gateway(NO_VALUE, framed=True),
    59: Seen("gateway", plan=UNPLANNED),
    60: Seen("item", 1, order=TY1),
    61: Seen("item", 10.48, order=NUMS),
    62: Seen("item", 1, order=NUMS),
    63: page(2.84, "i64 u64 i64min ovr huge dec one negzero tiny under frac"),
    64: page(2.25, "a b c d"),
    65: Seen("invalid", 1.24, INVALID),
    66: Seen("invalid", 1.24, INVALID),
    67: Seen("item", 6.29),
    68: Seen("item", 6.29),
    69: READ,
    70: page(2.83, "s n b u a o d"),
    71: page(2.83, "ts dt tm uuid b64 dec cmp"),
    **dict.fromkeys(range(72, 83), page(2.25, "v d n")),
    83: PLAIN,
    84: PLAIN,
    85: gateway(
        "Invalid query. Specified parameter name 'p' is invalid. Parameter names should be in the"
        " format of symbol '@' followed by a valid identifier. E.g. @param1",
        framed=True,
    ),
    86: page(2.25, "v w"),
    87: gateway("Invalid query. Specified duplicate parameter name '@p'.", framed=True),
    88: PLAIN,
    89: page(2.84),
    90: BY_ID,
    91: page(2.94),
    92: merged(top=2),
    93: CUT,
    94: BY_ID,
    95: merged(**COUNTED),
    96: page(17.16, "id n"),
    98: page(9.7, "id n"),
    105: gateway(
        "The input PageSize abc is invalid. Ensure to pass a valid page size which must be a"
        " positive integer or -1 for a dynamic page size."
    ),
    106: merged(
        **by("c.n", "c.id", rewritten=sorted_by("c.n", "c.id", payload='"id": c.id, "n": c.n'))
    ),
    107: merged(top=5),
    108: merged(top=5),
    109: merged(**COUNTED),
    110: gateway(NO_VALUE, framed=True),
    111: page(2.99),
    112: gateway(CROSS),
    113: merged(
        **by("c.id", rewritten=sorted_by("c.id", cut="\nOFFSET 0 LIMIT 2504"), offset=2499, limit=5)
    ),
    114: Seen("gateway", plan=COUNTED),
    115: Seen(
        "gateway",
        plan={
            **UNPLANNED,
            "groupByExpressions": ["c.grp"],
            "groupByAliases": ["grp", "n"],
            "groupByAliasToAggregateType": {"grp": None, "n": "Count"},
            "rewrittenQuery": (
                'SELECT [{"item": c.grp}] AS groupByItems, {"grp": c.grp, "n": {"item": COUNT(1)}}'
                " AS payload\nFROM c\nGROUP BY c.grp\nORDER BY c.grp"
            ),
        },
    ),
    116: gateway(
        "Query contains 1 or more unsupported features. Upgrade your SDK to a version that does"
        " support the requested features:\r\nQuery contained Aggregate, which the calling client"
        " does not support."
    ),
    117: Seen("ranges"),
    118: gateway(NO_VALUE, framed=True),
    119: merged(**by("c.id", rewritten=sorted_by("c.id", top="TOP 2 "), top=2)),
    120: CUT,
    121: gateway(NO_VALUE, framed=True),
    122: page(2.92, "t"),
    123: merged(distinctType="Unordered", hasSelectValue=True),
    124: page(3.02),
    125: page(2.82, "id n"),
    126: merged(**by("c.pk", "c.id", rewritten=sorted_by("c.pk", "c.id"))),
    127: page(2.92),
    128: gateway(syntax("SC1001", "Syntax error, incorrect syntax near 'INSERT'.", 0, 6)),
    129: gateway(syntax("SC1001", "Syntax error, incorrect syntax near 'UPDATE'.", 0, 6)),
    130: gateway(syntax("SC1001", "Syntax error, incorrect syntax near 'DELETE'.", 0, 6)),
    131: PLAIN,
    132: Seen("item", 10.67, order=D1),
    133: Seen("item", 6.67, order=D1),
    134: READ,
    135: Seen("invalid", 0, FEWER),
    136: Seen("refused", 1, NO_ITEM),
    137: READ,
    138: Seen("item", 11.05),
    139: Seen(
        "refused", 1.24,
        "Operation cannot be performed because one of the specified precondition is not met.",
    ),
    140: Seen("item", 11.42, order=PATCHED),
    141: Seen("item", 1, order=PATCHED),
    142: Seen("refused", 1.48, TAKEN),
    143: Seen("gone", 6.67),
    144: Seen("refused", 1.24, NO_ITEM),
    145: Seen("refused", 1, NO_ITEM),
    146: Seen("missing", 2, MISSING),
    147: Seen("missing", 2, MISSING),
    148: Seen("item", 7.77),
    149: Seen("refused", 1.94, TAKEN),
    150: Seen("item", 8),
    151: Seen("refused", 1, NO_ITEM),
    152: Seen("feed", 1, order=ordered("id pk email" + SYSTEM + " _lsn")),
    153: Seen(
        "invalid", 1.24,
        "The unique index cannot be modified. To change the unique index, remove the collection"
        " and re-create a new one.",
    ),
    154: Seen("item", 6.29),
    155: Seen("catalog", 2, order=CONTAINER),
    156: gateway(URL),
    157: Seen("catalog", 4.95, order=ordered("id body _rid _self _etag _ts")),
    158: page(2.56),
    159: Seen("catalog", 4.95, order=ordered("id body _rid _self _etag _ts")),
    160: Seen("executed", 4.27),
    161: Seen(
        "catalog", 4.95, order=ordered("id body triggerOperation triggerType _rid _self _etag _ts")
    ),
    162: Seen("listed", 1, order=ordered("_rid Conflicts _count")),
    163: Seen("listed", 2, order=ordered("_rid Users _count")),
    164: Seen("listed", 2, order=ordered("_rid Offers _count")),
    165: gateway(syntax("SC1001", "Syntax error, incorrect syntax near 'FROM'.", 7, 11)),
    166: gateway(syntax("SC2005", "'ABC' is not a recognized built-in function name.")),
    167: gateway(syntax("SC1010", "Syntax error, invalid token ';'.", 18, 19)),
    168: gateway(syntax("SC1002", "Syntax error, unexpected end-of-file.", 0, 0)),
    169: Seen(
        "invalid", 2.25,
        syntax(
            4001,
            "The response content contains a numeric value that cannot be represented in JSON"
            " (e.g. Infinity and NaN).",
        ),
    ),
    170: Seen("missing", 2, MISSING),
    171: Seen("missing", 2, MISSING),
    172: Seen("invalid", 1.24, EXISTS),
    173: Seen("invalid", 0, EXISTS),
    174: gateway("Shared throughput collection should have a partition key"),
    175: Seen("invalid", 0, "The input name presented contains invalid character."),
    176: Seen(
        "invalid", 1.24,
        "The input content is invalid because the required properties - 'id; ' - are missing."
        " Learn more: https://aka.ms/CosmosDB/sql/errors/missing-id",
    ),
    177: Seen(
        "invalid", 1.24,
        "PartitionKey extracted from document doesn't match the one specified in the header."
        " Learn more: https://aka.ms/CosmosDB/sql/errors/wrong-pk-value",
    ),
    178: Seen("invalid", 0, FEWER),
    179: Seen("invalid", 1.24, INVALID),
    180: gateway("Request size is too large", framed=True),
    181: gateway("Invalid Continuation Token"),
    182: gateway(URL),
    183: gateway(URL),
    184: merged(**COUNTED),
    185: gateway(
        "Required Header authorization is missing. Ensure a valid Authorization token is passed."
    ),
    186: Seen("gateway"),
    187: gateway(syntax("SC1010", "Syntax error, invalid token ';'.", 13, 14)),
    188: PLAIN,
    189: page(2.25, "a b"),
    190: gateway(syntax("SC1001", "Syntax error, incorrect syntax near '/'.", 14, 15)),
    191: PLAIN,
    192: PLAIN,
    193: Seen("batch", 12.57, charges=(6.29, 6.29)),
    194: Seen("undone", 7.86, charges=(6.29, 1.57)),
    195: page(2.84),
    196: Seen("batch", 39.03, charges=(1, 10.67, 10.67, 10.60, 6.10)),
    197: Seen("undone", 1.24, charges=(1.24,)),
    198: Seen("invalid", 1.24, "One of the specified inputs is invalid"),
    199: Seen("batch", 13.29, charges=(5.90, 1.48, 5.90)),
    200: Seen("uncharged", says="Batch request has more operations than what is supported."),
    201: gateway("RequestHandler.Post"),
    202: page(2.38),
    203: gateway(""),
    204: Seen("item", 1, order=TY1),
    205: Seen("item", 1),
    206: Seen("item", 18.67),
    207: merged(**COUNTED),
    208: page(2.89),
    209: gateway(
        "ConsistencyLevel Strong specified in the request is invalid when service is configured"
        " with consistency level Session. Ensure the request consistency level is not stronger"
        " than the service consistency level."
    ),
    210: gateway(URL),
    211: merged(**COUNTED),
    212: BY_ID,
    213: page(2.25, "a b c d e"),
    214: Seen("gateway", plan=by("c.n", rewritten=sorted_by("c.n"))),
    215: Seen(
        "gateway",
        plan={
            **UNPLANNED, "distinctType": "Unordered", "top": 3,
            "rewrittenQuery": "SELECT DISTINCT c.grp\nFROM c",
        },
    ),
    216: merged(distinctType="Unordered"),
    240: Seen(
        "throttled", 0.38,
        "Request rate is large. More Request Units may be needed, so no changes were made. Please"
        " retry this request later. Learn more: http://aka.ms/cosmosdb-error-429",
    ),
    248: Seen("deleted", 4.95),
}  # fmt: skip
