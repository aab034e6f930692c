"""Numbers, sizes, times and texts as people read them."""

from __future__ import annotations


def clock(seconds: float) -> str:
    """12.3s, 4m05s, 2h03m, 6d19h."""
    if seconds < 60:
        return f"{seconds:.1f}s"
    if seconds < 3600:
        return f"{int(seconds // 60)}m{int(seconds % 60):02}s"
    if seconds < 172_800:
        return f"{int(seconds // 3600)}h{int(seconds % 3600 // 60):02}m"
    return f"{int(seconds // 86_400)}d{int(seconds % 86_400 // 3600):02}h"


def about(seconds: float) -> str:
    """A time that nobody knows exactly: 7s, 4m, 2h10m."""
    return f"{max(1, round(seconds))}s" if seconds < 99 else clock(60 * round(seconds / 60)).replace("m00s", "m")


def size(count: int) -> str:
    amount = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} TB"


def plain(text: str) -> str:
    """A text on one line, without anything that could steer a terminal or turn the text around."""
    return text if text.isprintable() else "".join(c if c.isprintable() else " " for c in text)


def clip(text: str, width: int) -> str:
    """The beginning of a text, on one line."""
    shown = plain(text)
    return shown if len(shown) <= width else shown[: width - 1] + "…"
