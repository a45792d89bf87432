"""Documents in the tests name this module, but nothing imports it."""

raise AssertionError("a document had this imported")
