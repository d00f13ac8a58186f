//! Questions about usage and cost: intervals of time, filters and grouping.

use crate::chunk::Brief;
use crate::facts::{BillingKey, Books, BooksError};
use crate::row::{End, Row};
use crate::units::AppAnchors;
use leasehold_meter::Window;
use leasehold_model::{
    AllocationNo, AppInstanceNo, ClassNo, Instant, Name, NodeNo, PoolNo, Priority, ProjectNo, TenantNo, UserNo, words,
};
use smallvec::SmallVec;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

words! {
    /// What amounts can be grouped by. They are always grouped by class as well: a GPU and a GiB are never added.
    pub enum Dim {
        Tenant = 1 "tenant",
        Project = 2 "project",
        User = 3 "user",
        Pool = 4 "pool",
        Node = 5 "node",
        Priority = 6 "priority",
        Tag = 7 "tag",
        Allocation = 8 "allocation",
        AppInstance = 9 "app_instance",
        Workload = 10 "workload",
        /// Held by a lease, or idle on a claimed node.
        HeldAs = 11 "held_as",
        /// Runs the control plane of an app instance (1), or a workload (0).
        ControlPlane = 12 "control_plane",
        /// The app of the app instance.
        App = 13 "app",
        OperatingMode = 14 "operating_mode",
        ControlPlaneScope = 15 "control_plane_scope",
        RuntimeBackend = 16 "runtime_backend",
    }
}

words! {
    /// Why capacity is paid for.
    pub enum HeldAs {
        Lease = 1 "lease",
        /// Idle capacity on a node that the payer has claimed.
        IdleClaim = 2 "idle_claim",
    }
}

/// The most dimensions of one question.
pub const DIMS_MAX: usize = 5;

/// The value of each dimension, in the order of the question: a number of the model, the code of a priority, an index
/// into the list of tags or workloads, or [`NONE`].
pub type Key = [u64; DIMS_MAX];
/// There is no value.
pub const NONE: u64 = u64::MAX;

/// A filter; fields that are not set match everything.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    pub tenant: Option<TenantNo>,
    /// Who holds it: for lists of leases.
    pub project: Option<ProjectNo>,
    /// Who pays for it: for reports of usage and cost, in which a project is what it pays for.
    pub payer: Option<ProjectNo>,
    /// One of these users: several tenants can have a user of one name.
    pub users: Option<BTreeSet<UserNo>>,
    pub pool: Option<PoolNo>,
    pub node: Option<NodeNo>,
    pub priority: Option<Priority>,
    pub tag: Option<u32>,
    pub allocation: Option<AllocationNo>,
    pub app_instance: Option<AppInstanceNo>,
    pub workload: Option<Name>,
    pub classes: Option<BTreeSet<ClassNo>>,
    /// Only control planes of app instances, or only workloads.
    pub control_plane: Option<bool>,
}

/// One question.
#[derive(Clone, Debug)]
pub struct Question {
    pub dims: SmallVec<[Dim; DIMS_MAX]>,
    pub filter: Filter,
    /// Two or more instants in order; there is one amount for each interval between neighbours.
    pub borders: Vec<Instant>,
}

impl Question {
    pub fn over(window: Window, dims: &[Dim]) -> Self {
        assert!(dims.len() <= DIMS_MAX, "at most five dimensions");
        Self { dims: dims.into(), filter: Filter::default(), borders: vec![window.from, window.to.max(window.from)] }
    }

    pub fn window(&self) -> Window {
        match self.borders[..] {
            [from, .., to] => Window::new(from, to),
            _ => Window::new(Instant(0), Instant(0)),
        }
    }

