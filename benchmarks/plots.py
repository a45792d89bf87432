"""Bar charts as SVG, written by hand: no dependency, and readable diffs."""

from __future__ import annotations

from html import escape

from benchmarks.results import Plot

WIDTH, LABELS, VALUES, BAR, GAP, TOP = 820, 330, 90, 22, 10, 44
OURS, THEIRS, INK = "#2563eb", "#94a3b8", "#1e293b"


def bars(plot: Plot, ours: str) -> str:
    """Horizontal bars. Those whose label begins with `ours` are highlighted."""
    height = TOP + len(plot.bars) * (BAR + GAP) + GAP
    longest = max(value for _, value in plot.bars)
    scale = (WIDTH - LABELS - VALUES) / longest
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}"'
        f' font-family="system-ui, sans-serif" font-size="14" fill="{INK}">',
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        f'<text x="16" y="26" font-size="16" font-weight="600">{escape(plot.title)}</text>',
    ]
    for index, (label, value) in enumerate(plot.bars):
        y = TOP + index * (BAR + GAP)
        middle = y + BAR * 0.72
        colour = OURS if label.startswith(ours) else THEIRS
        length = max(value * scale, 1)
        shown = f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
        lines += [
            f'<text x="{LABELS - 10}" y="{middle:.0f}" text-anchor="end">{escape(label)}</text>',
            f'<rect x="{LABELS}" y="{y}" width="{length:.1f}" height="{BAR}" rx="3"'
            f' fill="{colour}"/>',
            f'<text x="{LABELS + length + 8:.0f}" y="{middle:.0f}">{shown} {plot.unit}</text>',
        ]
    return "\n".join([*lines, "</svg>", ""])
