//! Properties of a file besides owner and permission bits: access control lists, security labels, and other
//! attributes. A file that replaces another one has the same, or is not put in place.

use std::{
    ffi::{OsStr, OsString},
    os::{fd::AsFd, unix::ffi::OsStringExt},
};

use rustix::{
    fs::{XattrFlags, fgetxattr, flistxattr, fremovexattr, fsetxattr},
    io,
};

use crate::sys::failure::{Errno, Failure};

/// Users and groups besides those of the permission bits. A directory can pass it on to files that are
/// created in it.
const ACL: &str = "system.posix_acl_access";

/// A hash or a signature of the content, which does not match other content.
const MEASURED: [&str; 2] = ["security.ima", "security.evm"];

/// The beginning of a signature; a hash is renewed by the kernel.
const SIGNATURE: u8 = 3;

/// Names with values, as the kernel keeps them.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct ExtendedAttributes(Vec<(OsString, Vec<u8>)>);

impl ExtendedAttributes {
    /// The attributes of an open file; none if its file system has none.
    pub(crate) fn of(file: impl AsFd) -> Result<Self, Failure> {
        let listed = growing(|buffer| flistxattr(&file, buffer)).map_err(failed("flistxattr"))?;
        let names = listed.unwrap_or_default();
        let names = names.split(|byte| *byte == 0).filter(|name| !name.is_empty());
        let mut attributes = Vec::new();
        for name in names.map(|name| OsString::from_vec(name.to_vec())) {
            let value = growing(|buffer| fgetxattr(&file, name.as_os_str(), buffer));
            if let Some(value) = value.map_err(failed(call(&name)))? {
                attributes.push((name, value));
            }
        }
        Ok(Self(attributes))
    }

    /// Whether the content is signed: then no other content can have the attributes of this file.
    pub(crate) fn is_signed(&self) -> bool {
        self.0.iter().any(|(name, value)| is_measured(name) && value.first() == Some(&SIGNATURE))
    }

    /// Sets them on another file, which already has its owner and mode.
    pub(crate) fn give_to(&self, file: impl AsFd) -> Result<(), Failure> {
        let there = Self::of(&file)?;
        if there.value(ACL).is_some() && self.value(ACL).is_none() {
            fremovexattr(&file, ACL).map_err(failed(call(ACL)))?;
        }
        for (name, value) in self.0.iter().filter(|(name, _)| !is_measured(name)) {
            // No process here may be able to set a label that the file already has.
            if there.value(name) != Some(value) {
                fsetxattr(&file, name.as_os_str(), value, XattrFlags::empty()).map_err(failed(call(name)))?;
            }
        }
        Ok(())
    }

    fn value(&self, name: impl AsRef<OsStr>) -> Option<&Vec<u8>> {
        self.0.iter().find(|(known, _)| known == name.as_ref()).map(|(_, value)| value)
    }
}

fn is_measured(name: &OsStr) -> bool {
    MEASURED.iter().any(|measured| name == *measured)
}

/// The kernel's value, with a buffer of its size; none if there is none.
fn growing(mut get: impl FnMut(&mut [u8]) -> io::Result<usize>) -> io::Result<Option<Vec<u8>>> {
    let mut buffer = vec![0; 256];
    loop {
        match get(&mut buffer) {
            Ok(length) => {
                buffer.truncate(length);
                return Ok(Some(buffer));
            }
            Err(io::Errno::RANGE) if buffer.len() < 1 << 20 => buffer = vec![0; buffer.len() * 8],
            Err(io::Errno::OPNOTSUPP | io::Errno::NODATA | io::Errno::NOSYS) => return Ok(None),
            Err(errno) => return Err(errno),
        }
    }
}

fn failed(call: &'static str) -> impl Fn(io::Errno) -> Failure {
    move |errno| Failure { call, errno: Errno::from_raw(errno.raw_os_error()) }
}

/// The subject of a failure, in a common name.
fn call(name: impl AsRef<OsStr>) -> &'static str {
    match name.as_ref().to_str() {
        Some(ACL | "system.nfs4_acl" | "system.richacl") => "its access control list cannot be kept",
        Some("security.selinux") => "its SELinux label cannot be kept",
        Some("security.SMACK64") => "its Smack label cannot be kept",
        _ => "its extended attributes cannot be kept",
    }
}
