//! The parts of handler annotations for the API document: problems, other answers, and closed sets.

mod answers;
mod refusals;
pub(crate) mod sets;

pub(crate) use self::answers::{
    ContentEncoding, Failures, IfNoneMatch, NotModified, Redirect, SessionCookies,
};
pub(crate) use self::refusals::{
    BatchBody, Conflict, ControlDatabase, Ended, Exists, Faulty, FaultyAlertRule, FaultyRules,
    GrantsAccess, Invalid, JsonBody, LogIn, Missing, Overloaded, OwnApp, QueryString, Refused,
    Refuses, RuleDryRun, RunsAlertPreview, RunsQuery, Stored, Tested, Unfit, Unsendable,
    UploadedBody, WrongInvitation, WrongLogin, WrongPassword, WrongSetUp, response,
};
pub(crate) use self::sets::{
    action, algorithm, channel_kind, incident_state, notification_state, role, severity,
};
