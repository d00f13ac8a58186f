#!/usr/bin/env python3
"""A second, independent verifier of invoices: it checks proof files of version 1 without the daemon.

    invoice.py FILE --trust TRUST [--with FILE]... [--json]

Exit status: 0 every line follows from the records, 3 it does not, 2 the call or the trust file is unusable.

Written from the documents alone (docs/reference/invoice-proof.md, journal-format.md, semantics.md). Where they leave a
choice, "ASSUMED" says what was taken. The parts: `proof_file.py` reads the file and proves that its records are in the
journal, `lists.py` folds records into the lists, `usage.py` computes what was used, `ledger.py` follows the entries and
computes the invoice. This file decides which records belong, and holds everything against the statement.
"""

from __future__ import annotations

import argparse
import copy
import json
import sys
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Iterable, Optional

import verify as v
import sharing
from ledger import SHARED, Books, Wrong, check_invoice, line_place, money, sums_of, to_decimals
from lists import Common, Nodes, Tenant, is_common, owner
from proof_file import (ProofFile, check_cosigned, check_pinned, check_root, decode_records, is_signed, parse,
                        proved_root, read_checkpoint, rotated_keys)
from records import KINDS, LineKey, Sealed, month_of, month_start, month_text
from usage import BUILT_IN_UNITS, Payer, Prices, TooManyLines, Usage, usage_of
from verify import Frontier, Malformed, UsageError, sha256

CLOSING, ISSUED, CLOSED_PERIOD, STATED, APPLIED, USAGE = 150, 151, 152, 176, 159, 168
CLASS, INSTANCE_DELETED = 10, 165
NAME_THEIR_TENANT = {*range(40, 50), 72, 78, 79, 80, 90, 91, 115, 117} - {41}  # about leases, claims, ends of allocations
QUANTA_PER_UNIT = 1 << 32
LAST_STAMP = 18 * 10**18
USAGE_SPAN = 366 * 86_400 * 10**9
FOLLOWED_AFTER_CUT = {13, 15, 16, 164, 165, 170, 171, 154}  # names, app instances, limits, tax rates
ABOUT_NODES = (32, 33, 34, 35)  # drained, resumed, lost, returned
SERIES = {1: "INV", 2: "CN"}
ALWAYS_NOT_PROVED = [
    "that no record of the tenant is missing in the statement: a full verification of the journal shows that",
    "that nodes which the tenant claimed have the capacity, and evictions the cause, that the list states",
    "that what the records say is true"]


@dataclass
class Bill:
    """What a file says, once its records are proved to be in the journal."""
    file: ProofFile
    checkpoint: v.Checkpoint
    invoice: Sealed
    statement: Sealed
    start: Optional[tuple[Tenant, Common, Nodes]] = None
    failures: list[Wrong] = field(default_factory=list)
    not_proved: list[str] = field(default_factory=list)
    applied: list[Sealed] = field(default_factory=list)

    @property
    def tenant(self) -> int:
        return self.invoice.tenant

    @property
    def month(self) -> int:
        return self.invoice.body["month"]

    def wrong(self, code: str, kind: str, name: str | int, sentence: str, expected: Any = None,
              found: Any = None) -> None:
        self.failures.append(Wrong(code, (kind, str(name)), f"{kind} {name}: {sentence}", expected, found))


    def of_currency(self, currency: str, e: Wrong) -> None:
        """ASSUMED: what is wrong with entries of another currency is said, and does not make this invoice wrong."""
        if currency == self.invoice.body["currency"]:
            self.failures.append(e)
        else:
            self.not_proved.append(f"entries in {currency}, of which something is wrong: {e.sentence}")


def bad_file(name: str, why: str) -> Wrong:
    return Wrong("bad_file", ("file", name), f"the file is not a proof of version 1: {why}")


def one(records: Iterable[Sealed], what: str) -> Sealed:
    found = list(records)
    if len(found) != 1:
        raise bad_file("records", f"it has {len(found)} records that are {what}, not one")
    return found[0]


