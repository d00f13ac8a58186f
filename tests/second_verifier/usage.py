"""What each line used as of the cut, and at which price: leases, idle parts of claims, reported usage.

Written from docs/reference/semantics.md 2, 7, 10, 12 and 13. Everything is integers: quanta × nanoseconds for classes,
10^-18 units for usage units. Amounts are exact fractions of steps.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from fractions import Fraction
from typing import Callable, Iterable, Iterator, Optional

from lists import FAILED_START, NODE_LOST, OWN_REQUEST, PREEMPTED, Claim, Common, Lease, Tenant
from records import NO_POOL, STEP, LineKey, Sealed, month_of, month_start

HOUR = 3600 * 10**9
BILLION = 10**9
PART = 10**9  # parts of 10^-18 units in a billionth of a unit
BUILT_IN = ("EUR", [10_000_000, 2_000_000, 1_000_000, 500_000, 300_000], [300_000_000, 1_000_000_000, 1_500_000_000])
SECONDS = {1: 1, 2: 3600, 3: 86_400}
BILLED = 1
STANDARD = 2
BUILT_IN_UNITS = {0: 1, 1: 1, 2: 1, 3: 1, 4: 2, 5: 2}  # measures: time or count
TIME = 1
LINES_MAX = 1 << 24  # of usage, for one invoice

Payer = tuple[int, str]
Usage = dict[tuple[Payer, LineKey], int]


class Prices:
    """Which card is in force for a pool, which price for a unit, which charge policy, and what a line costs."""

    def __init__(self, common: Common) -> None:
        self.common = common
        self.timelines: dict[Optional[int], tuple[list[int], list[int]]] = {}
        by_pool: dict[Optional[int], list[tuple[int, int]]] = defaultdict(list)
        for number, (body, _) in common.cards.items():
            by_pool[body[1]].append((body[2], number))
        for pool, cards in by_pool.items():
            cards.sort()  # ASSUMED: of two cards from the same instant the one with the higher number counts
            self.timelines[pool] = ([c[0] for c in cards], [c[1] for c in cards])
        policies = sorted((body[1], number) for number, (body, _) in common.policies.items())
        self.policy_starts, self.policy_numbers = [p[0] for p in policies], [p[1] for p in policies]
        # The latest start counts, and among the same starts the last one set.
        self.unit_prices: dict[tuple, list[tuple[int, int]]] = defaultdict(list)
        self.unit_starts: dict[int, list[int]] = defaultdict(list)
        for number, (body, _) in common.prices.items():
            insort(self.unit_prices[body["unit"], body["app"]], (body["from"], number))
            insort(self.unit_starts[body["unit"]], body["from"])
        self.rates: dict[tuple, Fraction] = {}

    def card_at(self, pool: int, at: int) -> Optional[int]:
        for which in (pool, None):
            starts, numbers = self.timelines.get(which, ([], []))
            if i := bisect_right(starts, at):
                return numbers[i - 1]
        return None

    def changes(self, pool: int) -> list[int]:
        """When another card may come into force for a pool."""
        return sorted({s for which in (pool, None) for s in self.timelines.get(which, ([], []))[0]})

    def currency(self, card: Optional[int]) -> str:
        return BUILT_IN[0] if card is None else self.common.cards[card][0][3].decode()

    def rate(self, key: LineKey) -> Optional[Fraction]:
        """Steps for one quantum × nanosecond, or for 10^-18 units; None if the line has no such price."""
        known = (key.item, key.priced, key.price)
        if known not in self.rates:
            self.rates[known] = self.unit_rate(key) if key.item[0] == 2 else self.class_rate(key)
        return self.rates[known]

    def unit_rate(self, key: LineKey) -> Optional[Fraction]:
        if key.price not in self.common.prices:
            return None
        return Fraction(self.common.prices[key.price][0]["price"] * STEP, 10**27)

    def class_rate(self, key: LineKey) -> Optional[Fraction]:
        if key.item[1] not in self.common.classes or key.price >= 0 and key.price not in self.common.cards:
            return None
        _name, (kind, _), tier, per_unit, _premium = self.common.classes[key.item[1]]
        period, factor = 1, BILLION
        if key.price < 0:
            price, by_priority = BUILT_IN[1][kind - 1], BUILT_IN[2]
        else:
            card = self.common.cards[key.price][0]
            classes, tiers, by_priority = dict(card[9]), dict(card[10]), card[11:14]
            periods = card[14].get(1, ([1] * 5, []))
            price, period = card[3 + kind], periods[0][kind - 1]
            if key.item[1] in classes:
                price = classes[key.item[1]]
                period = dict(periods[1]).get(key.item[1], (1,))[0]
            factor = tiers.get(tier, BILLION)
        numerator = price * factor * by_priority[key.priced - 1] * STEP
        return Fraction(numerator, BILLION**3 * per_unit * BILLION * SECONDS[period])

    def policy_at(self, at: int) -> Optional[tuple]:
        i = bisect_right(self.policy_starts, at)
        return self.common.policies[self.policy_numbers[i - 1]][0] if i else None

    def unit_price_at(self, unit: int, app: Optional[int], at: int) -> Optional[dict]:
        """A price for the app goes before one for all, whatever their starts."""
        for which in (app, None):
            prices = self.unit_prices.get((unit, which), [])
            if i := bisect_right(prices, (at, 1 << 64)):
                return self.common.prices[prices[i - 1][1]][0]
        return None


def charged_until(lease: Lease, prices: Prices) -> int:
    """The end of what is charged: the billing interval less what the charge policy forgives."""
    policy = prices.policy_at(lease.to)
    if policy is None or lease.ending == OWN_REQUEST:
        return lease.to
    which = {PREEMPTED: 2, NODE_LOST: 4, FAILED_START: 5}.get(lease.ending)
    if which is None:
        if lease.fenced_from is None:
            return lease.to
        which = 3
    kind, span = policy[which]
    return {1: lease.to, 2: lease.start, 3: max(lease.start, lease.to - (span or 0) if kind == 3 else 0)}[kind]


def pieces(start: int, end: int, changes: list[int]) -> Iterator[tuple[int, int]]:
    """An interval, divided at full hours and at the given instants."""
    while start < end:
        stop = min(end, (start // HOUR + 1) * HOUR)
        if (i := bisect_right(changes, start)) < len(changes):
            stop = min(stop, changes[i])
        yield start, stop
        start = stop


class TooManyLines(Exception):
    """The lists and records make more than LINES_MAX lines of usage."""


class Meter:
    """Sums up usage by payer and line, within a window."""

    def __init__(self, prices: Prices, window: tuple[int, int]) -> None:
        self.prices, self.usage = prices, defaultdict(int)
        opened = prices.common.opened
        self.start, self.end = max(window[0], opened if opened is not None else window[1]), window[1]
        self.changes: dict[int, list[int]] = {}

    def held(self, payer: int, start: int, end: int, quanta: int, key: Callable[[int, int], LineKey], pool: int) -> None:
        if pool not in self.changes:
            self.changes[pool] = self.prices.changes(pool)
        for a, b in pieces(max(start, self.start), min(end, self.end), self.changes[pool]):
            card = self.prices.card_at(pool, a)
            line = key(a // HOUR * HOUR, -1 if card is None else card)
            self.usage[(payer, self.prices.currency(card)), line] += quanta * (b - a)
            if len(self.usage) > LINES_MAX:
                raise TooManyLines

    def lease(self, x: Lease) -> None:
        self.held(x.payer, x.start, charged_until(x, self.prices), x.quanta, lambda hour, card: LineKey(
            hour, x.holder, x.pool, (1, x.cls), x.priority, x.priced, x.tag or "", none(x.instance),
            none(x.attachment), x.control, card), x.pool)

    def claim(self, claim: Claim, leases: Iterable[Lease]) -> None:
        end = self.end if claim.end is None else min(claim.end, self.end)
        out = [(a, b) for b, a in claim.outages] + [(a, end) for a in (claim.drained, claim.lost) if a is not None]
        for cls, capacity in claim.capacity:
            for a, b, idle in idle_steps(claim.start, end, capacity, out, [x for x in leases if x.cls == cls]):
                self.held(claim.project, a, b, idle, lambda hour, card, c=cls: LineKey(
                    hour, claim.project, claim.pool, (1, c), 3, 3, claim.tag or "", -1, -1, False, card), claim.pool)

    def reported(self, r: Sealed, app: Optional[int]) -> None:
        """A usage record: what it says, and less what the record said whose place it takes."""
        b = r.body
        self.report(r.project, b["added"].get(1), b, b, app, 1)
        if b["replaced"] is not None:
            self.report(b["replaced"]["project"], b["added"].get(2), b, b["replaced"], app, -1)

    def report(self, project: int, creditor: Optional[int], what: dict, said: dict, app: Optional[int], sign: int) -> None:
        if said["charge"] != BILLED:
            return
        for hour, price, parts in self.booked(what["unit"], app, said):
            if not self.start <= hour < self.end or not parts:
                continue
            key = LineKey(hour, project, NO_POOL, (2, what["unit"]), STANDARD, STANDARD, "", what["instance"],
                          none(said["attachment"]), said["control"], price["number"])
            self.usage[(project, price["currency"]), key] += sign * parts
            if creditor is not None:
                self.usage[(creditor, price["currency"]), key] -= sign * parts
            if len(self.usage) > LINES_MAX:
                raise TooManyLines

    def booked(self, unit: int, app: Optional[int], said: dict) -> Iterator[tuple[int, dict, int]]:
        """Hour, price and 10^-18 units of each part that has a price."""
        measure = BUILT_IN_UNITS.get(unit) or self.prices.common.units[unit][0]["measure"]
        if measure != TIME:
            price = self.prices.unit_price_at(unit, app, said["to"])
            if price is not None:
                yield said["to"] // HOUR * HOUR, price, said["quantity"] * PART
            return
        for a, b, hour_end, parts in spread(said, self.prices.unit_starts.get(unit, [])):
            price = self.prices.unit_price_at(unit, app, a)
            if price is not None:
                yield (hour_end - 1) // HOUR * HOUR, price, parts


def none(number: Optional[int]) -> int:
    return -1 if number is None else number


def spread(said: dict, starts: list[int]) -> list[tuple[int, int, int, int]]:
    """`starts` rise. Parts of a quantity of time: begin, end, end of the month's part of the interval, and 10^-18 units."""
    start, end = said["from"], said["to"]
    borders = starts[bisect_right(starts, start):bisect_left(starts, end)]
    month = month_of(start) + 1
    months = []
    while month_start(month) < end:
        months.append(month_start(month))
        month += 1
    cuts = sorted({start, end, *borders, *months})
    spans = list(zip(cuts, cuts[1:]))
    whole = said["quantity"] * PART
    shares = largest_remainders(whole, [b - a for a, b in spans])
    months.append(end)
    return [(a, b, months[bisect_right(months, a)], n) for (a, b), n in zip(spans, shares)]


