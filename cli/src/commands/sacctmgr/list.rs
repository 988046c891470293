//! `sacctmgr list` and `show`: conditions, which lines there are, and their layout.
//!
//! Source: sacctmgr(1), "SPECIFICATIONS FOR …" and "LIST/SHOW … FORMAT OPTIONS".

use super::book::{Book, Node};
use super::fields::{self, Entity, Field};
use super::values::{self, Line, Show};
use super::words::{self, find};
use crate::render::table::{Column, Form, write_header, write_row};

/// What was asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Query {
    pub entity: Entity,
    pub names: Vec<String>,
    pub accounts: Vec<String>,
    pub users: Vec<String>,
    pub clusters: Vec<String>,
    pub partitions: Vec<String>,
    pub parents: Vec<String>,
    pub organizations: Vec<String>,
    pub descriptions: Vec<String>,
    pub ids: Vec<String>,
    pub qos: Vec<String>,
    pub default_qos: Vec<String>,
    pub format: Option<String>,
    pub with_associations: bool,
    pub with_coordinators: bool,
    pub with_sub_accounts: bool,
    pub only_defaults: bool,
    pub limits: bool,
    pub show: Show,
}

#[derive(Clone, Copy)]
enum Condition {
    Names,
    Accounts,
    Users,
    Clusters,
    Partitions,
    Parents,
    Organizations,
    Descriptions,
    Ids,
    Qos,
    DefaultQos,
    Format,
}

#[derive(Clone, Copy)]
enum Switch {
    Associations,
    Coordinators,
    SubAccounts,
    OnlyDefaults,
    Tree,
    NoLimits,
    NoParents,
    NoParentLimits,
    RawQos,
    /// Nothing that is deleted is kept.
    Deleted,
    /// `where` and `set` in front of conditions.
    Word,
}

static CONDITIONS: &[(&str, Condition)] = &[
    ("Names", Condition::Names),
    ("Accounts", Condition::Accounts),
    ("Acct", Condition::Accounts),
    ("Users", Condition::Users),
    ("Clusters", Condition::Clusters),
    ("Partitions", Condition::Partitions),
    ("Parents", Condition::Parents),
    ("Organizations", Condition::Organizations),
    ("Descriptions", Condition::Descriptions),
    ("IDs", Condition::Ids),
    ("QosLevel", Condition::Qos),
    ("DefaultQOS", Condition::DefaultQos),
    ("DefQOS", Condition::DefaultQos),
    ("Format", Condition::Format),
];

static SWITCHES: &[(&str, Switch)] = &[
    ("WithAssociations", Switch::Associations),
    ("WithCoordinators", Switch::Coordinators),
    ("WithSubAccounts", Switch::SubAccounts),
    ("OnlyDefaults", Switch::OnlyDefaults),
    ("Tree", Switch::Tree),
    ("WOLimits", Switch::NoLimits),
    ("WOPInfo", Switch::NoParents),
    ("WOPLimits", Switch::NoParentLimits),
    ("WithRawQOSLevel", Switch::RawQos),
    ("WithDeleted", Switch::Deleted),
    ("where", Switch::Word),
];

impl Query {
    pub fn new(entity: Entity) -> Query {
        let none = Vec::new;
        Query {
            entity,
            names: none(),
            accounts: none(),
            users: none(),
            clusters: none(),
            partitions: none(),
            parents: none(),
            organizations: none(),
            descriptions: none(),
            ids: none(),
            qos: none(),
            default_qos: none(),
            format: None,
            with_associations: entity == Entity::Association,
            with_coordinators: false,
            with_sub_accounts: false,
            only_defaults: false,
            limits: true,
            show: Show { tree: false, inherited: true, parents: true, raw_qos: false },
        }
    }

