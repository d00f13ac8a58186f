//! The names of objects in reports. A deleted object keeps the name that it had.

use super::books_query::shown_priority;
use crate::access::Caller;
use crate::show_apps::unit_name;
use leasehold_api::{Of, Problem, codes};
use leasehold_books::{Books, Dim, HeldAs, Key, NONE, NamedKind};
use leasehold_engine::State;
use leasehold_model::{
    AllocationNo, AppInstanceNo, AppTypeNo, ClassNo, ClassSpec, ControlPlaneScope, Name, NodeNo, OperatingMode, PoolNo,
    ProjectNo, RuntimeBackend, TenantNo, UnitNo, UserNo, Words,
};

/// The word with a code.
fn coded<T: Words>(value: u64, code: impl Fn(T) -> u8) -> Option<T> {
    T::ALL.iter().copied().find(|word| u64::from(code(*word)) == value)
}

/// Names of the objects in the keys of a report.
pub(super) struct Naming<'n> {
    pub(super) state: &'n State,
    pub(super) books: &'n Books,
    pub(super) workloads: &'n [Name],
    pub(super) caller: &'n Caller,
}

impl Naming<'_> {
    fn number(value: u64) -> Option<u32> {
        u32::try_from(value).ok()
    }

    /// Sets the name and number of one dimension.
    fn put(&self, of: &mut Of, dim: Dim, value: u64) {
        if value == NONE {
            return;
        }
        let no = Self::number(value).unwrap_or(u32::MAX);
        let named = |name: Option<String>, kind: &str| Some(name.unwrap_or_else(|| format!("{kind}-{value}")));
        match dim {
            Dim::Tenant => self.put_tenant(of, TenantNo(no)),
            Dim::Project => self.put_project(of, ProjectNo(no)),
            Dim::User => self.put_user(of, UserNo(no)),
            Dim::Pool => self.put_pool(of, PoolNo(no)),
            Dim::Node => self.put_node(of, NodeNo(no)),
            Dim::Priority => of.priority = shown_priority(value),
            Dim::Tag => of.accounting_tag = named(self.books.tag(no).map(ToString::to_string), "tag"),
            Dim::Allocation => of.allocation = Some(AllocationNo(value).to_string()),
            Dim::AppInstance => {
                let known = crate::past::Known { state: self.state, books: self.books };
                of.app_instance = Some(known.app_instance(AppInstanceNo(value)));
            }
            Dim::HeldAs => {
                of.held_as = HeldAs::ALL.iter().find(|one| **one as u64 == value).map(|one| one.word().to_owned())
            }
            Dim::ControlPlane => of.control_plane = Some(value == 1),
            Dim::App => {
                let known = crate::past::Known { state: self.state, books: self.books };
                of.app = named(known.app(AppTypeNo(no)), "app");
            }
            Dim::OperatingMode => of.operating_mode = coded(value, |word: OperatingMode| word as u8),
            Dim::ControlPlaneScope => of.control_plane_scope = coded(value, |word: ControlPlaneScope| word as u8),
            Dim::RuntimeBackend => of.runtime_backend = coded(value, |word: RuntimeBackend| word as u8),
            Dim::Workload => {
                let place = usize::try_from(value).unwrap_or(usize::MAX);
                of.workload = self.workloads.get(place).map(ToString::to_string);
            }
        }
    }

    pub(super) fn put_tenant(&self, of: &mut Of, tenant: TenantNo) {
        let live = self.state.tenant(tenant).map(|tenant| &tenant.settings.name);
        (of.tenant, of.tenant_id) = self.named(NamedKind::Tenant, tenant.0, live);
    }
    pub(super) fn put_project(&self, of: &mut Of, project: ProjectNo) {
        let live = self.state.project(project).map(|project| &project.name);
        (of.project, of.project_id) = self.named(NamedKind::Project, project.0, live);
    }
    pub(super) fn put_user(&self, of: &mut Of, user: UserNo) {
        let live = self.state.user(user).map(|user| &user.name);
        (of.user, of.user_id) = self.named(NamedKind::User, user.0, live);
    }
    pub(super) fn pool(&self, pool: PoolNo) -> String {
        crate::past::named(self.books, NamedKind::Pool, pool.0, self.state.pool(pool).map(|pool| &pool.name))
    }
    pub(super) fn node(&self, node: NodeNo) -> String {
        crate::past::named(self.books, NamedKind::Node, node.0, self.state.node(node).map(|node| &node.name))
    }
    pub(super) fn put_pool(&self, of: &mut Of, pool: PoolNo) {
        (of.pool, of.pool_id) = (Some(self.pool(pool)), Some(pool.0));
    }
    pub(super) fn put_node(&self, of: &mut Of, node: NodeNo) {
        (of.node, of.node_id) = (Some(self.node(node)), Some(node.0));
    }
    fn named(&self, kind: NamedKind, number: u32, live: Option<&Name>) -> (Option<String>, Option<u32>) {
        (Some(crate::past::named(self.books, kind, number, live)), Some(number))
    }

    pub(super) fn of(&self, dims: &[Dim], key: &Key) -> Of {
        let mut of = Of::default();
        dims.iter().zip(key).for_each(|(dim, value)| self.put(&mut of, *dim, *value));
        of
    }

    pub(super) fn unit(&self, unit: UnitNo) -> String {
        unit_name(self.state, unit)
    }

    pub(super) fn spec(&self, class: ClassNo) -> Result<&ClassSpec, Problem> {
        self.books.class(class).ok_or_else(|| codes::INTERNAL.problem("The books contain an unknown class."))
    }

    pub(super) fn name_class(&self, of: &mut Of, class: ClassNo) -> Result<(), Problem> {
        let spec = self.spec(class)?;
        of.class = Some(spec.name.to_string());
        of.class_id = Some(class.0);
        of.kind = Some(spec.kind.word().to_owned());
        of.tier = spec.tier.as_ref().map(ToString::to_string);
        Ok(())
    }
}
