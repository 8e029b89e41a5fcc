"""A figure: what was measured, in its unit, beside its target."""

from dataclasses import dataclass
from typing import Optional

MIB = 1 << 20


@dataclass
class Target:
    """`at most` or `at least` a value, or exactly it."""

    sign: str
    value: float

    def is_met_by(self, value):
        return {"≤": value <= self.value, "<": value < self.value,
                "≥": value >= self.value, "=": value == self.value}[self.sign]


def at_most(value):
    return Target("≤", value)


def below(value):
    return Target("<", value)


def at_least(value):
    return Target("≥", value)


def exactly(value):
    return Target("=", value)


@dataclass
class Figure:
    name: str
    value: float
    unit: str
    target: Optional[Target] = None
    # A ratio to another program, a spread, a remark.
    beside: str = ""

    def cells(self):
        """Name, value, target, ratio of value to target, verdict, remark."""
        value = f"{shown(self.value)} {self.unit}".strip()
        if self.target is None:
            return self.name, value, "", "", "", self.beside
        target = f"{self.target.sign} {shown(self.target.value)} {self.unit}".strip()
        ratio = f"{self.value / self.target.value:.3g}" if self.target.value else ""
        return self.name, value, target, ratio, "met" if self.is_met() else "MISSED", self.beside

    def is_met(self):
        return self.target is None or self.target.is_met_by(self.value)

    def line(self):
        name, value, target, ratio, verdict, beside = self.cells()
        judged = f"target {target}" + (f" (ratio {ratio})" if ratio else "") + f" {verdict}"
        parts = [f"  {name:<58} {value:>14}"]
        if target:
            parts.append(judged)
        if beside:
            parts.append(beside)
        return "  ".join(parts)


def shown(value):
    """Enough digits to compare, never in powers of ten, no zeros for show."""
    if value == int(value):
        return f"{int(value)}"
    if abs(value) >= 1000:
        return f"{value:.0f}"
    if abs(value) >= 1:
        return f"{value:.2f}"
    return f"{value:.4f}"
