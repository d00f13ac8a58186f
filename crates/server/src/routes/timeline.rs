//! The timeline of a correlation ID.

use super::ledger_scope::sees;
use crate::books::{consult, problem};
use crate::context::{Answer, Context, json};
use crate::names;
use crate::show_timeline::TimelineView;
use leasehold_api::{Problem, Timeline, codes};
use leasehold_books::{TimelinePlace, TimelineQuestion, TimelineWhat};
use leasehold_model::id::{CorrelationId, IdKind, PublicId};
use leasehold_model::{Instant, Role, TenantNo};

/// A cursor: the numbers of a place, in hexadecimal.
fn cursor_of(place: &TimelinePlace) -> String {
    let TimelinePlace { group: (tenant, first), at, sequence, rank } = place;
    format!("t{:x}.{first:x}.{:x}.{sequence:x}.{rank:x}", tenant.0, at.0)
}

fn place_of(cursor: &str) -> Option<TimelinePlace> {
    let mut numbers = cursor.strip_prefix('t')?.split('.').map(|part| u64::from_str_radix(part, 16).ok());
    let mut next = || numbers.next().flatten();
    let place = TimelinePlace {
        group: (TenantNo(u32::try_from(next()?).ok()?), next()?),
        at: Instant(next()?),
        sequence: next()?,
        rank: u32::try_from(next()?).ok()?,
    };
    Some(place).filter(|place| cursor_of(place) == cursor)
}

fn after(context: &Context) -> Result<Option<TimelinePlace>, Problem> {
    let Some(cursor) = context.query("cursor") else { return Ok(None) };
    let unknown = || codes::BAD_CURSOR.problem("The cursor was not issued by this daemon; begin without one.");
    place_of(cursor).map(Some).ok_or_else(unknown)
}

pub(super) async fn timeline(context: Context) -> Answer {
    let (after, limit, caller) = (after(&context)?, context.limit()?, context.caller().clone());
    let text = context.subject().to_owned();
    let bad = || codes::BAD_ID.problem("A correlation ID is a UUID or its 32 hexadecimal digits.");
    let id = CorrelationId::parse(&text).ok_or_else(bad)?;
    // An ID that the daemon derived says itself which request it belongs to.
    let own = PublicId(id.0);
    let derived = own.number(&context.app.genesis, IdKind::Correlation).filter(|_| own.position() == 0);
    let tenant = caller.tenant.filter(|_| !caller.sees_all());
    let told = consult(&context.app, context.caller(), move |app, books| {
        let question = TimelineQuestion { id, derived, tenant, after, limit };
        let found = books.timeline(&question, |tenant, project| caller.sees_project(tenant, project));
        let found = found.map_err(|error| problem(&error))?;
        let mut found = found.ok_or_else(|| names::not_found("correlation_id", &text, std::iter::empty()))?;
        // Those who may see a lease may not always see who pays for it.
        let visible = |what: &mut TimelineWhat| match what {
            TimelineWhat::Entries { entries, .. } => {
                entries.retain(|entry| sees(&caller, entry));
                !entries.is_empty()
            }
            TimelineWhat::Invoice { tenant, .. } => {
                caller.role != Role::ProjectMember && caller.project.is_none() && caller.sees_tenant(*tenant)
            }
            TimelineWhat::Record { .. } | TimelineWhat::Usage { .. } => true,
        };
        found.steps.retain_mut(|step| visible(&mut step.what));
        app.now.read(|state| {
            let view = TimelineView { app, state, books, found: &found };
            let steps = found.steps.iter().map(|step| view.step(step)).collect::<Result<_, _>>()?;
            Ok(Timeline {
                correlation_id: id.to_string(),
                as_of_size: books.size(),
                steps,
                next_cursor: found.next.as_ref().map(cursor_of),
            })
        })
    });
    json(200, &told.await?)
}