    /// The words after the entity. The error is a whole line.
    pub fn parse(entity: Entity, words: &[String]) -> Result<Query, String> {
        let mut q = Query::new(entity);
        for text in words {
            let word = words::parse(text);
            let Some(value) = &word.value else {
                match find(SWITCHES, &word.key) {
                    Some(switch) => q.switch(*switch),
                    None => q.names.extend(words::list(text)),
                }
                continue;
            };
            let list = match find(CONDITIONS, &word.key) {
                Some(Condition::Format) => {
                    q.format = Some(value.clone());
                    continue;
                }
                Some(Condition::Names) => &mut q.names,
                Some(Condition::Accounts) => &mut q.accounts,
                Some(Condition::Users) => &mut q.users,
                Some(Condition::Clusters) => &mut q.clusters,
                Some(Condition::Partitions) => &mut q.partitions,
                Some(Condition::Parents) => &mut q.parents,
                Some(Condition::Organizations) => &mut q.organizations,
                Some(Condition::Descriptions) => &mut q.descriptions,
                Some(Condition::Ids) => &mut q.ids,
                Some(Condition::Qos) => &mut q.qos,
                Some(Condition::DefaultQos) => &mut q.default_qos,
                None => return Err(format!(" Unknown condition: {text}")),
            };
            list.extend(words::list(value));
        }
        Ok(q)
    }

    fn switch(&mut self, switch: Switch) {
        match switch {
            Switch::Associations => self.with_associations = true,
            Switch::Coordinators => self.with_coordinators = true,
            Switch::SubAccounts => self.with_sub_accounts = true,
            Switch::OnlyDefaults => self.only_defaults = true,
            Switch::Tree => self.show.tree = true,
            Switch::NoLimits => self.limits = false,
            Switch::NoParents => (self.show.parents, self.show.inherited) = (false, false),
            Switch::NoParentLimits => self.show.inherited = false,
            Switch::RawQos => self.show.raw_qos = true,
            Switch::Deleted | Switch::Word => {}
        }
    }

    fn columns(&mut self) -> Result<Vec<Column<Field>>, String> {
        let default = fields::default_format(self.entity, self.with_associations, self.with_coordinators, self.limits);
        let text = self.format.clone().unwrap_or(default);
        let words: Vec<&str> = text.split(',').filter(|w| !w.is_empty()).collect();
        // A field of associations asks for them.
        self.with_associations |= words.iter().any(|w| self.entity.is_of_association(w.split('%').next().unwrap_or(w)));
        let mut columns = words.iter().map(|w| fields::column(self.entity, w)).collect::<Result<Vec<_>, _>>()?;
        if self.show.tree {
            for (column, word) in columns.iter_mut().zip(&words) {
                if column.field == Field::Account && !word.contains('%') {
                    (column.width, column.right) = (20, false);
                }
            }
        }
        Ok(columns)
    }
}

/// No condition, or one that fits; names in any case.
fn among(list: &[String], name: &str) -> bool {
    list.is_empty() || list.iter().any(|l| l.eq_ignore_ascii_case(name))
}

/// The whole listing. `texts` are the lines of entities that the book does not hold.
pub fn listing(
    book: &Book,
    query: &mut Query,
    form: &Form,
    header: bool,
    texts: &[Vec<String>],
) -> Result<Vec<u8>, String> {
    let columns = query.columns()?;
    let mut out = Vec::new();
    if header {
        write_header(form, &columns, &mut out);
    }
    if !among(&query.clusters, &book.cluster) {
        return Ok(out);
    }
    let tree = book.tree();
    let lines = match query.entity {
        Entity::Association => associations(book, &tree, query, |a| among(&query.users, a.unwrap_or_default())),
        Entity::Account => accounts(book, &tree, query),
        Entity::User => users(book, &tree, query),
        Entity::Qos => qos(book, query),
        Entity::Cluster if among(&query.names, &book.cluster) => {
            let root = tree.first().copied();
            vec![Line { node: root, text: texts.first().map(Vec::as_slice).unwrap_or_default(), ..Line::default() }]
        }
        Entity::Cluster => Vec::new(),
        Entity::Tres | Entity::Problem | Entity::Wckey => {
            texts.iter().map(|t| Line { text: t, ..Line::default() }).collect()
        }
    };
    for line in &lines {
        write_row(form, &columns, |c| values::value(book, query.show, line, c.field), &mut out);
    }
    Ok(out)
}

