//! The table of endpoints: what the server routes by, what the OpenAPI document is made from, and what the tests of
//! access walk through.

use crate::limits::{INTEGER_MAX, PAGE_MAX};
use crate::token::Role::{
    self, AppOperator, Auditor, BillingAuthority, NodeAgent, Operator, ProjectMember, TenantAdmin,
};
use crate::*;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    Get,
    Post,
    Put,
    Delete,
}

impl Method {
    pub const fn word(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Delete => "DELETE",
        }
    }
}

/// What a schema is made by.
pub type MakeSchema = fn(&mut SchemaGenerator) -> Schema;

/// What an endpoint answers when all is well.
#[derive(Clone, Copy)]
pub enum Answer {
    Json(MakeSchema),
    /// Text of this media type.
    Text(&'static str),
    /// Bytes of this media type.
    Bytes(&'static str),
}

/// A parameter in the query string.
#[derive(Clone, Copy)]
pub struct Query {
    pub name: &'static str,
    pub about: &'static str,
    pub schema: MakeSchema,
}

#[derive(Clone)]
pub struct Endpoint {
    /// Stable; the OpenAPI operation id.
    pub id: &'static str,
    pub method: Method,
    pub path: &'static str,
    pub summary: &'static str,
    /// Who may call it at all; what of it they see is another matter. Empty: no token is asked for.
    pub roles: &'static [Role],
    pub query: Vec<Query>,
    pub body: Option<MakeSchema>,
    /// A request without a body means the same as one with `{}`.
    pub body_optional: bool,
    pub status: u16,
    pub answer: Answer,
    /// The status and answer where it must be waited for.
    pub or_wait: Option<(u16, MakeSchema)>,
}

impl Endpoint {
    /// Whether it changes something and so takes an `Idempotency-Key`.
    pub fn is_mutation(&self) -> bool {
        self.method != Method::Get
    }

    /// The noun it is about, for grouping.
    pub fn tag(&self) -> &'static str {
        let rest = self.path.strip_prefix("/api/v1/").unwrap_or("operation");
        rest.split(['/', '.']).next().unwrap_or(rest)
    }

    /// The names between braces in its path.
    pub fn path_parameters(&self) -> impl Iterator<Item = &'static str> {
        self.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
    }

    fn query(mut self, name: &'static str, about: &'static str, schema: MakeSchema) -> Self {
        self.query.push(Query { name, about, schema });
        self
    }

    fn body<T: JsonSchema>(mut self) -> Self {
        self.body = Some(SchemaGenerator::subschema_for::<T>);
        self
    }

    fn body_or_none<T: JsonSchema>(mut self) -> Self {
        self.body_optional = true;
        self.body::<T>()
    }

    fn status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    /// What it answers where it must be waited for.
    fn or_wait<T: JsonSchema>(mut self) -> Self {
        self.or_wait = Some((202, SchemaGenerator::subschema_for::<T>));
        self
    }

    fn text(mut self, media: &'static str) -> Self {
        self.answer = Answer::Text(media);
        self
    }

    fn bytes(mut self, media: &'static str) -> Self {
        self.answer = Answer::Bytes(media);
        self
    }

    /// Over which time, and of whom.
    fn of_books(self) -> Self {
        self.query("from", "The first instant; the month's first if absent.", instant)
            .query("to", "The first instant after it; now if absent.", instant)
            .query("tenant", "Only of this tenant: its name or number.", text)
            .query("project", "Only of this project: its name or number.", text)
            .query("user", "Only of this user: its name or number.", text)
            .query("pool", "Only in this pool: its name or number.", text)
            .query("node", "Only on this node: its name or number.", text)
            .query("class", "Only of this class: its name or number.", text)
            .query("kind", "Only of this kind.", kind)
            .query("tier", "Only of this tier.", text)
            .query("priority", "Only of this priority.", priority)
            .query("tag", "Only under this accounting tag.", text)
            .query("allocation", "Only of this allocation, by number.", sequence)
            .query("app_instance", "Only of this app instance, by number.", sequence)
            .query("workload", "Only of this workload.", text)
    }

    /// By what it is told apart.
    fn grouped(self) -> Self {
        self.query(
            "by",
            "Told apart by these, with commas between: tenant, project, user, pool, node, class, kind, tier, priority, tag, allocation, app_instance, workload. Unlike units are never added: without class or kind, class is taken as well.",
            grouping,
        )
    }