def open_file(data: bytes, trust: v.Trust) -> tuple[Bill, bool]:
    """Rules 1 to 3, in the order of the codes: form, checkpoint, signatures and the multiproof."""
    file = parse(data)
    checkpoint = read_checkpoint(file, trust)
    trusted = is_signed(checkpoint, trust.origin, trust.keys)
    decode_records(file.framed)
    root = proved_root(file, checkpoint)
    bill = read_bill(file, checkpoint)
    rotated = rotated_keys(file.framed, trust.keys)
    if not trusted and not any(is_signed(checkpoint, trust.origin, [key]) for key in reversed(rotated)):
        raise Wrong("unknown_key", ("file", "checkpoint"), "the checkpoint is not signed by a key of the trust file, nor by "
                    "one to which such a key was rotated")
    check_cosigned(checkpoint, trust)
    check_root(root, checkpoint)
    return bill, check_pinned(file, checkpoint, [*trust.keys, *rotated], trust)


def read_bill(file: ProofFile, checkpoint: v.Checkpoint) -> Bill:
    """Each record has its place, and the lists decode."""
    invoice = one((r for r in file.records if r.kind == ISSUED and r.body["number"] == file.number
                   and r.tenant is not None), "the invoice")
    month = invoice.body["month"]
    statement = one((r for r in file.records if r.kind == STATED and r.tenant == invoice.tenant
                     and r.body["month"] == month), "the statement")
    bill = Bill(file, checkpoint, invoice, statement)
    places = [place(bill, r) for r in file.records]
    for r, where in zip(file.records, places):
        if where is None:
            raise bad_file(f"record {r.sequence}", f"record {r.sequence} ({r.name}) has no place in it")
    for which, what in (("cut", "the cut of the month"), ("closed", "the end of the month")):
        if places.count(which) != 1:
            raise bad_file("records", f"{what} is not there once")
    s = statement.body
    if s["own_count"] + s["common_count"] < min(places.count("counted"), 1 << 64):
        raise bad_file("records", "it has more records of the month than the statement counts")
    lists = []
    for name, raw, read in (("common list", file.common, Common.parse), ("tenant's list", file.tenant, Tenant.parse),
                            ("claimed nodes", file.nodes, Nodes.parse)):
        try:
            lists.append(read(raw))
        except Malformed as e:
            raise bad_file(name, f"the {name}: {e}") from None
        if lists[-1].encode() != raw:
            raise bad_file(name, f"the {name} is not in its one form")
    specs = [*lists[0].classes.values(), *(r.body[1:] for r in file.records if r.kind == CLASS)]
    if any(not 1 <= spec[3] <= QUANTA_PER_UNIT for spec in specs):
        raise bad_file("classes", "a class without quanta, or with too many")
    bill.start = (lists[1], lists[0], lists[2])
    return bill


def place(bill: Bill, r: Sealed) -> Optional[str]:
    """What a record is in the file; None if it has no place there."""
    s = bill.statement.body
    if r.sequence < s["from"]:
        return None
    if r.sequence < s["cut"]:
        return "cut before" if r.kind == CLOSING and r.body["month"] == bill.month - 1 else "counted"
    if r.sequence == s["cut"]:
        return "cut" if r.kind == CLOSING and r.body["month"] == bill.month else None
    if r.sequence <= bill.invoice.sequence:
        return "later" if r.tenant == bill.tenant else None
    if r is bill.statement:
        return "statement"
    if r.kind == APPLIED:
        return "applied" if r.tenant == bill.tenant and r.body["invoice"] == bill.file.number else None
    return "closed" if r.kind == CLOSED_PERIOD and r.body["month"] == bill.month else None


def check_heads(bill: Bill) -> None:
    """The lists are those that the statement names."""
    s = bill.statement.body
    if bill.start[0].number != bill.tenant:
        bill.wrong("wrong_list", "list", "tenant at start", "it is that of another tenant", bill.tenant,
                   bill.start[0].number)
    for name, raw, hash_name in (("common at start", bill.file.common, "common_start"),
                                 ("tenant at start", bill.file.tenant, "own_start"),
                                 ("claimed nodes", bill.file.nodes, "nodes")):
        same_list(bill, name, raw, s[hash_name])


