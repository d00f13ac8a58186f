//! Tenants, projects, their ceilings, and users.

use super::Method::{Delete, Get, Post, Put};
use super::roles::*;
use super::schemas::*;
use super::{Endpoint, endpoint};
use crate::*;

pub(super) fn endpoints() -> Vec<Endpoint> {
    let tenant = "Only of this tenant: its name or number.";
    vec![
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
    ]
}
