//! `sshare`: shares, usage and fair-share factors of accounts and users.
//!
//! Owns the option table and the flow: settings → one list → rows of the tree. Source: sshare(1); layout and choice of
//! rows as Slurm was seen to print them.

mod fields;

use crate::client::{Controller, Retry};
use crate::getopt::{OptionSpec, Parsed};
use crate::render::table::{self, Column, Form};
use crate::viewing;
use fields::Field;
use sluice_proto::v1;
use std::ffi::OsString;
use std::process::ExitCode;

static OPTIONS: &[OptionSpec] = &[
    OptionSpec::value("accounts", "names", "only these accounts").short('A'),
    OptionSpec::flag("all", "all users").short('a'),
    OptionSpec::value("clusters", "clusters", "this cluster by its name, or all").short('M'),
    OptionSpec::value("cluster", "clusters", "").alias_of("clusters"),
    OptionSpec::value("format", "fields", "columns, as name[%[-]width],…").short('o'),
    OptionSpec::flag("help", "show this text"),
    OptionSpec::flag("helpformat", "list the fields of --format").short('e'),
    OptionSpec::flag("long", "usage and limits, too").short('l'),
    OptionSpec::flag("noheader", "no header lines").short('n'),
    OptionSpec::flag("no-header", "").short('h').alias_of("noheader"),
    OptionSpec::flag("parsable", "values between bars, with one at the end").short('p'),
    OptionSpec::flag("parsable2", "values between bars, with none at the end").short('P'),
    OptionSpec::flag("partition", "partitions of associations").short('m'),
    OptionSpec::flag("usage", "show the options in short"),
    OptionSpec::value("users", "names", "these users").short('u'),
    OptionSpec::value("uid", "names", "").alias_of("users"),
    OptionSpec::flag("Users", "users only, without their accounts").short('U'),
    OptionSpec::flag("verbose", "say what is asked for").short('v'),
    OptionSpec::flag("version", "say which Slurm this behaves like").short('V'),
];

pub fn options() -> &'static [OptionSpec] {
    OPTIONS
}

pub fn main(words: Vec<OsString>) -> ExitCode {
    match run(&words) {
        Ok(code) | Err(code) => code,
    }
}

struct Settings {
    columns: Vec<Column<Field>>,
    form: Form,
    header: bool,
    users_only: bool,
    /// None: all.
    users: Option<Vec<String>>,
    accounts: Vec<String>,
}

fn run(words: &[OsString]) -> Result<ExitCode, ExitCode> {
    let parsed = viewing::parse("sshare", "", OPTIONS, words)?;
    if parsed.has("helpformat") {
        return Ok(crate::out::print_or_complain("sshare", fields::help_text().as_bytes(), ExitCode::SUCCESS));
    }
    let settings = settings(&parsed, &viewing::me().user)?;
    if parsed.has("verbose") {
        let users = settings.users.as_ref().map_or_else(|| "all".to_owned(), |u| u.join(","));
        let accounts = if settings.accounts.is_empty() { "all".to_owned() } else { settings.accounts.join(",") };
        crate::errln!("Users requested:\n\t: {users}\nAccounts requested:\n\t: {accounts}");
    }
    let mut client = viewing::client("sshare")?;
    let cluster = client.config.cluster.clone();
    let headed = viewing::clusters("sshare", parsed.last("clusters").map(|g| g.text()).as_deref(), &cluster)?;
    let call = client.call(Retry::Read, async |mut c: Controller| c.list_shares(v1::Empty {}).await);
    let list = crate::client::block_on(call).map_err(|error| {
        crate::error::print_call_error("sshare", "", &error);
        ExitCode::from(1)
    })?;
    let mut out = Vec::new();
    if headed {
        out.extend_from_slice(format!("CLUSTER: {cluster}\n").as_bytes());
    }
    print(&settings, &cluster, &list, &mut out);
    Ok(crate::out::print_or_complain("sshare", &out, ExitCode::SUCCESS))
}

fn settings(parsed: &Parsed, me: &str) -> Result<Settings, ExitCode> {
    let list = |key: &str| parsed.all(key).flat_map(|g| viewing::list(&g.text())).collect::<Vec<_>>();
    let given = parsed.last("format").map(|g| g.text());
    let columns = match &given {
        Some(text) => fields::parse(text).map_err(|message| {
            crate::errln!("sshare: error: {message}");
            ExitCode::from(1)
        })?,
        None => fields::default_columns(parsed.has("long"), parsed.has("partition")),
    };
    let last = parsed.options.iter().rev().find(|o| matches!(o.key(), "parsable" | "parsable2"));
    let form = match last {
        None => Form::Fixed,
        Some(option) => Form::Delimited { delimiter: "|".to_owned(), trailing: option.key() == "parsable" },
    };
    let named = list("users");
    let users = match (parsed.has("all"), named.is_empty()) {
        (true, _) => None,
        (false, false) => Some(viewing::users(&named).0.into_iter().chain(named).collect()),
        // Of an account that is asked for, Slurm shows the caller's row as well.
        (false, true) => Some(vec![me.to_owned()]),
    };
    Ok(Settings {
        columns,
        form,
        header: !parsed.has("noheader"),
        users_only: parsed.has("Users"),
        users,
        accounts: list("accounts"),
    })
}

fn print(settings: &Settings, cluster: &str, list: &v1::ShareList, out: &mut Vec<u8>) {
    let rows: Vec<&v1::ShareRecord> = list.shares.iter().filter(|row| settings.shows(row)).collect();
    // Blanks are counted from the highest row shown.
    let top = rows.iter().map(|r| r.depth).min().unwrap_or(0);
    if settings.header {
        table::write_header(&settings.form, &settings.columns, out);
    }
    for row in rows {
        let indent = if settings.users_only { 0 } else { row.depth - top };
        table::write_row(&settings.form, &settings.columns, |c| c.field.value(row, indent, cluster), out);
    }
}

