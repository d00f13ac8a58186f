"""Records as they lie in a proof file: the kinds of the ledger, of app runtimes and of statements.

Written from docs/reference/journal-format.md. The kinds below 140 are those of `verify.py`; their bodies are tuples in
the order of the page. The kinds from 140 on are dictionaries with the names that the page gives to their parts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from math import gcd
from typing import Any, Callable, Optional

import verify as v
from verify import Malformed, Reader, option, seq

STEP = 10**6  # steps in one unit of a currency
RESIDUAL = 10**30  # residuals are kept to 10^-30 of the currency
HALF_STEP = RESIDUAL // STEP // 2
NO_POOL = 2**32 - 1  # the pool of a line of a usage unit


def signed(r: Reader) -> int:
    word = r.varint(bits=128)
    if word == 1:
        raise Malformed("negative zero")
    return -(word >> 1) if word & 1 else word >> 1


def bounded(most: int) -> Callable[[Reader], int]:
    def parse(r: Reader) -> int:
        value = signed(r)
        if abs(value) > most:
            raise Malformed(f"{value} is out of bounds")
        return value
    return parse


amount, usage, balance = bounded(2**110), bounded(2**120 - 1), bounded(2**122)


def residual(r: Reader) -> int:
    value = signed(r)
    if abs(value) > HALF_STEP:
        raise Malformed("residual above half a step")
    return value


def big_number(r: Reader) -> int:
    """As many bytes as said, the most significant first and not zero; no bytes are zero."""
    raw = r.take(r.count(0, 128, "bytes of a number"))
    if raw[:1] == b"\0":
        raise Malformed("number with a leading zero byte")
    return int.from_bytes(raw, "big")


def exact(r: Reader) -> tuple[int, int]:
    """An exact fraction in lowest terms, as numerator (signed) and denominator."""
    negative, numerator, denominator = r.bool(), big_number(r), big_number(r)
    if denominator == 0 or gcd(numerator, denominator) != 1 or negative and numerator == 0:
        raise Malformed(f"exact fraction {numerator}/{denominator}")
    return (-numerator if negative else numerator), denominator


def month(r: Reader) -> int:
    number = r.varint(bits=32)
    if not 1970 * 12 <= number < 2554 * 12:
        raise Malformed(f"month {number}")
    return number


def currency(r: Reader) -> str:
    return v.CURRENCY(r).decode()


def priority(r: Reader) -> int:
    return v.PRIORITY(r)[0]


def code(what: str, highest: int) -> Callable[[Reader], int]:
    parse = v.enum(what, highest)
    return lambda r: parse(r)[0]


def rows(p: Callable, most: int = 4096) -> Callable:
    return lambda r: [p(r) for _ in range(r.count(0, most, "items"))]


def rising_units(r: Reader) -> list[int]:
    units = rows(v.V64, 64)(r)
    if any(a >= b for a, b in zip(units, units[1:])):
        raise Malformed("units that do not rise")
    return units


@dataclass(frozen=True, order=True)
class LineKey:
    """What the usage of one posted line has in common, besides payer and currency."""
    hour: int
    project: int  # that holds it; the payer is in the head
    pool: int
    item: tuple[int, int]  # 1 and the class, or 2 and the usage unit
    priority: int
    priced: int  # the priority by whose price it is charged
    tag: str  # "" where there is none, for a text is never empty
    instance: int  # -1 where there is none
    attachment: int
    control: bool
    price: int  # rate card or unit price

    def words(self) -> str:
        what = f"class {self.item[1]} in pool {self.pool}" if self.item[0] == 1 else f"usage unit {self.item[1]}"
        extra = [f"project {self.project}", what, f"priority {self.priority}"]
        extra += [f"priced as {self.priced}"] if self.priced != self.priority else []
        extra += [f"tag {self.tag!r}"] if self.tag else []
        extra += [f"app instance {self.instance}"] if self.instance >= 0 else []
        extra += [f"attachment {self.attachment}"] if self.attachment >= 0 else []
        extra += ["control plane"] if self.control else []
        extra += [f"price {self.price}"] if self.price >= 0 else []
        return f"hour {instant_text(self.hour)}: " + ", ".join(extra)


def absent(p: Callable, none: Any) -> Callable:
    return lambda r: p(r) if r.bool() else none


def line_key(r: Reader) -> LineKey:
    hour, project, pool, tag_of_item = r.instant(), v.V32(r), v.V32(r), r.byte()
    if tag_of_item not in (1, 2):
        raise Malformed(f"item of {tag_of_item}")
    item = (tag_of_item, v.V16(r) if tag_of_item == 1 else r.varint())
    if (tag_of_item == 2) != (pool == NO_POOL):
        raise Malformed("a usage unit in a pool, or a class in none")
    number = absent(v.V64, -1)
    return LineKey(hour, project, pool, item, priority(r), priority(r), absent(v.TEXT, "")(r), number(r), number(r),
                   r.bool(), number(r))


def posted_line(r: Reader) -> tuple:
    """Key, usage, exact amount and posted steps."""
    return line_key(r), usage(r), exact(r), amount(r)


ACCOUNTS = {i: v.seq() for i in (5, 6, 7, 8, 11)} | {i: v.V64 for i in (1, 2, 3, 4, 9, 10, 12, 13)}
ACCOUNT = v.choice("account", ACCOUNTS)
LEGS = rows(lambda r: (ACCOUNT(r), amount(r)))
ENTRY = seq(v.V64, v.V16)
NUMBER = lambda r: (code("series", 2)(r), r.varint())  # noqa: E731


def fields(*pairs: tuple[str, Callable]) -> Callable[[Reader], dict]:
    return lambda r: {name: parse(r) for name, parse in pairs}


def merged(first: Callable, second: Callable) -> Callable:
    return lambda r: first(r) | second(r)


def address(r: Reader) -> str:
    raw = r.take(r.count(1, 2048, "bytes of an address"))
    if any(not 0x21 <= byte <= 0x7e for byte in raw):
        raise v.Malformed("an address with characters that are not visible ASCII")
    text = raw.decode("ascii")
    scheme, _, rest = text.partition("://")
    authority = re.split("[/?#]", rest, maxsplit=1)[0]
    if scheme not in ("http", "https") or not authority or authority.startswith(":") or "@" in authority:
        raise v.Malformed("not an address")
    return text


def wide(r: Reader) -> int:
    return r.varint(bits=128)


REPORT = fields(
    ("reporter", option(v.TENANT)), ("source", v.TEXT), ("id", v.TEXT), ("instance", v.V64), ("unit", v.V64),
    ("quantity", v.AMOUNT), ("from", v.INSTANT), ("to", v.INSTANT), ("correlation", lambda r: r.take(16)), ("control", v.BOOL),
    ("attachment", option(v.V64)), ("allocation", option(v.V64)), ("supersedes", option(v.TEXT)))
REPLACED = fields(
    ("sequence", v.V64), ("project", v.PROJECT), ("quantity", v.AMOUNT), ("from", v.INSTANT), ("to", v.INSTANT),
    ("control", v.BOOL), ("attachment", option(v.V64)), ("charge", code("charge", 2)))
LIMITED = (("project", option(v.PROJECT)), ("instance", option(v.V64)), ("unit", v.V64))
POLICY_OF = (("app", v.V64), ("tenant", option(v.TENANT)), ("instance", option(v.V64)))
UNITS = option(rising_units)
SHARING = v.choice("method", {
    1: seq(), 2: seq(), 3: seq(), 4: v.V64, 5: v.V64, 6: rows(seq(v.PROJECT, v.V64)),
    7: seq(rows(seq(v.TEXT, v.V64)), rows(seq(v.PROJECT, v.V64)), option(v.V64))})

LEDGER_KINDS: dict[int, tuple[str, Callable]] = {
    140: ("ledger.opened", fields(("from", v.INSTANT))),
    141: ("ledger.posted", fields(
        ("currency", currency), ("month", month), ("through", v.INSTANT), ("complete", v.BOOL), ("as_of", v.V64),
        ("previous", option(v.V64)), ("lines", rows(posted_line)), ("residual", residual))),
    142: ("ledger.hour_settled", fields(("through", v.INSTANT), ("as_of", v.V64))),
    143: ("ledger.corrected", fields(
        ("currency", currency), ("month", month), ("original", month), ("corrects", ENTRY),
        ("previous", option(v.V64)), ("line", option(seq(line_key, usage, exact))), ("reversal", LEGS),
        ("replacement", LEGS), ("rounding", amount), ("residual", residual), ("reason", v.TEXT))),
    144: ("ledger.adjusted", fields(
        ("currency", currency), ("month", month), ("original", month), ("previous", option(v.V64)), ("legs", LEGS),
        ("reason", v.TEXT))),
    145: ("ledger.disputed", fields(("entry", ENTRY), ("open", v.BOOL), ("reason", v.TEXT))),
    150: ("period.closing", fields(("month", month))),
    151: ("invoice.issued", fields(
        ("number", NUMBER), ("month", month), ("currency", currency), ("projects", rows(seq(v.PROJECT, amount))),
        ("taxes", rows(seq(v.V64, amount, amount, amount))), ("total", amount), ("lines", v.V64),
        ("lines_hash", v.KEY), ("due", v.INSTANT))),
    152: ("period.closed", fields(
        ("month", month), ("invoices", v.V64), ("credit_notes", v.V64), ("added", v.added({1: v.V64})))),
    153: ("payment.recorded", fields(
        ("currency", currency), ("amount", amount), ("invoice", option(NUMBER)), ("reference", v.TEXT),
        ("received", v.INSTANT))),
    154: ("tax_rate.put", fields(("tenant", v.TENANT), ("from", month), ("rate", v.V64))),
    155: ("prepaid.topped_up", fields(
        ("currency", currency), ("credit", v.V64), ("amount", amount), ("priority", v.V64),
        ("expires", option(v.INSTANT)), ("source", code("source", 2)), ("reference", v.TEXT))),
    156: ("prepaid.policy_put", fields(
        ("currency", currency), ("low", amount), ("window", v.SPAN), ("when_low", code("action", 4)),
        ("when_pending", code("action", 4)), ("when_depleted", code("action", 4)), ("grace", option(v.SPAN)))),
    157: ("prepaid.lapsed", fields(("currency", currency), ("credit", v.V64), ("amount", amount))),
    158: ("prepaid.changed", fields(
        ("currency", currency), ("from", code("state", 4)), ("to", code("state", 4)), ("balance", balance),
        ("action", code("action", 4)))),
    159: ("prepaid.applied", fields(
        ("currency", currency), ("invoice", NUMBER), ("month", month), ("amount", amount), ("credited", amount),
        ("uncovered", amount))),
    160: ("usage_unit.put", fields(("unit", v.V64), ("name", v.TEXT), ("measure", code("measure", 2)))),
    161: ("unit_price.put", fields(
        ("number", v.V64), ("unit", v.V64), ("app", option(v.V64)), ("currency", currency), ("price", v.V64),
        ("from", v.INSTANT))),
    162: ("app_type.put", fields(
        ("app", v.V64), ("slug", v.TEXT), ("origin", code("origin", 2)), ("units", rising_units))),
    163: ("app_type.deleted", fields(("app", v.V64))),
    164: ("app_instance.put", fields(
        ("instance", v.V64), ("project", v.PROJECT), ("name", v.TEXT), ("app", v.V64), ("mode", code("mode", 2)),
        ("scope", code("scope", 3)), ("backend", code("backend", 5)))),
    165: ("app_instance.deleted", fields(("instance", v.V64))),
    166: ("attachment.made", fields(
        ("attachment", v.V64), ("instance", v.V64), ("source", v.PROJECT), ("allocation", option(v.V64)))),
    167: ("attachment.ended", fields(("attachment", v.V64))),
    168: ("usage.recorded", merged(REPORT, fields(
        ("charge", code("charge", 2)), ("no_submitter", v.BOOL), ("replaced", option(REPLACED)),
        ("added", v.added({1: v.PROJECT, 2: v.PROJECT}))))),
    169: ("usage.refused", merged(REPORT, fields(
        ("limited", fields(*LIMITED)), ("month", month), ("used", v.AMOUNT), ("hard", v.AMOUNT)))),
    170: ("entitlement.put", fields(*LIMITED, ("soft", option(v.AMOUNT)), ("hard", option(v.AMOUNT)))),
    171: ("entitlement.deleted", fields(*LIMITED)),
    172: ("entitlement.warned", fields(*LIMITED, ("month", month), ("used", v.AMOUNT), ("soft", v.AMOUNT))),
    173: ("app_policy.put", fields(
        *POLICY_OF, ("version", v.V64), ("units", UNITS), ("attribution", option(code("attribution", 2))),
        ("billed_work", UNITS))),
    174: ("sharing.put", fields(
        *POLICY_OF, ("version", v.V64), ("billable", option(v.BOOL)), ("distributable", option(v.BOOL)),
        ("sharing", option(seq(SHARING, v.BOOL))))),
    175: ("ledger.shared", fields(
        ("instance", v.V64), ("owner", v.PROJECT), ("month", month), ("currency", currency),
        ("previous", option(v.V64)), ("policy", fields(*POLICY_OF)), ("version", v.V64), ("method", code("method", 8)),
        ("unit", option(v.V64)), ("tier", option(v.TEXT)), ("weight", wide), ("weights", wide), ("pool", amount),
        ("share", amount), ("booked", amount))),
    176: ("period.stated", fields(
        ("month", month), ("from", v.V64), ("border", v.V64), ("cut", v.V64), ("own_count", v.V64),
        ("own_root", v.KEY), ("common_count", v.V64), ("common_root", v.KEY), ("own_start", v.KEY),
        ("own_border", v.KEY), ("common_start", v.KEY), ("common_border", v.KEY), ("nodes", v.KEY))),
    177: ("sink.put", fields(
        ("sink", v.V32), ("tenant", option(v.TENANT)), ("name", v.TEXT), ("address", address),
        ("events", rows(v.TEXT)), ("signature", code("signature", 2)))),
    178: ("sink.deleted", fields(("sink", v.V32))),
    179: ("sink.disabled", fields(("sink", v.V32), ("cause", code("cause", 2)))),
    180: ("accounting.reconciled", fields(
        ("sink", v.V32), ("since", v.INSTANT), ("until", v.INSTANT), ("due", v.V64), ("acknowledged", v.V64),
        ("pending", v.V64), ("sent", v.V64), ("failed", v.V64))),
}
KINDS = v.KINDS | LEDGER_KINDS


@dataclass
class Sealed:
    """A record of the file, decoded, with its hash and the bytes of its body."""
    sequence: int
    stamp: int
    kind: int
    effective: int
    parts: dict[int, Any]
    body: Any  # None for an unknown kind
    raw_body: bytes
    hash: bytes

    @property
    def tenant(self) -> Optional[int]:
        return self.parts.get(1)

    @property
    def project(self) -> Optional[int]:
        return self.parts.get(2)

    @property
    def name(self) -> str:
        return KINDS[self.kind][0] if self.kind in KINDS else f"kind {self.kind}"


HEAD = [v.SPAN, v.TENANT, v.PROJECT, v.USER, v.TOKEN, v.REASON,
        lambda q: (option(v.TENANT)(q), q.take(q.count(1, 64, "bytes of idempotency key")), q.take(16)),
        v.TEXT, v.TEXT, v.TEXT, v.items(v.KEY, 1, 2), seq()]


def decode(hashed: bytes) -> Sealed:
    """A record from all its hashed bytes, those of the link included."""
    r = Reader(hashed)
    r.pos = 32
    sequence, stamp, kind, bits = r.varint(), r.instant(), r.varint(bits=32), r.varint()
    if bits >> 12:
        raise Malformed(f"optional parts {bits:#x} above bit 11")
    parts = {i: HEAD[i](r) for i in range(12) if bits >> i & 1} if bits else {}
    before = parts.get(0, 0)
    if 0 in parts and not 0 < before <= stamp:
        raise Malformed("effective instant that is the stamp, or before 1970")
    start, body = r.pos, None
    if kind in KINDS:
        body = KINDS[kind][1](r)
        if r.pos != len(hashed):
            raise Malformed(f"{len(hashed) - r.pos} bytes left over after {KINDS[kind][0]}")
    return Sealed(sequence, stamp, kind, stamp - before, parts, body, hashed[start:], v.sha256(hashed))


def fraction(pair: tuple[int, int]) -> Fraction:
    return Fraction(*pair)


def instant_text(ns: int) -> str:
    """An instant in UTC, to the second where it is whole."""
    seconds, rest = divmod(ns, 10**9)
    days, left = divmod(seconds, 86_400)
    year, mon, day = civil(days)
    text = f"{year:04}-{mon:02}-{day:02}T{left // 3600:02}:{left // 60 % 60:02}:{left % 60:02}"
    return text + (f".{rest:09}".rstrip("0") if rest else "") + "Z"


def civil(days: int) -> tuple[int, int, int]:
    """Year, month and day of a number of days since 1970."""
    era, day_of_era = divmod(days + 719_468, 146_097)
    year = (day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year + year // 4 - year // 100)
    shifted = (5 * day_of_year + 2) // 153
    mon = shifted + 3 if shifted < 10 else shifted - 9
    return year + era * 400 + (mon <= 2), mon, day_of_year - (153 * shifted + 2) // 5 + 1


def days_before_month(number: int) -> int:
    """Days from 1970-01-01 to the first day of a month that is counted as year × 12 + month - 1."""
    year, mon = divmod(number, 12)
    mon += 1
    year -= mon <= 2
    era, year_of_era = divmod(year, 400)
    day_of_year = (153 * (mon - 3 if mon > 2 else mon + 9) + 2) // 5
    return era * 146_097 + year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year - 719_468


DAY = 86_400 * 10**9


def month_start(number: int) -> int:
    return days_before_month(number) * DAY


def month_of(instant: int) -> int:
    year, mon, _ = civil(instant // DAY)
    return year * 12 + mon - 1


def month_text(number: int) -> str:
    return f"{number // 12:04}-{number % 12 + 1:02}"