def largest_remainders(whole: int, weights: list[int]) -> list[int]:
    """Divides by weights: each part is rounded down, the missing ones go to the largest remainders, the first one first."""
    total = sum(weights)
    parts = [whole * w // total for w in weights]
    order = sorted(range(len(weights)), key=lambda i: (-(whole * weights[i] % total), i))
    for i in order[:whole - sum(parts)]:
        parts[i] += 1
    return parts


def idle_steps(start: int, end: int, capacity: int, outages: list[tuple[int, int]],
               leases: list[Lease]) -> Iterator[tuple[int, int, int]]:
    """When how much of a claimed node was neither held nor fenced while the node was in service."""
    held_to = {x.number: x.to if x.uncorrected is None else x.uncorrected for x in leases}
    taken = [(x.start, held_to[x.number], x.quanta) for x in leases]
    taken += [(max(x.fenced_from, held_to[x.number]), end if x.unfenced_at is None else x.unfenced_at, x.quanta)
              for x in leases if x.fenced_from is not None]
    taken += [(a, b, capacity) for a, b in union(outages)]
    changes: dict[int, int] = defaultdict(int)
    for a, b, quanta in taken:
        a, b = max(a, start), min(b, end)
        if a < b:
            changes[a] += quanta
            changes[b] -= quanta
    busy, at = 0, start
    for instant in sorted(changes) + [end]:
        if at < instant and (idle := capacity - busy) > 0:
            yield at, instant, idle
        at, busy = max(at, instant), busy + changes.get(instant, 0)


def union(intervals: list[tuple[int, int]]) -> list[tuple[int, int]]:
    out: list[list[int]] = []
    for a, b in sorted(intervals):
        if out and a <= out[-1][1]:
            out[-1][1] = max(out[-1][1], b)
        else:
            out.append([a, b])
    return [(a, b) for a, b in out]


def usage_of(tenant: Tenant, common: Common, reports: Iterable[tuple[Sealed, Optional[int]]],
             window: tuple[int, int]) -> Usage:
    """The usage of every line whose hour lies in the window, by the state and the usage records at hand."""
    meter = Meter(Prices(common), window)
    on_node: dict[int, list[Lease]] = defaultdict(list)
    for lease in tenant.leases.values():
        meter.lease(lease)
        on_node[lease.node].append(lease)
    for claim in [*tenant.claims.values(), *tenant.released]:
        end = window[1] if claim.end is None else claim.end
        meter.claim(claim, [x for x in on_node[claim.node] if x.start < end])
    for record, app in reports:
        meter.reported(record, app)
    return {line: amount for line, amount in meter.usage.items() if amount}
