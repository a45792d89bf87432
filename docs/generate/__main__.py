"""Writes the generated parts of the pages: python -m docs.generate"""

from __future__ import annotations

from docs.generate.pages import pages, part_names, regenerated
from docs.generate.parts import PARTS
from docs.generate.tree import PAGE, with_map

PAGE.write_text(with_map(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
print(f"{PAGE.name}: map")

for page in pages():
    text = page.read_text(encoding="utf-8")
    if part_names(text):
        page.write_text(regenerated(text, PARTS), encoding="utf-8")
        print(f"docs/{page.name}: {', '.join(part_names(text))}")