    /// Cut into stretches.
    fn bucketed(self) -> Self {
        self.query("bucket", "Cut into minutes, hours, days or months.", bucket).query(
            "zone",
            "The IANA time zone in which days and months begin; UTC if absent.",
            text,
        )
    }

    /// Of a project, or of one of its app instances.
    fn of_ceiling(self) -> Self {
        self.query("tenant", "Whose project, where a name is given.", text).query(
            "app_instance",
            "Of this app instance, by number; of the whole project if absent.",
            sequence,
        )
    }

    fn page(self) -> Self {
        self.query("cursor", "Where the page begins: `next_cursor` of the one before.", text).query(
            "limit",
            "How many items at most.",
            page_limit,
        )
    }
}

fn endpoint<T: JsonSchema>(
    id: &'static str,
    method: Method,
    path: &'static str,
    summary: &'static str,
    roles: &'static [Role],
) -> Endpoint {
    let status = 200;
    let answer = Answer::Json(SchemaGenerator::subschema_for::<T>);
    let (query, body, body_optional, or_wait) = (Vec::new(), None, false, None);
    Endpoint { id, method, path, summary, roles, query, body, body_optional, status, answer, or_wait }
}

fn text(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "minLength": 1, "maxLength": 128 })
}
fn page_limit(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "integer", "minimum": 1, "maximum": PAGE_MAX, "default": crate::limits::PAGE_DEFAULT })
}
fn sequence(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "integer", "minimum": 0, "maximum": INTEGER_MAX })
}
fn lease_state(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<LeaseState>()
}
fn allocation_state(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<AllocationState>()
}
fn days(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "integer", "minimum": 1, "maximum": crate::limits::USAGE_DAYS_MAX, "default": 90 })
}
fn priority(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<Priority>()
}

fn kind(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<Kind>()
}
fn instant(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<When>()
}
fn bucket(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "enum": ["minute", "hour", "day", "month"] })
}
fn grouping(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "minLength": 1, "maxLength": 128, "examples": ["tenant,class"] })
}
fn waste_grouping(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "enum": ["tenant", "project", "node", "class"] })
}
fn capacity_grouping(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "enum": ["pool", "node"] })
}
fn waste_class(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<WasteClass>()
}
fn flag(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "enum": ["true", "false"] })
}

const ALL: &[Role] = &Role::ALL;
const OPERATOR: &[Role] = &[Operator];
const READERS: &[Role] = &[Operator, Auditor];
const TENANCY: &[Role] = &[Operator, Auditor, BillingAuthority, TenantAdmin, ProjectMember];
const HOLDERS: &[Role] = &[Operator, TenantAdmin, ProjectMember];
const ADMINS: &[Role] = &[Operator, TenantAdmin];
const TOKEN_READERS: &[Role] = &[Operator, Auditor, TenantAdmin];
const QUOTA_AUTHORITY: &[Role] = &[Operator, BillingAuthority];
const PRICE_READERS: &[Role] = &[Operator, Auditor, BillingAuthority, TenantAdmin, ProjectMember, AppOperator];
const CHARGE_READERS: &[Role] = &[Operator, Auditor, BillingAuthority];
const BOOK_READERS: &[Role] = &[Operator, Auditor, BillingAuthority, TenantAdmin, ProjectMember];
const AGENTS: &[Role] = &[Operator, NodeAgent];
const CATALOG: &[Role] = &[Operator, Auditor, BillingAuthority, TenantAdmin, ProjectMember, NodeAgent, AppOperator];
const NODE_READERS: &[Role] = &[Operator, Auditor, NodeAgent];
const LEASE_READERS: &[Role] = &[Operator, Auditor, TenantAdmin, ProjectMember, NodeAgent];
const ALLOCATION_READERS: &[Role] = &[Operator, Auditor, TenantAdmin, ProjectMember];
const BATCHERS: &[Role] = &[Operator, TenantAdmin, ProjectMember, NodeAgent];
/// Who may be told why.
const EXPLAINED: &[Role] = &[Operator, Auditor, TenantAdmin, ProjectMember];
const NOBODY_IN_PARTICULAR: &[Role] = &[];