impl Settings {
    fn shows(&self, row: &v1::ShareRecord) -> bool {
        let is_user = !row.user.is_empty();
        let account = self.accounts.is_empty() || self.accounts.contains(&row.account);
        let user = match &self.users {
            Some(users) if is_user => users.contains(&row.user),
            _ => true,
        };
        account && user && (is_user || !self.users_only)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A part of the tree whose rows Slurm 22.05 was seen to print.
    fn list() -> v1::ShareList {
        let row =
            |id, depth, account: &str, user: &str, shares: Option<u32>, columns: [f64; 4], factor| v1::ShareRecord {
                id,
                account: account.into(),
                user: user.into(),
                depth,
                raw_shares: shares,
                norm_shares: columns[0],
                raw_usage: columns[1],
                norm_usage: columns[2],
                effective_usage: columns[3],
                fairshare: factor,
                level_fs: Some(if columns[3] > 0.0 { columns[0] / columns[3] } else { f64::INFINITY }),
                ..v1::ShareRecord::default()
            };
        let mut root = row(1, 0, "root", "", Some(1), [0.0, 1499.7, 1.0, 1.0], None);
        root.level_fs = None;
        root.tres_run_mins = vec![
            v1::TresAmount { name: "cpu".into(), amount: 40.0 },
            v1::TresAmount { name: "mem".into(), amount: 2560.9 },
        ];
        let mut lp = row(7, 3, "cc", "lp", None, [1.0 / 3.0, 149.9, 0.1, 1.0], Some(5.0 / 14.0));
        lp.level_fs = None;
        v1::ShareList {
            shares: vec![
                root,
                row(2, 1, "root", "root", Some(1), [1.0 / 108.0, 0.0, 0.0, 0.0], Some(1.0)),
                row(3, 1, "aa", "", Some(40), [40.0 / 108.0, 449.0, 0.3, 0.3], None),
                row(4, 2, "aa", "bin", Some(20), [0.5, 149.9, 0.1, 1.0 / 3.0], Some(0.5)),
                row(5, 1, "bb", "", Some(30), [30.0 / 108.0, 599.0, 0.4, 0.4], None),
                row(6, 2, "cc", "", Some(1), [1.0 / 3.0, 149.0, 0.1, 0.25], None),
                lp,
            ],
            fair_tree: true,
            now: 0,
        }
    }

    fn shown(words: &[&str]) -> String {
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        let parsed = crate::getopt::parse(OPTIONS, &words, crate::getopt::Operands::Mixed).expect("the words parse");
        let settings = settings(&parsed, "root").expect("the settings are good");
        let mut out = Vec::new();
        print(&settings, "tiny", &list(), &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_tree_is_printed_as_slurm_prints_it() {
        let text = "\
Account                    User  RawShares  NormShares    RawUsage  EffectvUsage  FairShare 
-------------------- ---------- ---------- ----------- ----------- ------------- ---------- 
root                                          0.000000        1499      1.000000            
 root                      root          1    0.009259           0      0.000000   1.000000 
 aa                                     40    0.370370         449      0.300000            
  aa                        bin         20    0.500000         149      0.333333   0.500000 
 bb                                     30    0.277778         599      0.400000            
  cc                                     1    0.333333         149      0.250000            
   cc                        lp     parent    0.333333         149      1.000000   0.357143 
";
        assert_eq!(shown(&["-a"]), text);
        let own: Vec<&str> = text.lines().filter(|l| !l.contains(" bin ") && !l.contains(" lp ")).collect();
        assert_eq!(shown(&[]).lines().collect::<Vec<_>>(), own, "without -a, the caller's rows and all accounts");
    }

    #[test]
    fn the_long_view_has_levels_limits_and_running_minutes() {
        let text = shown(&["-a", "-l"]);
        let mut lines = text.lines();
        assert_eq!(
            lines.next(),
            Some(
                "Account                    User  RawShares  NormShares    RawUsage   NormUsage  EffectvUsage  FairShare    LevelFS                    GrpTRESMins                    TRESRunMins "
            )
        );
        let root = lines.nth(1).unwrap();
        assert_eq!(
            root.split_whitespace().collect::<Vec<_>>(),
            ["root", "0.000000", "1499", "1.000000", "cpu=40,mem=2560"]
        );
        assert!(lines.next().unwrap().contains("1.000000        inf "));
        assert_eq!(shown(&["-an", "-P", "-o", "account,levelfs", "-A", "aa"]), "aa|1.234568\n aa|1.500000\n");
    }

    #[test]
    fn users_accounts_and_forms_select_and_lay_out() {
        assert_eq!(shown(&["-U", "-u", "bin", "-P", "-n"]), "aa|bin|20|0.500000|149|0.333333|0.500000\n");
        assert_eq!(shown(&["-A", "aa", "-n", "-p", "-o", "Account,User,RawShares"]), "aa||40|\n");
        assert_eq!(
            shown(&["-A", "aa", "-a", "-n", "-o", "account%4,user%-5,cluster,id"]),
            "  aa             tiny      3 \n  aa bin         tiny      4 \n"
        );
        assert!(
            shown(&["-m", "-a"]).starts_with("Account                    User    Partition  RawShares  NormShares")
        );
        assert!(
            fields::help_text()
                .starts_with("Account           Cluster           EffectvUsage      FairShare        \n")
        );
    }
}
