//! `sluice-ctld`: the controller daemon and its administration of keys.

use clap::{Args, Parser, Subcommand};
use sluice_ctld::{logging, run};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Parser)]
#[command(name = "sluice-ctld", version, about = "Controller daemon of Sluice")]
struct Cli {
    #[command(subcommand)]
    command: Sub,
}

#[derive(Subcommand)]
enum Sub {
    /// Make the cluster's keys and certificate authority
    Init {
        #[arg(long, default_value = "/var/lib/sluice/ctld")]
        state: PathBuf,
        /// The cluster's name, as cluster_name in the configuration
        #[arg(long)]
        cluster: String,
    },
    /// Issue a host's identity into a folder on this machine (other hosts join with a token)
    IssueHost(IssueHost),
    /// Make a one-time token with which another host joins (`sluice-noded join`); a running controller knows it at once
    JoinToken(JoinToken),
    /// Run the controller
    Run {
        #[arg(long, default_value = "/etc/sluice/sluice.toml")]
        config: PathBuf,
        #[arg(long, default_value = "/var/lib/sluice/ctld")]
        state: PathBuf,
        /// Address for other hosts (TLS); without it only this host is served
        #[arg(long)]
        listen: Option<SocketAddr>,
        #[arg(long, default_value = "/run/sluice/ctld.sock")]
        socket: PathBuf,
        /// Write the address that was taken to this file
        #[arg(long)]
        address_file: Option<PathBuf>,
        /// What to log: error, warn, info, debug, trace, or a filter
        #[arg(long, default_value = "info")]
        log: String,
    },
}

#[derive(Args)]
struct IssueHost {
    #[arg(long, default_value = "/var/lib/sluice/ctld")]
    state: PathBuf,
    #[arg(long)]
    host: String,
    /// May vouch for any user
    #[arg(long)]
    login: bool,
    /// Is the compute node of this name
    #[arg(long)]
    compute: bool,
    #[arg(long)]
    out: PathBuf,
}

#[derive(Args)]
struct JoinToken {
    #[arg(long, default_value = "/var/lib/sluice/ctld")]
    state: PathBuf,
    /// Good for the host of this name alone
    #[arg(long)]
    host: Option<String>,
    /// The host may vouch for any user
    #[arg(long)]
    login: bool,
    /// The host is the compute node of its name
    #[arg(long)]
    compute: bool,
    /// Minutes until it expires
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=43_200))]
    valid: u32,
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Sub::Init { state, cluster } => sluice_ctld::keys::init(&state, &cluster),
        Sub::IssueHost(i) => sluice_ctld::keys::issue_host(&i.state, &i.host, i.login, i.compute, &i.out),
        Sub::JoinToken(t) => {
            let valid = std::time::Duration::from_secs(60 * u64::from(t.valid));
            sluice_ctld::keys::join_token(&t.state, t.host.as_deref(), t.login, t.compute, valid)
        }
        Sub::Run { config, state, listen, socket, address_file, log } => {
            logging::init(&log);
            run::run(run::RunOptions { config, state, listen, socket, address_file })
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("sluice-ctld: error: {error}");
            ExitCode::FAILURE
        }
    }
}
