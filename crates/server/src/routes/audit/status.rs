//! What the daemon knows about the integrity of its own files.

use super::shown;
use crate::app::App;
use crate::context::{Answer, Context, json};
use leasehold_api::{AuditStatus, ScrubBegun, Ttl, When, codes};

pub(in super::super) async fn audit_status(context: Context) -> Answer {
    json(200, &status_of(&context.app))
}

pub(in super::super) fn status_of(app: &App) -> AuditStatus {
    // The checkpoint first: records appended meanwhile must not make the difference negative.
    let (signed, size) = (app.journal.checkpointed(), app.journal.head().size);
    let (known, settings) = (app.scrub.known(), app.scrub.settings());
    let damage = [&known.present, &known.last].into_iter().flatten().map(|pass| pass.damage_count).sum::<u64>();
    AuditStatus {
        damaged: damage > 0,
        size,
        unsigned_records: size.saturating_sub(signed.size()),
        checkpoint: shown(app, &signed),
        scrub_enabled: settings.enabled,
        scrub_every: Ttl(settings.every),
        next_at: app.scrub.next_at().map(When),
        present: known.present,
        last: known.last,
    }
}

pub(in super::super) async fn begin_scrub(context: Context) -> Answer {
    if context.app.live.is_stopping() {
        return Err(codes::STOPPING.problem("The daemon is stopping."));
    }
    json(202, &ScrubBegun { begun: context.app.scrub.begin() })
}
