"""A figure: a measured value with its unit and its target."""

from dataclasses import dataclass
from typing import Optional

MIB = 1 << 20


@dataclass
class Target:
    """An upper or lower bound, or an exact value."""

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
    # For example a ratio to another program, or an interval.
    remark: str = ""

    def cells(self):
        """Name, value, target, ratio of value to target, verdict, remark."""
        value = f"{format_value(self.value)} {self.unit}".strip()
        if self.target is None:
            return self.name, value, "", "", "", self.remark
        target = f"{self.target.sign} {format_value(self.target.value)} {self.unit}".strip()
        ratio = f"{self.value / self.target.value:.3g}" if self.target.value else ""
        return self.name, value, target, ratio, "met" if self.is_met() else "MISSED", self.remark

    def is_met(self):
        return self.target is None or self.target.is_met_by(self.value)

    def line(self):
        name, value, target, ratio, verdict, remark = self.cells()
        judged = f"target {target}" + (f" (ratio {ratio})" if ratio else "") + f" {verdict}"
        parts = [f"  {name:<58} {value:>14}"]
        if target:
            parts.append(judged)
        if remark:
            parts.append(remark)
        return "  ".join(parts)


def format_value(value):
    """A number with enough digits to compare, without an exponent."""
    if value == int(value):
        return f"{int(value)}"
    if abs(value) >= 1000:
        return f"{value:.0f}"
    if abs(value) >= 1:
        return f"{value:.2f}"
    return f"{value:.4f}"
