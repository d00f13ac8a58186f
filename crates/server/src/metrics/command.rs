//! The kinds of commands, as the figures call them.

use leasehold_engine::Command;

/// What a command asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandKind(u8);

macro_rules! kinds {
    ($($name:ident $word:literal,)*) => {
        const WORDS: &[&str] = &[$($word,)* "other"];

        /// Places in the list above, by the command's own name.
        #[repr(u8)]
        enum Place { $($name,)* Other }

        impl CommandKind {
            pub fn of(command: &Command) -> Self {
                match command {
                    $(Command::$name(_) => Self(Place::$name as u8),)*
                    #[allow(unreachable_patterns, reason = "a command that is new is counted before it is named here")]
                    _ => Self(Place::Other as u8),
                }
            }
        }
    };
}

kinds! {
    Request "request",
    Renew "renew",
    Release "release",
    Revoke "revoke",
    Ready "ready",
    ConfirmTeardown "confirm_teardown",
    Unfence "unfence",
    ReportActivity "report_activity",
    SubmitAllocation "submit_allocation",
    StartAllocation "start_allocation",
    BeginCheckpoint "begin_checkpoint",
    ReportCheckpoint "report_checkpoint",
    CompleteAllocation "complete_allocation",
    CancelAllocation "cancel_allocation",
    PutTenant "put_tenant",
    UpdateTenant "update_tenant",
    DeleteTenant "delete_tenant",
    PutProject "put_project",
    DeleteProject "delete_project",
    PutUser "put_user",
    DeleteUser "delete_user",
    PutPool "put_pool",
    DeletePool "delete_pool",
    PutClass "put_class",
    PutNode "put_node",
    DeleteNode "delete_node",
    DrainNode "drain_node",
    ResumeNode "resume_node",
    LoseNode "lose_node",
    ReturnNode "return_node",
    PutQuota "put_quota",
    DeleteQuota "delete_quota",
    PutRateCard "put_rate_card",
    DeleteRateCard "delete_rate_card",
    PutChargePolicy "put_charge_policy",
    ChangeSettings "change_settings",
    RotateKey "rotate_key",
    Heartbeat "heartbeat",
    NoticeClockJump "notice_clock_jump",
    RegisterAgent "register_agent",
    ReportCondition "report_condition",
    DetachAgent "detach_agent",
    ClaimNodes "claim_nodes",
    ReleaseNodes "release_nodes",
    ReportWipe "report_wipe",
    ClearQuarantine "clear_quarantine",
    IssueToken "issue_token",
    RevokeToken "revoke_token",
}

impl CommandKind {
    pub fn word(self) -> &'static str {
        WORDS[self.place()]
    }
    pub(super) fn place(self) -> usize {
        usize::from(self.0)
    }
    pub(super) fn all() -> impl Iterator<Item = Self> {
        (0u8..).take(WORDS.len()).map(Self)
    }
}
