//! Attachments: what projects lend to shared runtimes.

use super::page::page;
use super::tenancy::changed;
use crate::access::Caller;
use crate::context::{Answer, Context, json};
use crate::{names, show, show_apps};
use leasehold_api::{AttachmentList, AttachmentPut, NewAttachment, Problem, Role, codes};
use leasehold_engine::command::MakeAttachment;
use leasehold_engine::{Attachment, Command, State};
use leasehold_model::{AllocationNo, AttachmentNo, Body};

/// Whether the caller may see an attachment: its tenant's people all do, an app operator those of its runtimes.
fn sees(caller: &Caller, attachment: &Attachment) -> bool {
    caller.sees_app_instance(attachment.tenant, attachment.app_instance)
}

pub(super) async fn list_attachments(context: Context) -> Answer {
    let caller = context.caller();
    let listed = context.app.now.read(|state| {
        let of = context.query("tenant").map(|text| names::tenant(state, caller, text)).transpose()?;
        let project = context.query("project").map(|text| names::project(state, caller, of, text)).transpose()?;
        let visible = |attachment: &&Attachment| {
            of.is_none_or(|tenant| tenant == attachment.tenant)
                && project.is_none_or(|project| project == attachment.source_project)
                && sees(caller, attachment)
        };
        let all = state.attachments_after(None).filter(visible);
        page(&context, all.map(|attachment| (attachment.number.0, show_apps::attachment(state, attachment))))
    });
    let (attachments, next_cursor) = listed?;
    json(200, &AttachmentList { attachments, next_cursor })
}

/// An attachment that has not ended and that the caller may see.
pub(super) fn find<'s>(state: &'s State, caller: &Caller, number: AttachmentNo) -> Result<&'s Attachment, Problem> {
    state
        .attachment(number)
        .filter(|found| sees(caller, found))
        .ok_or_else(|| Problem::new(404, "unknown_attachment", format!("There is no {number}, or it has ended.")))
}

fn number(context: &Context) -> Result<AttachmentNo, Problem> {
    let text = context.subject();
    let digits = text.strip_prefix("attachment-").unwrap_or(text);
    names::digits(digits).map(AttachmentNo).ok_or_else(|| {
        let detail = "There is no such attachment; one is given by its number, such as 7 or attachment-7.";
        Problem::new(404, "unknown_attachment", detail)
    })
}

pub(super) async fn show_attachment(context: Context) -> Answer {
    let number = number(&context)?;
    let shown = context
        .app
        .now
        .read(|state| find(state, context.caller(), number).map(|attachment| show_apps::attachment(state, attachment)));
    json(200, &shown?)
}

pub(super) async fn create_attachment(context: Context) -> Answer {
    let new: NewAttachment = context.body()?;
    let caller = context.caller();
    let make = context.app.now.read(|state| {
        let of = new.tenant.as_deref().map(|text| names::tenant(state, caller, text)).transpose()?;
        let app_instance = names::app_instance(state, caller, of, &new.app_instance)?;
        let of = of.or_else(|| state.app_instance(app_instance).map(|instance| instance.tenant));
        let source_project = match (&new.source_project, caller.project) {
            (Some(text), _) => names::project(state, caller, of, text)?,
            (None, Some(own)) => own,
            (None, None) => {
                let detail = "The token belongs to no project; give the one that lends in `source_project`.";
                return Err(codes::BAD_BODY.problem(detail).with("field", "source_project"));
            }
        };
        let allocation = new.allocation_id.map(|allocation| AllocationNo(allocation.0));
        Ok::<_, Problem>(MakeAttachment { app_instance, source_project, allocation })
    })?;
    let sealed = context.seal(Command::MakeAttachment(make)).await?;
    let Body::AttachmentMade(made) = &sealed.first().body else { unreachable!("an attachment was made") };
    let shown = context.app.now.read(|state| Some(show_apps::attachment(state, state.attachment(made.attachment)?)));
    let attachment = shown.ok_or_else(|| show::gone_already("attachment"))?;
    json(201, &AttachmentPut { sequence: sealed.sequence(), attachment })
}

/// Only the project that lends, or an admin of its tenant, ends an attachment.
pub(super) async fn end_attachment(context: Context) -> Answer {
    let (number, caller) = (number(&context)?, context.caller());
    let source = context.app.now.read(|state| Ok::<_, Problem>(find(state, caller, number)?.source_project))?;
    if caller.role == Role::ProjectMember && caller.project != Some(source) {
        let detail = "Only the project that lends, or an administrator of the tenant, ends an attachment.";
        return Err(codes::ROLE_FORBIDS.problem(detail));
    }
    changed(&context, Ok(Command::EndAttachment(number))).await
}