fn fits(book: &Book, query: &Query, node: &Node<'_>) -> bool {
    let a = node.association;
    let account = if query.with_sub_accounts && !query.accounts.is_empty() {
        book.chain(a).iter().any(|x| among(&query.accounts, &x.account))
    } else {
        among(&query.accounts, &a.account)
    };
    let set = |list: &[String], value: Option<&str>| list.is_empty() || value.is_some_and(|v| among(list, v));
    account
        && set(&query.partitions, a.partition.as_deref())
        && set(&query.parents, book.parent_account(&a.account))
        && set(&query.default_qos, book.default_qos(a, true).as_deref())
        && (query.ids.is_empty() || query.ids.contains(&a.id.to_string()) || query.entity == Entity::Qos)
        && (query.qos.is_empty() || book.allowed_qos(a).iter().any(|q| among(&query.qos, q)))
        && (!query.only_defaults || is_default(book, a))
}

fn is_default(book: &Book, a: &sluice_model::accounting::Association) -> bool {
    let user = a.user.as_ref().and_then(|u| book.users.get(u));
    user.is_some_and(|u| u.default_account.as_ref() == Some(&a.account))
}

fn associations<'b>(
    book: &'b Book,
    tree: &[Node<'b>],
    query: &Query,
    user: impl Fn(Option<&str>) -> bool,
) -> Vec<Line<'b>> {
    tree.iter()
        .filter(|n| fits(book, query, n) && user(n.association.user.as_deref()))
        .map(|n| Line { node: Some(*n), ..Line::default() })
        .collect()
}

