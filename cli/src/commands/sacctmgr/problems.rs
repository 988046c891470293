//! `sacctmgr show problem`: what is probably a mistake.

use super::book::Book;

/// Account, user, nothing, problem: one line each. `known` says whether the system knows a user's name.
pub fn find(book: &Book, known: impl Fn(&str) -> bool) -> Vec<[String; 4]> {
    let mut out = Vec::new();
    let mut say = |account: &str, user: &str, problem: &str| {
        out.push([account.to_owned(), user.to_owned(), String::new(), problem.to_owned()]);
    };
    for name in book.accounts.keys() {
        let inside = book.associations.values().any(|a| a.account == *name && a.user.is_some());
        let below = book.accounts.values().any(|a| a.parent.as_ref() == Some(name));
        if !inside && !below {
            say(name, "", "Account has no users");
        }
    }
    for user in book.users.values() {
        if !book.associations.values().any(|a| a.user.as_ref() == Some(&user.name)) {
            say("", &user.name, "User has no associations");
        } else if user.default_account.is_none() {
            say("", &user.name, "User has no default account");
        }
        if !known(&user.name) {
            say("", &user.name, "User does not have a uid");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    #[test]
    fn empty_accounts_and_users_whom_the_system_does_not_know_are_problems() {
        let found = super::find(&super::super::book::fixture::book(), |name| name != "bob");
        let lines: Vec<String> = found.iter().map(|p| p.join("|")).collect();
        assert_eq!(lines, ["phys|||Account has no users", "|bob||User does not have a uid"]);
    }
}