def same_list(bill: Bill, name: str, raw: bytes, stated: bytes) -> None:
    if sha256(raw) != stated:
        bill.wrong("wrong_list", "list", name, "it does not have the hash that the statement names", stated.hex(),
                   sha256(raw).hex())


class Fold:
    """Reads the records of a bill in order, and says which of them belong there."""

    def __init__(self, bill: Bill, tenant: Tenant, common: Common, nodes: Nodes) -> None:
        self.bill, self.tenant, self.common, self.nodes = bill, tenant, common, nodes
        self.reports: list[tuple[Sealed, Optional[int]]] = []
        self.reported: list[tuple[Sealed, bool]] = []  # and whether the ledger was open then
        self.decisions: dict[int, sharing.Decision] = {}
        self.work: Optional[sharing.Work] = None
        self.books = Books(tenant.payers, bill.statement.body["from"])
        self.priced: Optional[Prices] = None  # until a common record changes something
        self.own, self.shared = Frontier(), Frontier()
        self.last_stamp = 0
        self.broken = False  # a record contradicted those before it
        self.used: Optional[Usage] = None  # of all hours up to the end of the month, at its cut
        self.at_earlier_cut: Optional[Usage] = None  # the same at the cut of the month before

    def take(self, r: Sealed, in_range: bool) -> bool:
        """Reads a record up to the invoice; false if it is one of another tenant, after which nothing is believed."""
        if not self.broken and (r.stamp < self.last_stamp or r.stamp > LAST_STAMP):
            self.contradiction(r, "its stamp is before that of an earlier record, or centuries from now")
        self.last_stamp = r.stamp
        if is_common(r, self.common):
            if in_range:
                self.shared.append(r.hash)
                self.common.fold(r)
                self.tenant.common_changed(r)
                self.priced = None
            return True
        about_node = r.kind in ABOUT_NODES and r.body[0] in self.tenant.claims
        of = owner(r, {r.body[0]: self.tenant.number} if about_node else {})
        if of is None:
            if r.kind in NAME_THEIR_TENANT and not self.broken:
                self.contradiction(r, "it names no tenant, as records before rules version 4 do not")
            return True
        if of != self.tenant.number:
            self.bill.wrong("foreign_record", "record", r.sequence, f"{r.name} is one of tenant {of}")
            return False
        if in_range:
            self.own.append(r.hash)
        if not self.broken and (in_range or r.kind in FOLLOWED_AFTER_CUT):
            try:
                self.reported_usage(r)
                self.tenant.fold(r, self.nodes)
            except Malformed as e:
                self.contradiction(r, str(e))
        self.entry(r)
        return True

    def contradiction(self, r: Sealed, why: str) -> None:
        self.bill.wrong("unexpected_record", "record", r.sequence, why)
        self.broken = True

    def reported_usage(self, r: Sealed) -> None:
        if r.kind != USAGE:
            return
        b = r.body
        known = self.tenant.instances.get(b["instance"]) or self.common.instances.get(b["instance"])
        if known is None or r.project is None:
            raise Malformed("it reports usage of an unknown app instance, or without a project")
        for said in (b, *([b["replaced"]] if b["replaced"] else [])):
            if not said["from"] <= said["to"] < r.stamp or said["to"] - said["from"] > USAGE_SPAN:
                raise Malformed("it reports usage at times that cannot be")
        if b["unit"] not in BUILT_IN_UNITS and b["unit"] not in self.common.units:
            raise Malformed("it reports an unknown usage unit")
        self.reports.append((r, known[0]))
        self.reported.append((r, self.common.opened is not None))

    @property
    def prices(self) -> Prices:
        if self.priced is None:
            self.priced = Prices(self.common)
        return self.priced

    def usage(self, window: tuple[int, int]) -> Usage:
        try:
            return usage_of(self.tenant, self.common, self.reports, window)
        except TooManyLines:
            self.bill.wrong("too_many_lines", "invoice", "lines", "the lists and records make too many lines of usage")
            self.broken = True
            return {}
        except (KeyError, Malformed) as e:
            raise Wrong("unknown_price", ("file", "usage"), f"usage names something that is in no list: {e}") from None

    def entry(self, r: Sealed) -> None:
        self.books.follow(r, self.prices)
        self.drain()
        of = (self.bill.month, self.bill.invoice.body["currency"])
        if r.kind == SHARED and r.project is not None and (r.body["month"], r.body["currency"]) == of:
            self.share(r)

    def share(self, r: Sealed) -> None:
        if r.sequence < self.bill.statement.body["cut"]:
            self.bill.wrong("wrong_share", "entry", f"entry-{r.sequence}-0", "it comes before the cut of its month")
            return
        if self.work is None:
            self.work = sharing.work_of(self.reported, self.common, self.bill.month)
        instance = r.body["instance"]
        if instance not in self.decisions:
            self.decisions[instance] = sharing.decide(r, self.tenant, self.common, self.work)
        self.decisions[instance].records.append(r)

    def drain(self) -> None:
        for currency, e in self.books.wrong:
            self.bill.of_currency(currency, e)
        self.books.wrong.clear()