fn accounts<'b>(book: &'b Book, tree: &[Node<'b>], query: &Query) -> Vec<Line<'b>> {
    let mut out = Vec::new();
    for account in book.accounts.values() {
        let named = among(&query.names, &account.name) && among(&query.accounts, &account.name);
        let parent = query.parents.is_empty() || account.parent.as_ref().is_some_and(|p| among(&query.parents, p));
        let described =
            among(&query.organizations, &account.organization) && among(&query.descriptions, &account.description);
        if !named || !parent || !described {
            continue;
        }
        let line = Line { account: Some(account), ..Line::default() };
        if !query.with_associations {
            out.push(line);
            continue;
        }
        let inside = tree.iter().filter(|n| n.association.account == account.name && fits(book, query, n));
        let inside = inside.filter(|n| among(&query.users, n.association.user.as_deref().unwrap_or_default()));
        out.extend(inside.map(|n| Line { node: Some(*n), ..line }));
    }
    out
}

fn users<'b>(book: &'b Book, tree: &[Node<'b>], query: &Query) -> Vec<Line<'b>> {
    let mut out = Vec::new();
    for user in book.users.values() {
        if !among(&query.names, &user.name) || !among(&query.users, &user.name) {
            continue;
        }
        let of: Vec<&Node<'b>> =
            tree.iter().filter(|n| n.association.user.as_ref() == Some(&user.name) && fits(book, query, n)).collect();
        let line = Line { user: Some(user), ..Line::default() };
        let narrowed = !query.accounts.is_empty() || !query.partitions.is_empty() || !query.qos.is_empty();
        if query.with_associations {
            out.extend(of.iter().map(|n| Line { node: Some(**n), ..line }));
        } else if !narrowed || !of.is_empty() {
            out.push(line);
        }
    }
    out
}

fn qos<'b>(book: &'b Book, query: &Query) -> Vec<Line<'b>> {
    let mut all: Vec<_> = book.qos.values().collect();
    all.sort_by_key(|q| q.id);
    all.into_iter()
        .filter(|q| among(&query.names, &q.name) && among(&query.descriptions, &q.description))
        .filter(|q| query.ids.is_empty() || query.ids.contains(&q.id.to_string()))
        .map(|q| Line { qos: Some(q), ..Line::default() })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::book::fixture::book;
    use super::*;

    fn list(entity: Entity, words: &str, form: &Form) -> String {
        let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
        let mut query = Query::parse(entity, &words).unwrap();
        String::from_utf8(listing(&book(), &mut query, form, true, &[]).unwrap()).unwrap()
    }

    fn plain(entity: Entity, words: &str) -> String {
        list(entity, words, &Form::Delimited { delimiter: "|".to_owned(), trailing: false })
    }

    #[test]
    fn the_default_table_of_qos_is_that_of_slurm_26_05() {
        let expected = "Name|Priority|GraceTime|Preempt|PreemptExemptTime|PreemptMode|Flags|UsageThres|UsageFactor|GrpTRES|\
                        GrpTRESMins|GrpTRESRunMins|GrpJobs|GrpSubmit|GrpWall|MaxTRES|MaxTRESPerNode|MaxTRESMins|MaxWall|\
                        MaxTRESPU|MaxJobsPU|MaxSubmitPU|MaxTRESPA|MaxTRESRunMinsPA|MaxTRESRunMinsPU|MaxJobsPA|\
                        MaxSubmitPA|MinTRES\n\
                        normal|0|00:00:00|||cluster|||1.000000|||||||||||||||||||\n";
        assert_eq!(plain(Entity::Qos, "normal"), expected);
    }

    #[test]
    fn the_default_table_of_associations_is_that_of_slurm_26_05() {
        let text = list(Entity::Association, "account=root", &Form::Fixed);
        let expected = concat!(
            "   Cluster    Account       User  Partition     Share   Priority GrpJobs       GrpTRES GrpSubmit     GrpWall ",
            "  GrpTRESMins MaxJobs       MaxTRES MaxTRESPerNode MaxSubmit     MaxWall   MaxTRESMins                  QOS ",
            "  Def QOS GrpTRESRunMin "
        );
        assert_eq!(text.lines().next().unwrap(), expected);
        let line = text.lines().nth(3).unwrap();
        assert!(line.starts_with("      tiny       root       root                    1 "), "{line}");
        assert!(line.trim_end().ends_with("normal"), "{line}");
    }

    #[test]
    fn a_tree_indents_accounts_to_the_left() {
        let text = list(Entity::Association, "tree format=account,user,share", &Form::Fixed);
        let expected = "Account                    User     Share \n\
                        -------------------- ---------- --------- \n\
                        root                                    1 \n \
                        root                      root         1 \n \
                        chem                                   1 \n  \
                        chem                     adam        10 \n  \
                        chem                      bob         1 \n \
                        science                                1 \n  \
                        phys                             parent \n";
        assert_eq!(text, expected);
    }

    #[test]
    fn conditions_narrow_the_list_and_sub_accounts_widen_it() {
        let text = plain(Entity::Association, "account=science withsubaccounts format=account,user,parentname");
        assert_eq!(text, "Account|User|ParentName\nscience||root\nphys||science\n");
        assert_eq!(
            plain(Entity::Association, "user=adam format=user,qos,maxtres"),
            "User|QOS|MaxTRES\nadam|gold,normal|cpu=7,node=4\n"
        );
        assert_eq!(plain(Entity::Association, "user=adam woplimits format=maxtres"), "MaxTRES\n\n");
        assert_eq!(plain(Entity::Association, "cluster=other wolimits"), "Cluster|Account|User|Partition\n");
        assert_eq!(plain(Entity::User, "adam"), "User|Def Acct|Admin\nadam|chem|None\n");
        assert_eq!(plain(Entity::User, "adam format=user,account,share"), "User|Account|Share\nadam|chem|10\n");
        assert_eq!(plain(Entity::Account, "chem"), "Account|Descr|Org\nchem|the chem|uni\n");
        assert_eq!(
            plain(Entity::Account, "chem format=account,grpwall,user"),
            "Account|GrpWall|User\nchem|01:40:00|\nchem||adam\nchem||bob\n"
        );
    }

    #[test]
    fn unknown_conditions_and_fields_are_named() {
        let bad = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|w| (*w).to_owned()).collect();
            Query::parse(Entity::Association, &words).and_then(|mut q| q.columns()).unwrap_err()
        };
        assert_eq!(bad(&["nosuchkey=3"]), " Unknown condition: nosuchkey=3");
        assert_eq!(bad(&["format=nosuch"]), "Unknown field 'nosuch'");
    }
}
