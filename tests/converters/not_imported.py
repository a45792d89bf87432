"""Named by documents in the tests, and imported by nobody."""

raise AssertionError("a document had this imported")
