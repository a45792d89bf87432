"""What Microsoft's container does differently from the service, by name, and where it was seen."""

from __future__ import annotations

from dataclasses import dataclass

EXPIRED_FOR = 5  # seconds that an expired document stays visible


@dataclass(frozen=True)
class Deviation:
    """Something that a server does differently, and where that was seen."""

    name: str
    what: str
    # The number of a recording (`cosmos-EN20260907-<number>-…` in the repository xo/dbimp), or of
    # an issue of Azure/azure-cosmos-db-emulator-docker.
    source: str
    usual: bool = True  # part of `like="vnext"`; the others only on request


VNEXT = [
    Deviation("any-key", "the key is not checked", "recording 185"),
    Deviation("any-version", "hierarchical keys are taken at any API version", "recording 5"),
    Deviation(
        "no-charges", "each request is charged 1, an operation of a batch 0", "recording 193"
    ),
    Deviation(
        "no-304", "a read with a matching If-None-Match returns the document", "recording 205, #349"
    ),
    Deviation(
        "any-consistency", "a stronger consistency than the account's is accepted", "recording 209"
    ),
    Deviation("whole-order", "the page size of a sorted query is ignored", "recording 106, #285"),
    Deviation(
        "page-of-100", "a page has 100 items if its size is missing, 0 or no number", "recording 96"
    ),
    Deviation("no-plan", "queries over all partitions are answered whole", "recording 95"),
    Deviation("no-cross-header", "a query needs no permission to cross partitions", "recording 41"),
    Deviation(
        "any-features", "a plan does not depend on what the client can merge", "recording 116"
    ),
    Deviation("empty-plan", "plans do not tell of ORDER BY, GROUP BY and TOP", "recording 115"),
    Deviation(
        "key-from-document",
        "a create without a partition key takes the document's",
        "recording 178",
    ),
    Deviation(
        "jsonb-order",
        "in queries, properties are in the order of their length, then their name",
        "recording 46",
    ),
    Deviation("bare-etags", "etags of items have no quotation marks", "recording 67"),
    Deviation("plain-errors", "errors of queries are members of the answer", "recording 53"),
    Deviation("own-words", "refusals have texts of their own", "recording 136"),
    Deviation("bare-answers", "some refusals have no charge and no other header", "recording 65"),
    Deviation("path-400", "a path that does not exist is answered with 400", "recording 201"),
    Deviation("eventual", "the account's consistency is Eventual", "recording 33"),
    Deviation(
        "no-path",
        "answers do not name the container: the SDK keeps no session token",
        "recording 39",
    ),
    Deviation(
        "own-tokens",
        "session tokens have the form 0:0#1; those of queries are 0:0#0",
        "recording 39, #331",
    ),
    Deviation(
        "fewer-headers",
        "no etag of a database or a container, no LSN of a query, no item count of a batch",
        "recording 2",
    ),
    Deviation("no-composites", "composite indexes are not shown in a definition", "recording 6"),
    Deviation(
        "operation-errors",
        "a failed operation of a batch has its error as a document",
        "recording 199",
    ),
    Deviation("token-500", "a continuation that nobody gave is answered with 500", "recording 181"),
    Deviation("json-403", "a body that is not JSON is answered with 403", "recording 65"),
    Deviation("parameters-500", "bad names of parameters are answered with 500", "recording 85"),
    Deviation("scripts-400", "a call of a stored procedure is answered with 400", "recording 160"),
    Deviation("options-200", "OPTIONS is answered", "recording 203"),
    Deviation(
        "keeps-unique-keys",
        "a container that is replaced without its unique keys keeps them",
        "recording 153",
    ),
    Deviation(
        "feed-of-expired",
        f"the change feed shows expired documents for {EXPIRED_FOR} s",
        "recording 152",
    ),
    Deviation("batch-if-match", "If-Match inside a batch is ignored", "#302"),
    Deviation("no-index-policy", "the index policy is ignored", "#233"),
    # Other tags, or rare: only on request.
    Deviation(
        "late-expiry", f"expired documents stay visible for {EXPIRED_FOR} s", "documented", False
    ),
    Deviation("partial-batch", "a batch that fails keeps what came before", "#303", False),
    Deviation(
        "last-page-token", "the last page has a token that begins again", "#351, #347", False
    ),
    Deviation("no-unique-keys", "unique keys are not shown in a definition", "#202", False),
    Deviation("no-policy", "the index policy is not shown in a definition", "#233", False),
    Deviation("no-lists", "databases, containers and offers cannot be listed", "documented", False),
    Deviation("feed-500", "the change feed is answered with 500", "#334", False),
    Deviation("feed-without-etag", "the change feed has no etag", "#334", False),
    Deviation("count-as-object", "COUNT is an object and not a number", "#287", False),
    Deviation("no-nul", "a text with U+0000 is refused", "#192", False),
    Deviation("race-500", "a database created twice at once is answered with 500", "#318", False),
    Deviation("ascii-queries", "a query with other characters than ASCII gets 500", "#119", False),
]
KINDS = {"vnext": VNEXT}


def parse(like: str) -> frozenset[str]:
    """The names of the deviations in `vnext`, `vnext,-no-304` or `vnext,+feed-500`."""
    kind, *changes = like.split(",")
    if kind not in KINDS:
        raise ValueError(f"like={kind!r} is unknown; there is {', '.join(KINDS)}")
    known = {each.name for each in KINDS[kind]}
    names = {each.name for each in KINDS[kind] if each.usual}
    for change in changes:
        sign, name = change[:1], change[1:]
        if sign not in ("+", "-") or name not in known:
            raise ValueError(
                f"{change!r} is no deviation of {kind}; write + or - and one of"
                f" {', '.join(sorted(known))}"
            )
        names = names | {name} if sign == "+" else names - {name}
    return frozenset(names)
