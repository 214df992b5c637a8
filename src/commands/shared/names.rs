//! What judgement asks about users and groups, answered from the name service of this system.

use crate::{
    error::Error,
    escape::visible,
    exit_status::ExitStatus,
    sys::accounts::{self, Account, LookupFailure},
    terms::names::{LookupError, Names},
};

/// The name service.
pub(in crate::commands) struct SystemNames;

impl Names for SystemNames {
    fn user_name(&self, uid: u32) -> Result<Option<String>, LookupError> {
        accounts::user_name(uid).map_err(failed)
    }

    fn user_id(&self, name: &str) -> Result<Option<u32>, LookupError> {
        Ok(accounts::account_of_name(name).map_err(failed)?.map(|account| account.uid))
    }

    fn group_id(&self, name: &str) -> Result<Option<u32>, LookupError> {
        accounts::group_id(name).map_err(failed)
    }

    fn group_name(&self, gid: u32) -> Result<Option<String>, LookupError> {
        accounts::group_name(gid).map_err(failed)
    }

    fn in_netgroup(&self, netgroup: &str, host: &str, user: &str) -> Result<bool, LookupError> {
        Ok(accounts::in_netgroup(netgroup, host, user))
    }
}

/// What failed, in the words of judgement.
pub(in crate::commands) fn failed(failure: LookupFailure) -> LookupError {
    LookupError { call: failure.call, error: failure.errno.desc().to_owned() }
}

/// The account of a user that the command line names, or numbers.
pub(in crate::commands) fn account(user: &str) -> Result<Account, Error> {
    let account = match user.parse() {
        Ok(uid) => accounts::account_of_uid(uid),
        Err(_) => accounts::account_of_name(user),
    };
    let account = account.map_err(|error| Error::new(ExitStatus::System, failed(error).to_string()))?;
    account.ok_or_else(|| Error::new(ExitStatus::Usage, format!("there is no user \"{}\"", visible(user))))
}

/// The number of such a user: that of an account which is gone may still hold slots.
pub(in crate::commands) fn uid_of(user: &str) -> Result<u32, Error> {
    user.parse().or_else(|_| account(user).map(|account| account.uid))
}
