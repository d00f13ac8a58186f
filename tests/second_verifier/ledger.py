"""Entries and invoices: rounding with residuals, the chain of each payer, corrections, shares, lines, tax and total.

Written from docs/reference/semantics.md 12 and 13. Amounts are whole steps of 10^-6 of the currency; exact amounts are
fractions of steps; residuals are whole numbers of 10^-30 of the currency.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from fractions import Fraction
from typing import Any, Container, Iterable, Optional

from lists import instant, signed_bytes, some, text, varint
from records import RESIDUAL, STEP, LineKey, Sealed, fraction, month_of
from usage import Payer, Prices, Usage
from verify import sha256

UNIT = RESIDUAL // STEP  # residual units in one step
NO_DECIMALS = set("BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF".split())
THREE_DECIMALS = set("BHD IQD JOD KWD LYD OMR TND".split())
FOUR_DECIMALS = {"CLF", "UYW"}
RECEIVABLE, REVENUE, OPERATOR_LOSS, REVENUE_OF_UNIT, SHARED_RUNTIME = 1, 4, 8, 12, 13
NOT_BILLABLE = 8  # a method of sharing
POSTED, CORRECTED, ADJUSTED, SHARED = 141, 143, 144, 175


class Wrong(Exception):
    """Something does not follow. `place` is what kind of thing is wrong (a line, list, record …), and which one."""

    def __init__(self, code: str, place: tuple[str, str], sentence: str, expected: Any = None,
                 found: Any = None) -> None:
        super().__init__(sentence)
        self.code, self.place, self.sentence, self.expected, self.found = code, place, sentence, expected, found


def line_place(payer: int, key: LineKey) -> tuple[str, str]:
    """A line by its payer and its key, as it is encoded."""
    raw = (instant(key.hour) + varint(key.project) + varint(key.pool) + bytes([key.item[0]]) + varint(key.item[1])
           + bytes([key.priority, key.priced]) + some(key.tag or None, text)
           + b"".join(some(None if n < 0 else n, varint) for n in (key.instance, key.attachment))
           + bytes([key.control]) + some(None if key.price < 0 else key.price, varint))
    return "line", f"{payer} {raw.hex()}"


def half_even(value: Fraction) -> int:
    return round(value)  # of a Fraction: to the nearest integer, ties to the even one


def round_part(exacts: list[Fraction], residual: int) -> tuple[list[int], int]:
    """The posted steps of each line of a part, and the residual after it."""
    total = sum(exacts, Fraction(residual, UNIT))
    whole = half_even(total)
    floors = [x.numerator // x.denominator for x in exacts]
    missing = whole - sum(floors)
    fractions = [x - f for x, f in zip(exacts, floors)]
    # A surplus is taken from the smallest fractions. ASSUMED: among equal ones from the first.
    step = 1 if missing > 0 else -1
    order = sorted(range(len(exacts)), key=lambda i: (-step * fractions[i], i))
    for n in range(abs(missing)):
        floors[order[n % len(order)]] += step
    return floors, half_even((total - whole) * UNIT)


def decimals(currency: str) -> int:
    """The table in semantics 12."""
    if currency in FOUR_DECIMALS:
        return 4
    return 0 if currency in NO_DECIMALS else 3 if currency in THREE_DECIMALS else 2


def to_decimals(steps: Fraction | int, currency: str) -> int:
    unit = 10 ** (6 - decimals(currency))
    return half_even(Fraction(steps) / unit) * unit


def money(steps: int, currency: str) -> str:
    sign = "-" if steps < 0 else ""
    return f"{sign}{abs(steps) // STEP}.{abs(steps) % STEP:06} {currency}"


def receivable(legs: list, payer: int) -> int:
    return sum(amount for account, amount in legs if account == (RECEIVABLE, payer))


def books_something(legs: list) -> bool:
    return any(amount for _, amount in legs)


class Books:
    """Follows the entries of a tenant: checks each, and keeps what invoices and usage are compared with."""

    def __init__(self, payers: dict[Payer, tuple[int, int]], begin: int = 1 << 64) -> None:
        """`begin` is the first sequence of the range: all entries from there on are in the file."""
        self.payers = dict(payers)
        self.begin = begin
        self.by_record: list[Sealed] = []
        self.entries: dict[tuple[int, int], tuple] = {}  # legs, line (key, usage, exact), payer, original month
        self.corrected: set[tuple[int, int]] = set()
        self.unchecked: list[str] = []
        self.wrong: list[tuple[str, Wrong]] = []  # by currency

    def fail(self, r: Sealed, code: str, sentence: str, expected: Any = None, found: Any = None,
             line: Optional[LineKey] = None, entry: Optional[int] = None) -> None:
        """What is wrong is collected: the entries after it continue from what the record says."""
        where = f"record {r.sequence} ({r.name})" + (f", {line.words()}" if line else "")
        place = line_place(r.project, line) if line else (
            "record", str(r.sequence)) if entry is None else ("entry", f"entry-{r.sequence}-{entry}")
        self.wrong.append((r.body["currency"], Wrong(code, place, f"{where}: {sentence}", expected, found)))

    def follow(self, r: Sealed, prices: Prices) -> None:
        if r.kind not in (POSTED, CORRECTED, ADJUSTED, SHARED):
            return
        if r.project is None:
            return
        payer = (r.project, r.body["currency"])
        last, residual = self.payers.get(payer, (None, 0))
        if r.body["previous"] != last:
            self.fail(r, "broken_chain", f"the entry before it of project {payer[0]} in {payer[1]} is {last}, and it "
                      f"names {r.body['previous']}", str(last), str(r.body["previous"]))
        {POSTED: self.posting, CORRECTED: self.correction, ADJUSTED: self.adjustment, SHARED: self.share}[r.kind](
            r, payer, residual, prices)
        self.payers[payer] = (r.sequence, r.body.get("residual", residual))
        self.by_record.append(r)

    def posting(self, r: Sealed, payer: Payer, residual: int, prices: Prices) -> None:
        b, keys = r.body, [row[0] for row in r.body["lines"]]
        exacts = []
        for key, usage, exact, _ in b["lines"]:
            rate = prices.rate(key)
            if rate is None or self.price_currency(key, prices) != payer[1]:
                self.fail(r, "wrong_price", "it names a price that is in no list or of another currency", line=key)
            elif rate.numerator * usage * exact[1] != exact[0] * rate.denominator:
                self.fail(r, "wrong_cost", f"usage times price is {rate * usage} steps, and the exact amount is "
                          f"{Fraction(*exact)}", str(rate * usage), str(Fraction(*exact)), key)
            if key.hour % (3600 * 10**9) or month_of(key.hour) > b["month"]:
                self.fail(r, "wrong_hour", "it is not of a full hour of its month or of an earlier one", line=key)
            exacts.append(fraction(exact))
        if any(a >= b for a, b in zip(keys, keys[1:])):
            self.fail(r, "lines_not_sorted", "its lines are not in ascending order of their keys")
        amounts, left = round_part(exacts, residual)
        for i, (amount, (key, usage, exact, posted)) in enumerate(zip(amounts, b["lines"])):
            if amount != posted:
                self.fail(r, "wrong_rounding", f"{money(amount, payer[1])} follows from the exact amounts and the "
                          f"residual before, and {money(posted, payer[1])} was posted", amount, posted, key)
            revenue = (REVENUE if key.item[0] == 1 else REVENUE_OF_UNIT, key.item[1])
            legs = [((RECEIVABLE, payer[0]), posted), (revenue, -posted)]
            self.entries[r.sequence, i] = (legs, (key, usage, exact), payer, month_of(key.hour))
        if left != b["residual"]:
            self.fail(r, "wrong_residual", "another residual follows from its lines", left, b["residual"])

    @staticmethod
    def price_currency(key: LineKey, prices: Prices) -> str:
        if key.item[0] == 2:
            return prices.common.prices[key.price][0]["currency"]
        return prices.currency(None if key.price < 0 else key.price)

    def correction(self, r: Sealed, payer: Payer, residual: int, _prices: Prices) -> None:
        b = r.body
        for what in ("reversal", "replacement"):
            if sum(amount for _, amount in b[what]):
                self.fail(r, "not_balanced", f"the legs of its {what} do not sum to zero", entry=what == "replacement")
        known = self.entries.get(b["corrects"])
        if b["corrects"] in self.corrected:
            self.fail(r, "corrected_twice", f"entry {b['corrects'][0]}-{b['corrects'][1]} was corrected before", entry=0)
        if known is None and b["corrects"][0] >= self.begin:
            self.fail(r, "wrong_correction", "the entry that it corrects should be in the file and is not", entry=0)
        elif known is None:
            self.unchecked.append(f"record {r.sequence} corrects entry {b['corrects'][0]}-{b['corrects'][1]}, which is "
                                  "not in this file: that it reverses what was posted is not proved")
        else:
            legs, line, of, original = known
            if b["original"] != original:
                self.fail(r, "wrong_month", "its original month is not that of the entry", str(original), str(b["original"]),
                          entry=0)
            if of != payer:
                self.fail(r, "wrong_correction", "it corrects an entry of another payer", of, payer, entry=0)
            reversed_legs = [(account, -amount) for account, amount in legs]
            if sorted(reversed_legs) != sorted(b["reversal"]):
                self.fail(r, "wrong_correction", "it does not reverse the entry that it names", reversed_legs,
                          b["reversal"], entry=0)
            if line != b["line"]:
                self.fail(r, "wrong_correction", "it names another line than that of the entry", str(line),
                          str(b["line"]), entry=0)
        self.corrected.add(b["corrects"])
        exact = fraction(b["line"][2]) if b["line"] else Fraction(-receivable(b["reversal"], payer[0]))
        left = Fraction(residual, UNIT) - exact - receivable(b["reversal"], payer[0])
        rounding = half_even(left) if abs(left) > Fraction(1, 2) else 0
        if b["rounding"] != rounding:
            self.fail(r, "wrong_rounding", "another rounding follows from the residual", rounding, b["rounding"],
                      entry=2)
        left = half_even((left - rounding) * UNIT)
        if left != b["residual"]:
            self.fail(r, "wrong_residual", "another residual follows from it", left, b["residual"])
        negated = b["line"] and (b["line"][0], -b["line"][1], (-b["line"][2][0], b["line"][2][1]))
        if books_something(b["reversal"]) or (b["line"] and b["line"][1]):  # a reversal can be corrected, too
            self.entries[r.sequence, 0] = (b["reversal"], negated, payer, b["original"])
        if books_something(b["replacement"]):
            total = receivable(b["replacement"], payer[0])
            line = b["line"] and (b["line"][0], b["line"][1], (total, 1))
            self.entries[r.sequence, 1] = (b["replacement"], line, payer, b["original"])

    def adjustment(self, r: Sealed, payer: Payer, _residual: int, _prices: Prices) -> None:
        if sum(amount for _, amount in r.body["legs"]):
            self.fail(r, "not_balanced", "its legs do not sum to zero", entry=0)
        self.entries[r.sequence, 0] = (r.body["legs"], None, payer, r.body["original"])
        self.unchecked.append(f"record {r.sequence} was booked by hand: {r.body['reason']!r}")

    def share(self, r: Sealed, payer: Payer, _residual: int, _prices: Prices) -> None:
        """Its amount is judged with the other shares of its app instance. Like any entry it can be corrected."""
        b = r.body
        other = (OPERATOR_LOSS, ()) if b["method"] == NOT_BILLABLE else (SHARED_RUNTIME, b["instance"])
        legs = [((RECEIVABLE, payer[0]), b["booked"]), (other, -b["booked"])]
        self.entries[r.sequence, 0] = (legs, None, payer, b["month"])

    def posted(self, months: Container[int], window: tuple[int, int]) -> Usage:
        """Usage that settlements posted into these months for hours of the window."""
        out: Usage = defaultdict(int)
        for r in self.by_record:
            if r.kind == POSTED and r.body["month"] in months:
                for key, usage, _, _ in r.body["lines"]:
                    if window[0] <= key.hour < window[1]:
                        out[(r.project, r.body["currency"]), key] += usage
        return out

    def pools(self, month: int, currency: str) -> dict[tuple[int, int], int]:
        """What control planes cost in a month, by app instance and payer."""
        out: dict[tuple[int, int], int] = defaultdict(int)
        for r in self.by_record:
            b = r.body
            if b["currency"] != currency or b["month"] != month:
                continue
            if r.kind == POSTED:
                for key, _, _, posted in b["lines"]:
                    if in_pool(key, month):
                        out[key.instance, r.project] += posted
            elif r.kind == CORRECTED and b["line"] and in_pool(b["line"][0], month):
                amount = receivable(b["reversal"] + b["replacement"], r.project) + b["rounding"]
                out[b["line"][0].instance, r.project] += amount
        return out


def in_pool(key: LineKey, month: int) -> bool:
    return key.control and key.instance >= 0 and month_of(key.hour) == month


# ---------------------------------------------------------------- the invoice

LinesKey = tuple  # month, project, adjustment, holder, pool, item, priority, app instance, control plane


def order(key: LinesKey) -> tuple:
    """Ascending; what is absent comes first."""
    return tuple((0, 0) if x is None else (1, x) for x in key)


def encode_lines(lines: dict[LinesKey, tuple[int, int]]) -> bytes:
    """As the journal format says under "Lines of an invoice"."""
    out = []
    for key in sorted(lines, key=order):
        month, project, adjusted, holder, pool, item, priority, instance, control = key
        usage, amount = lines[key]
        out.append(varint(month) + varint(project) + bytes([adjusted]) + varint(holder) + some(pool, varint)
                   + some(item, lambda i: bytes([i[0]]) + varint(i[1])) + some(priority, lambda p: bytes([p]))
                   + some(instance, varint) + bytes([control]) + signed_bytes(usage) + signed_bytes(amount))
    return b"".join(out)


class Sums:
    """What the entries of one month and currency come to: lines, projects and tax rates."""

    def __init__(self) -> None:
        self.lines: dict[LinesKey, tuple[int, int]] = {}
        self.projects: dict[int, int] = defaultdict(int)
        self.months: dict[int, int] = defaultdict(int)  # by month of usage

    def add(self, key: LinesKey, usage: int, amount: int) -> None:
        before = self.lines.get(key, (0, 0))
        self.lines[key] = (before[0] + usage, before[1] + amount)
        self.projects[key[1]] += amount
        self.months[key[0]] += amount


def line_of(key: LineKey, payer: int, adjusted: bool) -> LinesKey:
    return (month_of(key.hour), payer, adjusted, key.project, key.pool, key.item, key.priority,
            None if key.instance < 0 else key.instance, key.control)


def by_hand(month: int, payer: int) -> LinesKey:
    return (month, payer, True, payer, None, None, None, None, False)


def sums_of(records: Iterable[Sealed], month: int, currency: str) -> Sums:
    sums = Sums()
    for r in records:
        b, payer = r.body, r.project
        if b["month"] != month or b["currency"] != currency:
            continue
        if r.kind == POSTED:
            for key, usage, _, posted in b["lines"]:
                sums.add(line_of(key, payer, False), usage, posted)
        elif r.kind == CORRECTED:
            amount = receivable(b["reversal"] + b["replacement"], payer) + b["rounding"]
            if b["line"]:
                usage = b["line"][1] * (books_something(b["replacement"]) - 1)
                sums.add(line_of(b["line"][0], payer, True), usage, amount)
            else:
                sums.add(by_hand(b["original"], payer), 0, amount)
        elif r.kind == ADJUSTED:
            sums.add(by_hand(b["original"], payer), 0, receivable(b["legs"], payer))
        elif b["booked"]:
            sums.add((month, payer, False, payer, None, None, None, b["instance"], True), 0, b["booked"])
    sums.lines = {key: row for key, row in sums.lines.items() if row != (0, 0)}  # what cancels out is no line
    return sums


def rate_text(rate: int) -> str:
    """A rate in billionths as a plain decimal."""
    return f"{rate // 10**9}.{rate % 10**9:09}".rstrip("0").rstrip(".")


def tax_rate(rates: dict[int, int], month: int) -> int:
    months = sorted(rates)
    i = bisect_right(months, month)
    return rates[months[i - 1]] if i else 0


def check_invoice(r: Sealed, sums: Sums, rates: dict[int, int]) -> list[Wrong]:
    """Sums by project, lines and their hash, net and tax by rate, total and series."""
    b, currency = r.body, r.body["currency"]

    wrong: list[Wrong] = []

    def fail(code: str, place: tuple[str, str], what: str, expected: Any, found: Any) -> None:
        wrong.append(Wrong(code, place, f"{what} of the invoice: {expected} follows from the postings, and it says "
                           f"{found}", expected, found))

    projects = dict(b["projects"])
    listed = [project for project, amount in b["projects"] if amount]
    if listed != sorted(projects):
        fail("wrong_projects", ("invoice", "projects"), "projects", sorted(projects), listed)
    for project in sorted({*projects, *sums.projects}):
        if projects.get(project, 0) != sums.projects.get(project, 0):
            fail("wrong_project_sum", ("project", str(project)), f"sum of project {project}", sums.projects.get(project, 0), projects.get(project, 0))
    posted: dict[int, int] = defaultdict(int)
    for month, amount in sums.months.items():
        posted[tax_rate(rates, month)] += amount
    found = {rate: rest for rate, *rest in b["taxes"]}
    if len(found) != len(b["taxes"]):
        fail("wrong_tax", ("invoice", "taxes"), "tax rates", "each rate once", [row[0] for row in b["taxes"]])
    for rate in sorted({*posted, *found}):
        net = to_decimals(posted.get(rate, 0), currency)
        tax = to_decimals(Fraction(net * rate, 10**9), currency)
        for what, code, expected, i in (("posted", "wrong_tax_base", posted.get(rate, 0), 0),
                                        ("net", "wrong_net", net, 1), ("tax", "wrong_tax", tax, 2)):
            got = found[rate][i] if rate in found else 0
            if got != expected:
                fail(code, ("tax", rate_text(rate)), f"{what} at the tax rate {rate_text(rate)}", expected, got)
    nets = {rate: to_decimals(n, currency) for rate, n in posted.items()}
    total = sum(net + to_decimals(Fraction(net * rate, 10**9), currency) for rate, net in nets.items())
    if b["total"] != total:
        fail("wrong_total", ("invoice", "total"), "total", total, b["total"])
    if (sum(nets.values()) < 0) != (b["number"][0] == 2):
        fail("wrong_series", ("invoice", "number"), "series", "a credit note if the net is negative", b["number"])
    if b["lines"] != len(sums.lines):
        fail("wrong_lines", ("invoice", "lines"), "number of lines", len(sums.lines), b["lines"])
    digest = sha256(encode_lines(sums.lines))
    if digest != b["lines_hash"]:
        fail("wrong_lines", ("invoice", "lines"), "hash of the lines", digest.hex(), b["lines_hash"].hex())
    return wrong
