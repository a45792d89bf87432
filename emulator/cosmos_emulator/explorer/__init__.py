"""The data page: databases, containers, documents and a query box, at `/_explorer`."""