    /// The source of the answer, unless leases are overdue.
    fn source(&self) -> Source {
        let Filter {
            users,
            node,
            allocation,
            app_instance,
            workload,
            tenant,
            project,
            payer,
            pool,
            priority,
            tag,
            classes: _,
            control_plane,
        } = &self.filter;
        let asks = |dims: &[Dim]| self.dims.iter().any(|dim| dims.contains(dim));
        let of_rows = users.is_some() || allocation.is_some() || app_instance.is_some() || workload.is_some();
        let of_nodes = node.is_some() || asks(&[Dim::Node]);
        let of_payers = tenant.is_some()
            || project.is_some()
            || payer.is_some()
            || pool.is_some()
            || priority.is_some()
            || tag.is_some()
            || control_plane.is_some()
            || asks(&[Dim::Tenant, Dim::Project, Dim::Pool, Dim::Priority, Dim::Tag, Dim::ControlPlane]);
        if of_rows
            || asks(&[Dim::User, Dim::Allocation, Dim::AppInstance, Dim::Workload, Dim::HeldAs])
            || self.dims.iter().any(|dim| is_anchor(*dim))
            || of_nodes && of_payers
        {
            Source::Rows
        } else if of_nodes {
            Source::Nodes
        } else {
            Source::Billing
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// Series by payer, class, pool and priority.
    Billing,
    /// Series by node and class.
    Nodes,
    /// The rows of all leases.
    Rows,
}

/// The most lines of one answer.
pub const LINES_MAX: usize = 4_000_000;
/// The most work for one answer: series or leases, times intervals.
const EFFORT_MAX: usize = 500_000_000;

impl Books {
    /// Refuses a question that would take too long. One grouping of a month by hours is well within the limit.
    pub(crate) fn afford(&self, question: &Question) -> Result<(), BooksError> {
        let window = question.window();
        let stretches = question.borders.len().max(2) - 1;
        let things = match self.source(question) {
            Source::Billing => self.billing.keys.len(),
            Source::Nodes => self.nodes.series.keys.len(),
            Source::Rows => {
                let rows = self.chunks.iter().filter(|head| head.meets(window)).map(|head| head.rows as usize);
                rows.sum::<usize>() + self.tail.len() + self.open.len()
            }
        };
        if things.saturating_mul(stretches) > EFFORT_MAX { Err(BooksError::TooMuch) } else { Ok(()) }
    }

    /// The source of the answer to a question.
    pub(crate) fn source(&self, question: &Question) -> Source {
        if self.has_overdue() { Source::Rows } else { question.source() }
    }
}

/// What follows from the app instance alone.
const fn is_anchor(dim: Dim) -> bool {
    matches!(dim, Dim::App | Dim::OperatingMode | Dim::ControlPlaneScope | Dim::RuntimeBackend)
}

/// What the registry says of the app instances, also of deleted ones: it never changes.
pub(crate) type Anchors = BTreeMap<AppInstanceNo, AppAnchors>;

/// The value of a dimension that follows from the app instance. Instances from before there was a registry have none.
pub(crate) fn anchor_value(anchors: &Anchors, dim: Dim, instance: Option<AppInstanceNo>) -> u64 {
    let Some(of) = instance.and_then(|number| anchors.get(&number)) else { return NONE };
    match dim {
        Dim::App => of.app_type.0.into(),
        Dim::OperatingMode => of.mode as u64,
        Dim::ControlPlaneScope => of.scope as u64,
        Dim::RuntimeBackend => of.backend as u64,
        _ => NONE,
    }
}

impl Books {
    /// For the keys of an answer.
    pub fn workloads(&self) -> Workloads {
        Workloads { index: BTreeMap::new(), names: Vec::new(), anchors: Arc::clone(&self.units.apps) }
    }
}

/// The workloads of an answer, numbered in the order in which they were found.
pub struct Workloads {
    anchors: Arc<Anchors>,
    index: BTreeMap<Name, u64>,
    pub names: Vec<Name>,
}

impl Workloads {
    fn place(&mut self, name: &Name) -> u64 {
        if let Some(place) = self.index.get(name) {
            return *place;
        }
        let place = self.names.len() as u64;
        self.index.insert(name.clone(), place);
        self.names.push(name.clone());
        place
    }
}

impl Filter {
    fn takes_class(&self, class: ClassNo) -> bool {
        self.classes.as_ref().is_none_or(|classes| classes.contains(&class))
    }

    pub(crate) fn takes_payer(&self, key: &BillingKey) -> bool {
        self.takes_class(key.class)
            && self.tenant.is_none_or(|tenant| tenant == key.tenant)
            && self.project.is_none_or(|project| project == key.project)
            && self.payer.is_none_or(|payer| payer == key.payer)
            && self.pool.is_none_or(|pool| pool == key.pool)
            && self.priority.is_none_or(|priority| priority == key.priority)
            && self.tag.is_none_or(|tag| Some(tag) == key.tag)
            && self.control_plane.is_none_or(|wanted| wanted == key.control_plane)
    }

    pub(crate) fn takes_node(&self, node: NodeNo, class: ClassNo) -> bool {
        self.takes_class(class) && self.node.is_none_or(|wanted| wanted == node)
    }

    pub(crate) fn takes_brief(&self, row: &Brief) -> bool {
        self.takes_class(row.class)
            && self.tenant.is_none_or(|tenant| tenant == row.tenant)
            && self.project.is_none_or(|project| project == row.project)
            && self.payer.is_none_or(|payer| payer == row.payer)
            && self.pool.is_none_or(|pool| pool == row.pool)
            && self.node.is_none_or(|node| node == row.node)
            && self.priority.is_none_or(|priority| priority == row.priority)
    }

    pub(crate) fn takes_row(&self, row: &Row) -> bool {
        self.takes_brief(&brief(row))
            && self.tag.is_none_or(|tag| Some(tag) == row.tag)
            && self.users.as_ref().is_none_or(|users| row.user.is_some_and(|user| users.contains(&user)))
            && self.allocation.is_none_or(|allocation| Some(allocation) == row.allocation)
            && self.app_instance.is_none_or(|app| Some(app) == row.app_instance)
            && self.workload.as_ref().is_none_or(|workload| Some(workload) == row.workload.as_ref())
            && self.control_plane.is_none_or(|wanted| wanted == row.is_control_plane())
    }

    /// Whether [`Self::takes_brief`] checks the whole filter.
    pub(crate) fn is_brief(&self) -> bool {
        self.tag.is_none()
            && self.users.is_none()
            && self.allocation.is_none()
            && self.app_instance.is_none()
            && self.workload.is_none()
            && self.control_plane.is_none()
    }
}

pub(crate) fn brief(row: &Row) -> Brief {
    let Row { class, tenant, project, payer, pool, node, priority, by_claim, .. } = *row;
    Brief { class, tenant, project, payer, pool, node, priority, by_claim }
}

/// A key, with the value of each dimension from `value`.
pub(crate) fn key_of(dims: &[Dim], mut value: impl FnMut(Dim) -> u64) -> Key {
    let mut key = [NONE; DIMS_MAX];
    for (place, dim) in key.iter_mut().zip(dims) {
        *place = value(*dim);
    }
    key
}

pub(crate) fn payer_key(dims: &[Dim], key: &BillingKey) -> Key {
    key_of(dims, |dim| match dim {
        Dim::Tenant => key.tenant.0.into(),
        Dim::Project => key.payer.0.into(),
        Dim::Pool => key.pool.0.into(),
        Dim::Priority => key.priority as u64,
        Dim::Tag => key.tag.map_or(NONE, u64::from),
        Dim::ControlPlane => key.control_plane.into(),
        _ => NONE,
    })
}

pub(crate) fn brief_value(dim: Dim, row: &Brief) -> u64 {
    match dim {
        Dim::Tenant => row.tenant.0.into(),
        Dim::Project => row.payer.0.into(),
        Dim::Pool => row.pool.0.into(),
        Dim::Node => row.node.0.into(),
        Dim::Priority => row.priority as u64,
        _ => NONE,
    }
}

/// Whether a dimension is part of the brief columns of a row.
pub(crate) fn is_brief(dim: Dim) -> bool {
    matches!(dim, Dim::Tenant | Dim::Project | Dim::Pool | Dim::Node | Dim::Priority)
}

pub(crate) fn row_key(dims: &[Dim], row: &Row, workloads: &mut Workloads) -> Key {
    key_of(dims, |dim| match dim {
        Dim::User => row.user.map_or(NONE, |user| user.0.into()),
        Dim::Tag => row.tag.map_or(NONE, u64::from),
        Dim::Allocation => row.allocation.map_or(NONE, |no| no.0),
        Dim::AppInstance => row.app_instance.map_or(NONE, |no| no.0),
        Dim::Workload => row.workload.as_ref().map_or(NONE, |name| workloads.place(name)),
        Dim::HeldAs => (if row.end == End::Idle { HeldAs::IdleClaim } else { HeldAs::Lease }) as u64,
        Dim::ControlPlane => row.is_control_plane().into(),
        dim if is_anchor(dim) => anchor_value(&workloads.anchors, dim, row.app_instance),
        dim => brief_value(dim, &brief(row)),
    })
}