def replay(bill: Bill, fold: Fold) -> bool:
    """Rules 4 and 5: counts, roots, stamps, and the lists at the border. False if nothing can be computed after it."""
    s, start, end = bill.statement.body, month_start(bill.month), month_start(bill.month + 1)
    at_border = at_cut = False
    for r in [r for r in bill.file.records if r.sequence <= bill.invoice.sequence] + [None]:
        if not at_border and not fold.broken and (r is None or r.sequence >= s["border"]):
            at_border = border_lists(bill, fold)
        if not at_cut and (r is None or r.sequence >= s["cut"]):
            at_cut = check_sets(bill, fold)
            fold.used = {} if fold.broken else fold.usage((0, end))
        if r is None:
            break
        if r.stamp < start or (r.sequence >= s["border"]) != (r.stamp >= end):
            bill.wrong("wrong_stamp", "record", r.sequence, "its stamp lies on the wrong side of the border")
            return False
        if r.kind == CLOSING:
            if r.body["month"] == bill.month - 1 and not fold.broken:
                fold.at_earlier_cut = fold.usage((0, end))
            if (r.body["month"] == bill.month) != (r.sequence == s["cut"]):
                bill.wrong("wrong_cut", "record", r.sequence, "the statement names another record as the cut")
                return False
        if not fold.take(r, r.sequence < s["cut"]):
            return False
    return not fold.broken


def check_sets(bill: Bill, fold: Fold) -> bool:
    s = bill.statement.body
    for name, count, root, tree in (("tenant", s["own_count"], s["own_root"], fold.own),
                                    ("common", s["common_count"], s["common_root"], fold.shared)):
        if (tree.size, tree.root()) != (count, root):
            bill.wrong("wrong_count" if tree.size != count else "wrong_root", "records", name,
                       f"the statement has {count} records with the root {root.hex()}, and the file {tree.size} with "
                       f"{tree.root().hex()}", count, tree.size)
    return True


def border_lists(bill: Bill, fold: Fold) -> bool:
    same_list(bill, "common at border", fold.common.encode(), bill.statement.body["common_border"])
    same_list(bill, "tenant at border", fold.tenant.encode(), bill.statement.body["own_border"])
    return True


def check_earlier_cut(bill: Bill, fold: Fold) -> None:
    opened = fold.common.opened
    if fold.at_earlier_cut is None and opened is not None and month_of(opened) < bill.month:
        bill.wrong("wrong_records", "records", "cuts", "the cut of the month before is missing")


def check_usage(bill: Bill, fold: Fold) -> None:
    """Rule 6: what was posted in the month is what was used as of the cut, for earlier hours less what was used before.

    Leases and claims that were over before the range are not in the lists: where records change their usage, this needs
    the files of earlier months.
    """
    start, end = month_start(bill.month), month_start(bill.month + 1)
    used: Usage = defaultdict(int, fold.used or {})
    for (payer, key), amount in (fold.at_earlier_cut or {}).items():
        if key.hour < start:
            used[payer, key] -= amount
    posted = fold.books.posted([bill.month], (0, 1 << 64))
    tenant = fold.tenant
    unknown = tenant.unknown_leases or tenant.unknown_claims or any(at < start for at in tenant.last_seen)
    left = same_usage(bill, fold, used, posted, bool(unknown))
    if left:
        bill.not_proved.append(f"the usage of {left} lines of earlier months: give the files of those months")


