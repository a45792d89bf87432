"""What an account of Azure and Microsoft's container answered, exchange by exchange.

Both were asked the same on 10 October 2026: an account (NoSQL, 400 RU/s shared by the database,
gateway 2.14.0) and the container `vnext-EN20260907`. The numbers are those of the recordings in
the public repository xo/dbimp, `testdata/cosmos/cosmos-<number>-…` and
`cosmos-EN20260907-<number>-…`. Only what follows from the protocol is compared: not the ids and
times that a server makes up.

The requests, and what is known of their answers, stand in the order in which they were sent.
`account` and `container` hold what the recordings themselves add to it.
"""

from . import definitions, documents, parameters, queries, points, errors, batches, rest  # noqa: F401, I001
from .forms import EXCHANGES, SYSTEM, Answer, Exchange

__all__ = ["EXCHANGES", "SYSTEM", "Answer", "Exchange"]

assert len(EXCHANGES) == 248
