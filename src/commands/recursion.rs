//! A command that is launched below itself: a wrapper that finds itself where it looks for the program, or two that find each
//! other. Some of it is meant; what never ends is not.

use std::path::Path;

use crate::{
    commands::order::Order,
    error::Error,
    exit_status::ExitStatus,
    launch::{depth::Depth, program::Program},
    output::visible::visible,
};

/// How deep below itself the command will be, or that it has gone far enough.
pub(super) fn deeper(order: &Order, depth: &Depth, program: &Program) -> Result<Depth, Error> {
    let name = Path::new(&order.command).file_name().unwrap_or(&order.command);
    depth.clone().below(name).map_err(|too_deep| {
        let (command, path) = (visible(name), visible(&program.path));
        let leads = match &program.shim {
            Some(shim) => format!("the shim {} leads to {path}", visible(shim)),
            None => format!("the command leads to {path}"),
        };
        let text = format!("{command}: not started: {too_deep}\n  {leads}, and that leads back here");
        Error::new(ExitStatus::CannotExecute, text)
            .advise(format!("Name the program itself in the policy: [command.{command}] exec = \"/path\""))
    })
}
