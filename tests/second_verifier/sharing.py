"""Shares of what control planes cost: by which policy, with which weights, and how much.

Written from docs/reference/invoice-proof.md ("Shares") and docs/reference/semantics.md 13.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any, Callable, Iterable, Optional

from ledger import NOT_BILLABLE
from lists import Common, Scope, Tenant
from records import Sealed, month_of
from usage import BUILT_IN_UNITS, HOUR, PART, TIME, largest_remainders, spread

NONE, OWNER, EVEN, BY_USAGE, BY_QUOTA, FIXED, BY_TIER = range(1, 8)
Work = dict[tuple[int, int, int], int]  # app instance, project, unit: 10^-18 units
Differ = Callable[..., None]


def work_of(reports: Iterable[tuple[Sealed, bool]], common: Common, month: int) -> Work:
    """What projects used in a month. Each report comes with whether the ledger was open then."""
    work: Work = defaultdict(int)
    for r, is_open in reports:
        if not is_open:
            continue
        b = r.body
        for said, project, sign in ((b, r.project, 1), (b["replaced"], b["replaced"] and b["replaced"]["project"], -1)):
            if said is None or said["control"]:
                continue
            measure = BUILT_IN_UNITS.get(b["unit"]) or common.units[b["unit"]][0]["measure"]
            if measure != TIME or said["from"] == said["to"]:
                parts = [(said["to"] // HOUR * HOUR, said["quantity"] * PART)]
            else:
                parts = [(hour_end - 1, quantity) for _, _, hour_end, quantity in spread(said, [])]
            work[b["instance"], project, b["unit"]] += sign * sum(q for at, q in parts if month_of(at) == month)
    return work


@dataclass
class Rule:
    """The policy that decides."""
    scope: Scope
    version: int
    method: int
    value: Any  # what the method needs
    entries: bool

    @property
    def unit(self) -> Optional[int]:
        return self.value if self.method in (BY_USAGE, BY_QUOTA) else None


@dataclass
class Decision:
    """What is expected of the shares of one app instance, as of the first of them."""
    is_known: bool
    is_own: bool
    owner: int
    rule: Optional[Rule]
    weights: dict[int, tuple[int, Optional[str]]]  # by project: weight and tier
    total: Optional[int]  # the sum of the weights, where it is proved
    projects: set[int]
    records: list[Sealed]

    @property
    def owners_pool(self) -> bool:
        return self.owner in self.projects


def rule_of(instance: int, tenant: Tenant, common: Common) -> Optional[Rule]:
    if instance in tenant.instances:
        app = tenant.instances[instance][0]
        narrow = [tenant.sharing.get((app, tenant.number, instance)), tenant.sharing.get((app, tenant.number, -1))]
    elif instance in common.instances:
        app = common.instances[instance][0]
        narrow = [next((row for scope, row in common.sharing.items() if scope[2] == instance), None)]
    else:
        return None
    found = [row[0] for row in (*narrow, common.sharing.get((app, -1, -1))) if row is not None]
    scope = lambda b: (b["app"], *(-1 if b[name] is None else b[name] for name in ("tenant", "instance")))  # noqa: E731
    for b in found:
        if b["billable"] is not None:
            if not b["billable"]:
                return Rule(scope(b), b["version"], NOT_BILLABLE, None, True)
            break
    divisible = next((b["distributable"] for b in found if b["distributable"] is not None), True)
    for b in found:
        if b["sharing"] is not None:
            (method, value), entries = b["sharing"]
            if method == NONE or method != OWNER and not divisible:
                return None
            return Rule(scope(b), b["version"], method, value, entries)
    return None


def weights_of(rule: Rule, d: tuple[int, int, bool], tenant: Tenant, work: Work,
               said: int) -> tuple[dict[int, tuple[int, Optional[str]]], Optional[int]]:
    """Weights and, where it is proved, their sum. `d` is the app instance, its owner, and whether it is own."""
    instance, owner, is_own = d
    used = {(project, unit): n for (i, project, unit), n in work.items() if i == instance and n > 0}
    users = sorted({project for project, _ in used})
    anybody = bool(users) or not is_own and said > 0
    if rule.method == NOT_BILLABLE or rule.method in (BY_QUOTA, FIXED) and not anybody:
        return {}, 0
    if rule.method == OWNER:
        return {owner: (1, None)}, 1
    if rule.method == FIXED:
        weights = {project: (percent, None) for project, percent in rule.value}
        return weights, sum(percent for percent, _ in weights.values())
    if rule.method == EVEN:
        weights = {project: (1, None) for project in users}
    elif rule.method == BY_USAGE:
        weights = {project: (n, None) for (project, unit), n in used.items() if unit == rule.value}
    elif rule.method == BY_TIER:
        tiers, named, default = rule.value
        places = {project: dict(named).get(project, default) for project in users}
        weights = {project: (tiers[place][1], tiers[place][0]) for project, place in places.items() if place is not None}
    else:
        limits: dict[int, int] = {}
        for (project, of, unit), hard in sorted(tenant.limits.items()):  # those for all app instances come first
            if unit == rule.value and of in (-1, instance):
                limits[project] = hard
        weights = {project: (hard, None) for project, hard in limits.items() if hard}
    return weights, sum(weight for weight, _ in weights.values()) if is_own else None


def decide(r: Sealed, tenant: Tenant, common: Common, work: Work) -> Decision:
    """By the lists as they are at the first share of the app instance."""
    instance = r.body["instance"]
    is_own = instance in tenant.instances
    known = tenant.instances.get(instance) or common.instances.get(instance)
    rule, owner = rule_of(instance, tenant, common), known[2] if known else -1
    weights, total = weights_of(rule, (instance, owner, is_own), tenant, work, r.body["weights"]) if rule else ({}, None)
    return Decision(known is not None, is_own, owner, rule, weights, total, set(tenant.projects), [])


def part_bounds(pool: int, weight: int, total: int) -> tuple[int, int]:
    if total == 0:
        return 0, 0
    low, rest = divmod(abs(pool) * weight, total)
    return low, low + (rest > 0)


def borne(d: Decision, pool: int, total: int) -> dict[int, tuple[int, int]]:
    """Between which amounts the shares of the tenant's projects lie that are not the owner."""
    projects = sorted(d.weights)
    bounds = {p: part_bounds(pool, d.weights[p][0], total) for p in projects}
    if d.total is not None:
        some = any(weight for weight, _ in d.weights.values())
        parts = largest_remainders(abs(pool), [d.weights[p][0] for p in projects]) if some else [0] * len(projects)
        bounds = {p: (part, part) for p, part in zip(projects, parts)}
    return {p: bounds[p] for p in projects if p in d.projects and p != d.owner}


