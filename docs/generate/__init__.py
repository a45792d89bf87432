"""The parts of the pages that are made from the code, so that they cannot say anything else.

    <!-- generated: settings -->
    …
    <!-- end -->

`make docs` writes them; tests/docs fails when that would change something.
"""
