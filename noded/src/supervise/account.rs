//! Whom the tasks run as: looked up on this host, checked against what the controller said.
//!
//! Promises that a name that this host gives another uid fails the launch: files would else belong to a stranger.

use nix::unistd::{Gid, Group, Uid, User};
use std::ffi::CString;

/// A user of this host with all groups.
pub struct Account {
    pub uid: Uid,
    pub gid: Gid,
    pub groups: Vec<Gid>,
    pub home: std::path::PathBuf,
    pub shell: std::path::PathBuf,
}

/// Looks `name` up. The error says what differs.
pub fn lookup(name: &str, uid: u32, gid: u32) -> Result<Account, String> {
    let user = User::from_name(name)
        .map_err(|e| format!("user {name} can't be looked up on this node: {e}"))?
        .ok_or_else(|| format!("user {name} is not known on this node"))?;
    if user.uid.as_raw() != uid {
        return Err(format!("user {name} has uid {} on this node, but {uid} where the job was submitted", user.uid));
    }
    let c_name = CString::new(name).map_err(|_| format!("user name {name:?} holds a NUL byte"))?;
    let gid = Gid::from_raw(gid);
    let groups = nix::unistd::getgrouplist(&c_name, user.gid)
        .map_err(|e| format!("groups of user {name} can't be looked up: {e}"))?;
    // The job's primary group must be one that the user is in here; anything else would let a submit host hand out groups.
    if gid != user.gid && !groups.contains(&gid) {
        let group = Group::from_gid(gid).ok().flatten().map(|g| g.name).unwrap_or_default();
        return Err(format!("user {name} is not in group {group}({gid}) on this node"));
    }
    Ok(Account { uid: user.uid, gid, groups, home: user.dir, shell: user.shell })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_another_uid_is_refused() {
        assert!(lookup("root", 0, 0).is_ok());
        let text = lookup("root", 17, 0).err().unwrap();
        assert!(text.contains("uid 0 on this node"), "{text}");
        assert!(lookup("no-such-user-here", 1, 1).is_err());
        assert!(lookup("nobody", 65534, 0).is_err(), "a group that the user isn't in");
    }
}