def owners(d: Decision, pool: int, total: int, others: dict[int, tuple[int, int]]) -> tuple[int, int]:
    if d.rule.method == NOT_BILLABLE:
        return 0, 0
    high = max(0, abs(pool) - sum(low for low, _ in others.values()))
    if d.is_own or total == 0 or d.rule.method == OWNER:
        return high, high
    return min(high, part_bounds(pool, d.weights.get(d.owner, (0, None))[0], total)[0]), high


def check(d: Decision, cost: int, differ: Differ) -> None:
    """`cost` is what the control plane cost the owner, if it is one of the tenant's projects."""
    if d.rule is None:
        for r in d.records:
            differ(r, "no policy divides the cost of this app instance", "no share", r.body["share"])
        return
    first = d.records[0].body
    pool = first["pool"]
    total = first["weights"] if d.total is None else d.total
    others = borne(d, pool, total)
    seen: set[int] = set()
    for r in d.records:
        check_record(d, r, (pool, total, cost), others, differ, r.project in seen)
        seen.add(r.project)
    missing = [p for p, (low, _) in others.items() if low and p not in seen]
    if d.owners_pool and d.owner not in seen:
        missing.append(d.owner)
    for project in missing:
        differ(None, f"project {project} has no share of the cost of app instance {first['instance']}", "a share", "none")


def check_record(d: Decision, r: Sealed, figures: tuple[int, int, int], others: dict[int, tuple[int, int]],
                 differ: Differ, again: bool) -> None:
    (pool, total, cost), b, rule = figures, r.body, d.rule
    if again:
        differ(r, "the project has a share already", "one share", "two")
    policy = (b["policy"]["app"], *(-1 if b["policy"][n] is None else b["policy"][n] for n in ("tenant", "instance")))
    weight, tier = d.weights.get(r.project, (0, None))
    own_sum = sum(w for w, _ in d.weights.values())
    is_owner = r.project == d.owner
    low, high = owners(d, pool, total, others) if is_owner else others.get(r.project, (0, 0))
    booked = b["share"] - b["pool"] if is_owner else b["share"]
    sign = -1 if b["pool"] < 0 else 1
    # What is no amount is compared in words: by how much numbers and weights differ says nothing.
    for what, expected, found in (
            ("owner", str(d.owner), str(b["owner"])),
            ("policy", (rule.scope, rule.version), (policy, b["version"])),
            ("method", (rule.method, rule.unit), (b["method"], b["unit"])),
            ("weight", str(weight), str(b["weight"])), ("tier", tier, b["tier"]),
            ("sum of weights", str(max(total, own_sum)), str(b["weights"])),
            ("pool", cost if d.owners_pool else pool, b["pool"]),
            ("booked", booked if rule.entries else 0, b["booked"])):
        if expected != found:
            differ(r, f"its {what} is another one", expected, found)
    if not low <= sign * b["share"] <= high:
        differ(r, "its share is not its part of the pool in whole steps", sign * low, b["share"])


def not_proved(d: Decision, instance: int) -> list[str]:
    if d.rule is None or d.is_own or d.rule.method == NOT_BILLABLE:
        return []
    out = [] if d.total is not None else [f"the sum of the weights for app instance {instance}"]
    if not d.owners_pool:
        return out + [f"what the control plane of app instance {instance} cost its owner, which is of another tenant"]
    return out if d.rule.method == OWNER else out + [f"what other tenants bear of the cost of app instance {instance}"]