def same_usage(bill: Bill, fold: Fold, used: Usage, posted: Usage, unknown: bool) -> int:
    """How many lines are not proved, because it is not known what was used before the range."""
    left = 0
    for payer, key in sorted({*used, *posted}):
        expected, found = used.get((payer, key), 0), posted.get((payer, key), 0)
        if expected == found:
            continue
        if unknown and key.item[0] == 1 and key.hour < month_start(bill.month):
            left += 1
            continue
        bill.of_currency(payer[1], Wrong(
            "wrong_usage", line_place(payer[0], key),
            f"project {payer[0]} in {payer[1]}, {key.words()}: {expected} was used as of the cut, and {found} was posted, "
            f"{cost_of(key, found - expected, payer, fold.prices)} too much", expected, found))
    return left


def cost_of(key: LineKey, usage: int, payer: Payer, prices: Prices) -> str:
    rate = prices.rate(key)
    return "an unknown amount" if rate is None else money(round(rate * usage), payer[1])


def check_bill(bill: Bill, fold: Fold) -> None:
    """Rule 7: the invoice follows from the entries of its month; and what of it was paid in advance."""
    b = bill.invoice.body
    entries = [r for r in fold.books.by_record if r.sequence < bill.invoice.sequence]
    check_shares(bill, fold)
    bill.failures += check_invoice(bill.invoice, sums_of(entries, bill.month, b["currency"]), fold.tenant.taxes)
    applied = [r for r in bill.file.records if r.kind == APPLIED and r.sequence > bill.invoice.sequence]
    for r in applied:
        if (r.body["currency"], r.body["month"]) != (b["currency"], bill.month):
            bill.wrong("wrong_prepaid", "record", r.sequence, "it is about another currency or month")
    if applied:
        bill.applied = applied
        check_prepaid(bill)
        bill.not_proved.append("how much prepaid credit was left")
    bill.not_proved += fold.books.unchecked


def check_shares(bill: Bill, fold: Fold) -> None:
    """Each share follows from the policy, the weights and the pool; and none is missing."""
    def differ(r: Optional[Sealed], what: str, expected: Any, found: Any) -> None:
        kind, name = ("invoice", "shares") if r is None else ("entry", f"entry-{r.sequence}-0")
        bill.wrong("wrong_share", kind, name, what, expected, found)

    pools = fold.books.pools(bill.month, bill.invoice.body["currency"])
    for instance, decision in sorted(fold.decisions.items()):
        sharing.check(decision, pools.get((instance, decision.owner), 0), differ)
        bill.not_proved += sharing.not_proved(decision, instance)
    cut, issued = bill.statement.body["cut"], bill.invoice.sequence
    deleted = {r.body["instance"] for r in bill.file.records
               if r.kind == INSTANCE_DELETED and cut < r.sequence < issued}
    for (instance, payer), pool in sorted(pools.items()):
        known = fold.tenant.instances.get(instance) or fold.common.instances.get(instance)
        if not pool or instance in fold.decisions or instance in deleted or not known or known[2] != payer:
            continue
        if sharing.rule_of(instance, fold.tenant, fold.common):
            differ(None, f"the cost of app instance {instance} was not shared", pool, "none")


def check_prepaid(bill: Bill) -> None:
    """Each credits the sum so far, rounded, less the same before it; the nets themselves if all is paid."""
    b, paid, before = bill.invoice.body, 0, 0
    for r in bill.applied:
        paid += r.body["amount"]
        everything = paid == sum(amount for _, amount in b["projects"])
        so_far = sum(row[2] for row in b["taxes"]) if everything else to_decimals(paid, b["currency"])
        if r.body["credited"] != so_far - before:
            bill.wrong("wrong_prepaid", "record", r.sequence, "what is credited is not what was paid, rounded",
                       so_far - before, r.body["credited"])
        before = so_far