/// Every endpoint, in the order of the document.
pub fn endpoints() -> Vec<Endpoint> {
    use Method::{Delete, Get, Post, Put};
    let tenant = "Only of this tenant: its name or number.";
    vec![
        endpoint::<About>("about", Get, "/api/v1/about", "Which journal this is and which program keeps it", ALL),
        endpoint::<WhoAmI>("whoami", Get, "/api/v1/whoami", "The token that asks", ALL),
        // Tenancy.
        endpoint::<TenantList>("list_tenants", Get, "/api/v1/tenants", "Tenants, by number", TENANCY).page(),
        endpoint::<TenantPut>("create_tenant", Post, "/api/v1/tenants", "Make a tenant", OPERATOR)
            .body::<NewTenant>()
            .status(201),
        endpoint::<Tenant>("show_tenant", Get, "/api/v1/tenants/{tenant}", "One tenant, by name or number", TENANCY),
        endpoint::<TenantPut>(
            "change_tenant",
            Put,
            "/api/v1/tenants/{tenant}",
            "Change a tenant and its limits: absent keeps, null clears, all at once",
            QUOTA_AUTHORITY,
        )
        .body::<TenantChange>(),
        endpoint::<TenantUsage>(
            "tenant_usage",
            Get,
            "/api/v1/tenants/{tenant}/usage",
            "What a tenant used of its budgets over the last days, as the queue sees it",
            TENANCY,
        )
        .query("days", "How many days; 90 if absent.", days),
        endpoint::<Changed>(
            "delete_tenant",
            Delete,
            "/api/v1/tenants/{tenant}",
            "Delete a tenant without leases and allocations",
            OPERATOR,
        ),
        endpoint::<ProjectList>("list_projects", Get, "/api/v1/projects", "Projects, by number", TENANCY)
            .query("tenant", tenant, text)
            .page(),
        endpoint::<ProjectPut>("create_project", Post, "/api/v1/projects", "Make a project", ADMINS)
            .body::<NewProject>()
            .status(201),
        endpoint::<Project>(
            "show_project",
            Get,
            "/api/v1/projects/{project}",
            "One project, by name or number",
            TENANCY,
        )
        .query("tenant", "Whose project, where a name is given.", text),
        endpoint::<ProjectPut>("change_project", Put, "/api/v1/projects/{project}", "Rename a project", ADMINS)
            .query("tenant", "Whose project, where a name is given.", text)
            .body::<ProjectChange>(),
        endpoint::<Changed>(
            "delete_project",
            Delete,
            "/api/v1/projects/{project}",
            "Delete a project without leases and allocations",
            ADMINS,
        )
        .query("tenant", "Whose project, where a name is given.", text),
        endpoint::<CeilingList>(
            "list_ceilings",
            Get,
            "/api/v1/projects/{project}/ceilings",
            "Cost ceilings of a project and its app instances, with what counts against them",
            TENANCY,
        )
        .query("tenant", "Whose project, where a name is given.", text)
        .page(),
        endpoint::<Ceiling>(
            "show_ceiling",
            Get,
            "/api/v1/projects/{project}/ceiling",
            "One cost ceiling, with what counts against it",
            TENANCY,
        )
        .of_ceiling(),
        endpoint::<CeilingPut>(
            "put_ceiling",
            Put,
            "/api/v1/projects/{project}/ceiling",
            "Set what a project, or one of its app instances, may cost; what was spent stays",
            QUOTA_AUTHORITY,
        )
        .of_ceiling()
        .body::<CeilingChange>(),
        endpoint::<Changed>(
            "delete_ceiling",
            Delete,
            "/api/v1/projects/{project}/ceiling",
            "Delete a cost ceiling; what was spent under it is forgotten",
            QUOTA_AUTHORITY,
        )
        .of_ceiling(),
        endpoint::<UserList>("list_users", Get, "/api/v1/users", "Users, by number", TENANCY)
            .query("tenant", tenant, text)
            .page(),
        endpoint::<UserPut>("create_user", Post, "/api/v1/users", "Make a user", ADMINS).body::<NewUser>().status(201),
        endpoint::<User>("show_user", Get, "/api/v1/users/{user}", "One user, by name or number", TENANCY).query(
            "tenant",
            "Whose user, where a name is given.",
            text,
        ),
        endpoint::<UserPut>("change_user", Put, "/api/v1/users/{user}", "Rename a user", ADMINS)
            .query("tenant", "Whose user, where a name is given.", text)
            .body::<UserChange>(),
        endpoint::<Changed>("delete_user", Delete, "/api/v1/users/{user}", "Delete a user", ADMINS).query(
            "tenant",
            "Whose user, where a name is given.",
            text,
        ),
        // Capacity.
        endpoint::<ClassList>("list_classes", Get, "/api/v1/classes", "Resource classes, by number", CATALOG).page(),
        endpoint::<ClassPut>("create_class", Post, "/api/v1/classes", "Make a resource class", OPERATOR)
            .body::<NewClass>()
            .status(201),
        endpoint::<Class>("show_class", Get, "/api/v1/classes/{class}", "One class, by name or number", CATALOG),
        endpoint::<ClassPut>("change_class", Put, "/api/v1/classes/{class}", "Change a class", OPERATOR)
            .body::<ClassChange>(),
        endpoint::<PoolList>("list_pools", Get, "/api/v1/pools", "Pools, by number", CATALOG).page(),
        endpoint::<PoolPut>("create_pool", Post, "/api/v1/pools", "Make a pool", OPERATOR)
            .body::<NewPool>()
            .status(201),
        endpoint::<Pool>("show_pool", Get, "/api/v1/pools/{pool}", "One pool, by name or number", CATALOG),
        endpoint::<PoolPut>("change_pool", Put, "/api/v1/pools/{pool}", "Change a pool", OPERATOR).body::<PoolChange>(),
        endpoint::<Changed>("delete_pool", Delete, "/api/v1/pools/{pool}", "Delete a pool without nodes", OPERATOR),
        endpoint::<NodeList>("list_nodes", Get, "/api/v1/nodes", "Nodes, by number", NODE_READERS)
            .query("pool", "Only of this pool: its name or number.", text)
            .page(),
        endpoint::<NodePut>("create_node", Post, "/api/v1/nodes", "Make a node", OPERATOR)
            .body::<NewNode>()
            .status(201),
        endpoint::<Node>("show_node", Get, "/api/v1/nodes/{node}", "One node, by name or number", NODE_READERS),
        endpoint::<NodePut>("change_node", Put, "/api/v1/nodes/{node}", "Change a node", OPERATOR).body::<NodeChange>(),
        endpoint::<Changed>("delete_node", Delete, "/api/v1/nodes/{node}", "Delete a node without leases", OPERATOR),
        endpoint::<NodePut>("drain_node", Post, "/api/v1/nodes/{node}/drain", "Give out no more of a node", OPERATOR),
        endpoint::<NodePut>(
            "resume_node",
            Post,
            "/api/v1/nodes/{node}/resume",
            "Give a drained node out again",
            OPERATOR,
        ),
        endpoint::<NodePut>(
            "lose_node",
            Post,
            "/api/v1/nodes/{node}/lose",
            "Declare a node lost; its leases end when it was last seen",
            OPERATOR,
        )
        .body_or_none::<LoseNode>(),
        endpoint::<NodePut>("return_node", Post, "/api/v1/nodes/{node}/return", "A lost node is back", OPERATOR),
        endpoint::<NodePut>(
            "clear_quarantine",
            Post,
            "/api/v1/nodes/{node}/clear-quarantine",
            "Vouch that a quarantined node is clean",
            OPERATOR,
        ),
        endpoint::<NodePut>(
            "report_wipe",
            Post,
            "/api/v1/nodes/{node}/wipe",
            "Say whether a released node is clean",
            AGENTS,
        )
        .body::<ReportWipe>(),
        endpoint::<ClaimList>(
            "list_claims",
            Get,
            "/api/v1/claims",
            "Nodes that are claimed for sensitive work; to operators also those being wiped or quarantined",
            ALLOCATION_READERS,
        )
        .page(),
        endpoint::<ClaimPut>("claim_nodes", Post, "/api/v1/claims", "Claim nodes for a user's sensitive work", HOLDERS)
            .body::<NewClaim>()
            .status(201),
        endpoint::<ClaimPut>(
            "release_nodes",
            Post,
            "/api/v1/claims/release",
            "Give claimed nodes back; they are wiped before anyone gets them",
            HOLDERS,
        )
        .body::<ReleaseNodes>(),
        endpoint::<AgentRegistered>(
            "register_agent",
            Post,
            "/api/v1/nodes/{node}/agent",
            "An agent takes up its node",
            AGENTS,
        )
        .body::<RegisterAgent>(),
        endpoint::<DetachedAgent>(
            "detach_agent",
            Delete,
            "/api/v1/nodes/{node}/agent",
            "Forget the node's agent, so that another may take up the node",
            OPERATOR,
        ),
        endpoint::<HeartbeatAnswer>(
            "heartbeat",
            Post,
            "/api/v1/nodes/{node}/heartbeat",
            "A sign of life; answers what is to be torn down",
            AGENTS,
        )
        .body::<Heartbeat>(),
        endpoint::<TeardownsConfirmed>(
            "confirm_teardowns",
            Post,
            "/api/v1/nodes/{node}/teardowns",
            "Confirm that leases are torn down",
            AGENTS,
        )
        .body::<ConfirmTeardowns>(),
        // Quotas.
        endpoint::<QuotaList>("list_quotas", Get, "/api/v1/quotas", "Quotas with what is used of them", TENANCY)
            .query("tenant", tenant, text)
            .page(),
        endpoint::<QuotaPut>("create_quota", Post, "/api/v1/quotas", "Make a quota", QUOTA_AUTHORITY)
            .body::<NewQuota>()
            .status(201),
        endpoint::<Quota>("show_quota", Get, "/api/v1/quotas/{quota}", "One quota, by number", TENANCY),
        endpoint::<QuotaPut>("change_quota", Put, "/api/v1/quotas/{quota}", "Change a quota's limit", QUOTA_AUTHORITY)
            .body::<QuotaChange>(),
        endpoint::<Changed>("delete_quota", Delete, "/api/v1/quotas/{quota}", "Delete a quota", QUOTA_AUTHORITY),
        // What can be asked of the books.
        endpoint::<UsageReport>("usage", Get, "/api/v1/usage", "What was held, by whom, exactly", BOOK_READERS)
            .of_books()
            .grouped()
            .bucketed()
            .query("peak", "Whether to tell the most that was held at once.", flag),
        endpoint::<CapacityReport>(
            "capacity",
            Get,
            "/api/v1/usage/capacity",
            "Where the cluster's capacity was: held, tearing down, reserved, fenced, offline or idle",
            READERS,
        )
        .query("from", "The first instant; the month's first if absent.", instant)
        .query("to", "The first instant after it; now if absent.", instant)
        .query("by", "Told apart by pool or node, beside class.", capacity_grouping)
        .query("pool", "Only in this pool: its name or number.", text)
        .query("node", "Only on this node: its name or number.", text)
        .query("class", "Only of this class: its name or number.", text),
        endpoint::<CostReport>(
            "costs",
            Get,
            "/api/v1/costs",
            "What it cost, by the prices of each second",
            BOOK_READERS,
        )
        .of_books()
        .grouped()
        .bucketed(),
        endpoint::<CostRate>(
            "cost_rate",
            Get,
            "/api/v1/costs/rate",
            "What the leases that are held now cost in an hour",
            BOOK_READERS,
        )
        .of_books()
        .grouped(),
        endpoint::<Forecast>(
            "forecast",
            Get,
            "/api/v1/costs/forecast",
            "What the month will have cost: up to now, to the deadlines, and to its end",
            BOOK_READERS,
        )
        .of_books()
        .query("zone", "The IANA time zone in which the month begins; UTC if absent.", text),
        endpoint::<WasteReport>(
            "waste",
            Get,
            "/api/v1/waste",
            "What was held and not used, what was idle, and what is in pieces",
            BOOK_READERS,
        )
        .of_books()
        .query("by", "How leases are summed up; by class if absent.", waste_grouping)
        .query("headline", "Only leases of this headline.", waste_class)
        .query("limit", "How many leases to name at most.", page_limit),
        endpoint::<SensitivityReport>(
            "sensitivity",
            Get,
            "/api/v1/sensitivity",
            "What workloads depend on, by their share of the cost and by what they wait for",
            BOOK_READERS,
        )
        .of_books(),
        // Prices.
        endpoint::<RateCardList>(
            "list_rate_cards",
            Get,
            "/api/v1/rate-cards",
            "Rate cards, the built-in one first, then by number",
            PRICE_READERS,
        )
        .query("pool", "Only of this pool: its name or number.", text)
        .page(),
        endpoint::<RateCardPut>(
            "create_rate_card",
            Post,
            "/api/v1/rate-cards",
            "Set prices from now or from a later day on; what is not named is as in the card in force",
            OPERATOR,
        )
        .body::<NewRateCard>()
        .status(201),
        endpoint::<RateCard>(
            "current_rate_card",
            Get,
            "/api/v1/rate-cards/current",
            "The card by which this second is rated",
            PRICE_READERS,
        )
        .query("pool", "In this pool: its name or number.", text),
        endpoint::<RateCard>(
            "show_rate_card",
            Get,
            "/api/v1/rate-cards/{card}",
            "One rate card, by number, or `built-in`",
            PRICE_READERS,
        ),
        endpoint::<RateCardPut>(
            "change_rate_card",
            Put,
            "/api/v1/rate-cards/{card}",
            "Change a rate card that waits: absent keeps, null clears",
            OPERATOR,
        )
        .body::<RateCardChange>(),
        endpoint::<Changed>(
            "delete_rate_card",
            Delete,
            "/api/v1/rate-cards/{card}",
            "Withdraw a rate card that waits",
            OPERATOR,
        ),
        endpoint::<ChargePolicyList>(
            "list_charge_policies",
            Get,
            "/api/v1/charge-policies",
            "What is charged for leases that end badly: the built-in policy first, then by number",
            CHARGE_READERS,
        )
        .page(),
        endpoint::<ChargePolicyPut>(
            "create_charge_policy",
            Post,
            "/api/v1/charge-policies",
            "Set what is charged from now or from a later day on; what is not named is as in the policy in force",
            OPERATOR,
        )
        .body::<NewChargePolicy>()
        .status(201),
        endpoint::<ChargePolicyPut>(
            "change_charge_policy",
            Put,
            "/api/v1/charge-policies/{policy}",
            "Change a charge policy that waits",
            OPERATOR,
        )
        .body::<NewChargePolicy>(),
        // Leases.
        endpoint::<LeaseList>(
            "list_leases",
            Get,
            "/api/v1/leases",
            "Leases that are not closed, by number",
            LEASE_READERS,
        )
        .query("tenant", tenant, text)
        .query("project", "Only of this project: its name (with `tenant`) or number.", text)
        .query("user", "Only of this user: its name (with `tenant`) or number.", text)
        .query("node", "Only on this node: its name or number.", text)
        .query("pool", "Only in this pool: its name or number.", text)
        .query("class", "Only of this class: its name or number.", text)
        .query("state", "Only in this state.", lease_state)
        .query("priority", "Only of this priority.", priority)
        .page(),
        endpoint::<Granted>("request_lease", Post, "/api/v1/leases", "Ask for capacity", HOLDERS)
            .body::<RequestLease>()
            .status(201)
            .or_wait::<Submitted>(),
        endpoint::<Quote>(
            "quote_lease",
            Post,
            "/api/v1/leases/quote",
            "What a request would cost, whether it would be admitted, and where; nothing is changed",
            HOLDERS,
        )
        .body::<RequestLease>(),
        endpoint::<BatchResults>(
            "batch",
            Post,
            "/api/v1/leases/batch",
            "Many operations in one request, each with its own key and result",
            BATCHERS,
        )
        .body::<Batch>(),
        endpoint::<Lease>(
            "show_lease",
            Get,
            "/api/v1/leases/{lease}",
            "One lease, also when it is closed",
            LEASE_READERS,
        ),
        endpoint::<Explanation>(
            "explain_lease",
            Get,
            "/api/v1/leases/{lease}/explain",
            "Why a lease was granted where it was: the checks, the scores and the deciding term",
            EXPLAINED,
        ),
        endpoint::<Explanation>(
            "explain_allocation",
            Get,
            "/api/v1/allocations/{allocation}/explain",
            "Why an allocation waits, or why it started where it did",
            EXPLAINED,
        ),
        endpoint::<NodeExplanation>(
            "explain_node",
            Get,
            "/api/v1/nodes/{node}/explain",
            "Why a node gets work, or gets none",
            READERS,
        ),
        endpoint::<Explanation>(
            "explain_decision",
            Get,
            "/api/v1/audit/decisions/{sequence}",
            "A sealed decision explained, and made again from the journal",
            EXPLAINED,
        ),
        endpoint::<History>(
            "lease_history",
            Get,
            "/api/v1/leases/{lease}/history",
            "What happened to a lease",
            LEASE_READERS,
        )
        .page(),
        endpoint::<Renewed>("renew_lease", Post, "/api/v1/leases/{lease}/renew", "Move the deadline", HOLDERS)
            .body::<Renew>(),
        endpoint::<Released>("release_lease", Post, "/api/v1/leases/{lease}/release", "Give a lease back", HOLDERS)
            .body_or_none::<Release>(),
        endpoint::<Revoked>("revoke_lease", Post, "/api/v1/leases/{lease}/revoke", "Take a lease back", ADMINS)
            .body_or_none::<Revoke>(),
        endpoint::<ReadyAnswer>(
            "lease_ready",
            Post,
            "/api/v1/leases/{lease}/ready",
            "The holder of a revoked lease is ready before grace ends",
            HOLDERS,
        ),
        endpoint::<Reported>("report_activity", Post, "/api/v1/leases/{lease}/activity", "Report activity", HOLDERS)
            .body::<Activity>(),
        endpoint::<Confirmed>(
            "confirm_teardown",
            Post,
            "/api/v1/leases/{lease}/teardown",
            "Confirm that one lease is torn down",
            AGENTS,
        )
        .body_or_none::<Fences>(),
        endpoint::<Unfenced>(
            "unfence_lease",
            Post,
            "/api/v1/leases/{lease}/unfence",
            "Vouch for fenced capacity",
            OPERATOR,
        ),
        // Allocations.
        endpoint::<AllocationList>(
            "list_allocations",
            Get,
            "/api/v1/allocations",
            "Allocations that are not over, by number",
            ALLOCATION_READERS,
        )
        .query("tenant", tenant, text)
        .query("project", "Only of this project: its name (with `tenant`) or number.", text)
        .query("user", "Only of this user: its name (with `tenant`) or number.", text)
        .query("pool", "Only those that must lie in this pool: its name or number.", text)
        .query("state", "Only in this state.", allocation_state)
        .query("priority", "Only of this priority.", priority)
        .page(),
        endpoint::<Submitted>(
            "submit_allocation",
            Post,
            "/api/v1/allocations",
            "Ask for a gang: it starts whole, or waits in the queue",
            HOLDERS,
        )
        .body::<SubmitAllocation>()
        .status(201),
        endpoint::<AllocationDetail>(
            "show_allocation",
            Get,
            "/api/v1/allocations/{allocation}",
            "One allocation, also when it is over: its attempts and, while it waits, what for",
            ALLOCATION_READERS,
        ),
        endpoint::<AllocationChanged>(
            "start_allocation",
            Post,
            "/api/v1/allocations/{allocation}/start",
            "What was staged runs from now on",
            HOLDERS,
        ),
        endpoint::<AllocationChanged>(
            "begin_checkpoint",
            Post,
            "/api/v1/allocations/{allocation}/checkpointing",
            "A checkpoint is being written",
            HOLDERS,
        ),
        endpoint::<AllocationChanged>(
            "report_checkpoint",
            Post,
            "/api/v1/allocations/{allocation}/checkpoint",
            "A checkpoint was written; within grace this also says that nothing runs any more",
            HOLDERS,
        )
        .body::<CheckpointReport>(),
        endpoint::<AllocationChanged>(
            "complete_allocation",
            Post,
            "/api/v1/allocations/{allocation}/complete",
            "The work is done, or has failed; all its leases are given back",
            HOLDERS,
        )
        .body_or_none::<CompleteAllocation>(),
        endpoint::<AllocationChanged>(
            "cancel_allocation",
            Post,
            "/api/v1/allocations/{allocation}/cancel",
            "Take an allocation out of the queue, or end it",
            HOLDERS,
        ),
        // Access.
        endpoint::<TokenList>(
            "list_tokens",
            Get,
            "/api/v1/tokens",
            "Tokens, by number, without their secrets",
            TOKEN_READERS,
        )
        .query("tenant", tenant, text)
        .page(),
        endpoint::<IssuedToken>(
            "issue_token",
            Post,
            "/api/v1/tokens",
            "Issue a token; its secret is shown once",
            ADMINS,
        )
        .body::<NewToken>()
        .status(201),
        endpoint::<Token>("show_token", Get, "/api/v1/tokens/{token}", "One token, by number", TOKEN_READERS),
        endpoint::<Changed>("revoke_token", Delete, "/api/v1/tokens/{token}", "Revoke a token", ADMINS),
        // The journal.
        endpoint::<RecordPage>(
            "list_records",
            Get,
            "/api/v1/audit/records",
            "Records after a sequence, as JSON",
            LEASE_READERS,
        )
        .query("after", "The last sequence already seen; from the first record if absent.", sequence)
        .query("tenant", tenant, text)
        .query("kind", "Only of this kind or family: `lease.granted`, `lease`.", text)
        .query("limit", "How many records at most.", page_limit),
        endpoint::<Checkpoint>("checkpoint", Get, "/api/v1/audit/checkpoint", "The newest signed checkpoint", ALL),
        endpoint::<InclusionProof>(
            "prove_inclusion",
            Get,
            "/api/v1/audit/proofs/inclusion",
            "Prove that a record is in the journal",
            ALL,
        )
        .query("sequence", "Which record.", sequence),
        endpoint::<ConsistencyProof>(
            "prove_consistency",
            Get,
            "/api/v1/audit/proofs/consistency",
            "Prove that the journal only grew",
            ALL,
        )
        .query("from", "The size that was seen before.", sequence)
        .query("to", "The size to prove up to; that of the newest checkpoint if absent.", sequence),
        endpoint::<()>(
            "export",
            Get,
            "/api/v1/audit/export",
            "All records as JSON, one per line, with the names they had",
            READERS,
        )
        .query("from", "The first sequence.", sequence)
        .query("to", "The last sequence.", sequence)
        .text("application/x-ndjson"),
        endpoint::<()>(
            "batches",
            Get,
            "/api/v1/audit/batches",
            "Sealed batches as their own bytes, for a collector",
            READERS,
        )
        .query(
            "from",
            "A sequence; the answer begins with the batch that holds it. From the first record if absent.",
            sequence,
        )
        .bytes("application/octet-stream"),
        endpoint::<()>(
            "events",
            Get,
            "/api/v1/events",
            "Records as they become durable, as server-sent events",
            LEASE_READERS,
        )
        .query("after", "Begin after this sequence; `Last-Event-ID` does the same and wins.", sequence)
        .query("tenant", tenant, text)
        .query("kind", "Only of this kind or family: `lease.revoked`, `lease`.", text)
        .query("node", "Only of leases on this node: its name or number.", text)
        .query("lease", "Only of this lease.", text)
        .text("text/event-stream"),
        endpoint::<Settings>("show_settings", Get, "/api/v1/settings", "The engine's own limits", CATALOG),
        endpoint::<Changed>("change_settings", Put, "/api/v1/settings", "Change the engine's own limits", OPERATOR)
            .body::<SettingsChange>(),
        // Operation.
        endpoint::<()>("openapi", Get, "/api/v1/openapi.json", "This document", NOBODY_IN_PARTICULAR)
            .text("application/json"),
        endpoint::<()>("docs", Get, "/api/docs", "This document, for people", NOBODY_IN_PARTICULAR).text("text/html"),
        endpoint::<Health>("healthz", Get, "/healthz", "Whether the daemon lives", NOBODY_IN_PARTICULAR),
        endpoint::<Health>("readyz", Get, "/readyz", "Whether the daemon takes commands", NOBODY_IN_PARTICULAR),
        endpoint::<()>("metrics", Get, "/metrics", "Figures for Prometheus", READERS).text("text/plain"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn ids_and_routes_are_unique() {
        let all = endpoints();
        let ids: BTreeSet<_> = all.iter().map(|e| e.id).collect();
        let routes: BTreeSet<_> = all.iter().map(|e| (e.method.word(), e.path)).collect();
        assert_eq!((ids.len(), routes.len()), (all.len(), all.len()));
    }

    #[test]
    fn auditors_change_nothing() {
        for endpoint in endpoints().iter().filter(|e| e.is_mutation()) {
            assert!(!endpoint.roles.contains(&Auditor), "{}", endpoint.id);
            assert!(!endpoint.roles.is_empty(), "{}: a change by nobody", endpoint.id);
        }
    }
}