def check_bill_alone(bill: Bill) -> Fold:
    fold = Fold(bill, *copy.deepcopy(bill.start))
    check_heads(bill)
    if unknown := {r.kind for r in bill.file.records} - KINDS.keys():
        bill.not_proved.append(f"what records of the unknown kinds {sorted(unknown)} mean")
    if not bill.failures and replay(bill, fold):
        check_earlier_cut(bill, fold)
        check_claimed(bill)
        check_usage(bill, fold)
        check_bill(bill, fold)
    return fold


def check_claimed(bill: Bill) -> None:
    """The list of claimed nodes has those of the claims in the range, and no others."""
    cut = bill.statement.body["cut"]
    claims = {(r.sequence, node) for r in bill.file.records if r.kind == 90 and r.sequence < cut for node in r.body[0]}
    if claims != set(bill.start[2].claimed):
        bill.wrong("wrong_list", "list", "claimed nodes", "it does not have the nodes of the claims in the range",
                   sorted(claims), sorted(bill.start[2].claimed))


def check_chain(bill: Bill, earlier: list[Bill]) -> None:
    """Files of earlier months: one hash for each sequence, and each month begins where the one before it ended."""
    hashes = {r.sequence: r.hash for r in bill.file.records}
    chain = [bill]
    for other in sorted(earlier, key=lambda b: -b.month):
        if other.tenant != bill.tenant:
            bill.wrong("wrong_chain", "file", "earlier", "a file given with it is that of another tenant", bill.tenant,
                       other.tenant)
            return
        if other.month > bill.month or other.file.number == bill.file.number:
            bill.wrong("wrong_chain", "file", "earlier", "a file given with it is not of an earlier month")
        for r in other.file.records:
            if hashes.setdefault(r.sequence, r.hash) != r.hash:
                bill.wrong("two_histories", "record", r.sequence, "the files have two records of this sequence")
                break
        if other.month == chain[-1].month - 1:
            chain_month(bill, other, chain[-1])
            chain.append(other)
        elif other.month != chain[-1].month:
            bill.not_proved.append(f"that {month_text(other.month)} and {month_text(chain[-1].month)} belong together: "
                                   "months between them are missing")
    if len(chain) > 1 and not bill.failures:
        check_together(bill, chain[::-1])


def chain_month(bill: Bill, before: Bill, after: Bill) -> None:
    a, b = before.statement.body, after.statement.body
    for what, end, begin in (("the border", "border", "from"), ("the tenant's list", "own_border", "own_start"),
                             ("the common list", "common_border", "common_start")):
        if a[end] != b[begin]:
            bill.wrong("wrong_chain", "months", "earlier", f"{what} at the end of {month_text(before.month)} is not that "
                       f"at the beginning of {month_text(after.month)}")


def check_together(bill: Bill, chain: list[Bill]) -> None:
    """All months in one: also changes of earlier months are what was used less what was posted before."""
    tenant, common, nodes = copy.deepcopy(chain[0].start)
    for other in chain[1:]:
        nodes.claimed |= other.start[2].claimed
        nodes.own_evictions += other.start[2].own_evictions
    scratch = Bill(bill.file, bill.checkpoint, bill.invoice, bill.statement, bill.start)
    fold = Fold(scratch, tenant, common, nodes)
    records = {r.sequence: r for b in chain for r in b.file.records}
    for sequence in sorted(records):
        if sequence <= bill.invoice.sequence:
            fold.take(records[sequence], sequence < bill.statement.body["cut"])
    bill.not_proved = [n for n in bill.not_proved if "of earlier months: give" not in n]
    window = (month_start(chain[0].month), month_start(bill.month + 1))
    posted = fold.books.posted(range(chain[0].month, bill.month + 1), window)
    used = fold.usage(window)
    if not fold.broken:
        same_usage(bill, fold, used, posted, False)
    bill.failures += scratch.failures


# ---------------------------------------------------------------- the report

def said(value: Any) -> Any:
    return value if isinstance(value, (int, str, type(None))) else str(value)


def difference(e: Wrong) -> Optional[int]:
    """By how much, if it is about a number. Amounts are whole steps."""
    numbers = isinstance(e.expected, int) and isinstance(e.found, int)
    return e.found - e.expected if numbers else None


def report_of(failures: list[Wrong], bill: Optional[Bill], not_proved: list[str], code: Optional[str] = None) -> dict:
    """`code` is why a file proves nothing, if it does."""
    out: dict[str, Any] = {
        "verdict": "no" if failures else "yes", "code": code or ("wrong" if failures else "proved"),
        "failures": [{"code": e.code, "place": list(e.place), "sentence": e.sentence, "expected": said(e.expected),
                      "found": said(e.found), "difference": difference(e)} for e in failures],
        "not_proved": not_proved}
    if bill is not None:
        b = bill.invoice.body
        paid = sum(r.body["credited"] for r in bill.applied)
        out |= {"invoice": f"{SERIES[b['number'][0]]}-{b['number'][1]:06}", "tenant": bill.tenant,
                "month": month_text(bill.month), "total": money(b["total"], b["currency"]),
                "prepaid": money(paid, b["currency"]), "records": len(bill.file.framed), "size": bill.checkpoint.size}
    return out


def verify_invoice(data: bytes, trust_text: str | bytes, earlier: Iterable[bytes] = ()) -> dict:
    """The whole judgement as one JSON-ready object. UsageError if the trust file cannot be used."""
    bill: Optional[Bill] = None
    not_proved = list(ALWAYS_NOT_PROVED)
    try:
        trust = v.parse_trust(trust_text.encode() if isinstance(trust_text, str) else trust_text, "given")
    except v.NoKey as e:
        none = Wrong("unknown_key", ("file", "checkpoint"), f"no signature can count: {e}")
        return report_of([none], None, not_proved, none.code)
    try:
        bill, pinned = open_file(data, trust)
        if not pinned:
            not_proved.append("that others see the same journal: the file does not lead to a pinned checkpoint")
        others = [open_file(raw, trust)[0] for raw in earlier]
    except Wrong as e:
        return report_of([e], None, not_proved, e.code)
    try:
        for each in (bill, *others):
            check_bill_alone(each)
        for other in others:
            bill.failures += other.failures
        if others:
            check_chain(bill, others)
    except Wrong as e:
        return report_of((bill.failures if bill else []) + [e], bill, not_proved + (bill.not_proved if bill else []))
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as e:
        # Records that decode and make no sense together, such as an entry without a project or a class of no quanta.
        senseless = Wrong("senseless", ("file", "records"), f"the records make no sense together: {type(e).__name__} {e}")
        return report_of((bill.failures if bill else []) + [senseless], bill, not_proved)
    return report_of(bill.failures, bill, not_proved + bill.not_proved)


def main(argv: Optional[list[str]] = None) -> int:
    p = argparse.ArgumentParser(description="Verify the proof file of an invoice (second, independent implementation).")
    p.add_argument("file", type=Path, metavar="FILE")
    p.add_argument("--trust", type=Path, required=True, metavar="TRUST")
    p.add_argument("--with", type=Path, action="append", default=[], dest="earlier", metavar="FILE")
    p.add_argument("--json", action="store_true")
    args = p.parse_args(argv)
    try:
        data, *earlier = [path.read_bytes() for path in (args.file, *args.earlier)]
        report = verify_invoice(data, args.trust.read_bytes(), earlier)
    except (UsageError, OSError) as e:
        print(f"invoice.py: {e}", file=sys.stderr)
        return 2
    if args.json:
        print(json.dumps(report, ensure_ascii=False))
    else:
        print(report["verdict"] + (": {invoice}, {month}, {total}".format(**report) if "invoice" in report else ""))
        for e in report["failures"]:
            print(f"  {e['code']}: {e['sentence']}")
        print("\n".join(["not proved:", *(f"  {n}" for n in report["not_proved"])]))
    return 0 if report["verdict"] == "yes" else 3


if __name__ == "__main__":
    sys.exit(main())
