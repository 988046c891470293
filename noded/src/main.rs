//! `sluice-noded`: the node daemon, a login host's agent, and the supervisor of steps.

use clap::{Parser, Subcommand};
use sluice_noded::run::{self, Controller};
use sluice_noded::{hardware, logging, supervise};
use std::error::Error;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Parser)]
#[command(name = "sluice-noded", version, about = "Node daemon of Sluice")]
struct Cli {
    /// Print the hardware found here, in the form of the configuration file
    #[arg(short = 'C', long)]
    hardware: bool,
    #[command(subcommand)]
    command: Option<Sub>,
}

#[derive(Subcommand)]
enum Sub {
    /// Run the node daemon
    Run {
        /// The node's name, as the configuration has it
        #[arg(long)]
        name: String,
        #[arg(long, default_value = "/var/lib/sluice/noded")]
        state: PathBuf,
        /// The controller: unix:PATH or HOST:PORT
        #[arg(long)]
        controller: Controller,
        /// The cluster's certificate authority (default: that of the host's papers)
        #[arg(long)]
        ca: Option<PathBuf>,
        /// Address for srun and other nodes (TLS); port 0 takes any
        #[arg(long)]
        listen: Option<SocketAddr>,
        /// Host name or address under which others reach this node
        #[arg(long)]
        advertise: Option<String>,
        #[arg(long, default_value = "/run/sluice/noded.sock")]
        socket: PathBuf,
        /// The client configuration that jobs get as SLUICE_CONF
        #[arg(long)]
        client_config: Option<PathBuf>,
        /// Folder that is put first on the PATH of jobs
        #[arg(long)]
        path_prefix: Option<PathBuf>,
        /// Report the hardware that the configuration declares instead of this machine's
        #[arg(long)]
        declared: bool,
        /// The cgroup below which jobs get theirs, as a path from the hierarchy's root (default: the daemon's own)
        #[arg(long)]
        cgroup: Option<PathBuf>,
        /// What to log: error, warn, info, debug, trace, or a filter
        #[arg(long, default_value = "info")]
        log: String,
    },
    /// Keep a delegated cgroup for jobs, so that the daemon's own unit can be restarted (sluice-jobs.service)
    HoldCgroup,
    /// Vouch for the users of a login host
    Agent {
        #[arg(long, default_value = "/var/lib/sluice/noded")]
        state: PathBuf,
        #[arg(long, default_value = "/run/sluice/agent.sock")]
        socket: PathBuf,
        #[arg(long, default_value = "info")]
        log: String,
    },
    /// Get this host's papers from the controller with a one-time token
    Join {
        /// HOST:PORT
        #[arg(long)]
        controller: String,
        #[arg(long)]
        token: String,
        /// The host's name in the cluster (default: its short host name)
        #[arg(long)]
        name: Option<String>,
        #[arg(long, default_value = "/var/lib/sluice/noded")]
        state: PathBuf,
    },
    /// Hold one step (started by the daemon)
    #[command(hide = true)]
    Supervise { spool: PathBuf },
}

fn main() -> ExitCode {
    // A supervisor starts with every step: it need not wait for the options of everything else.
    let mut words = std::env::args_os().skip(1);
    let done = match (words.next(), words.next(), words.next()) {
        (Some(word), Some(spool), None) if word == "supervise" => supervise::run(spool.as_ref()).map_err(Into::into),
        _ => dispatch(Cli::parse()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("sluice-noded: error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(cli: Cli) -> Result<(), Box<dyn Error + Send + Sync>> {
    if cli.hardware {
        print!("{}", hardware::describe(&hardware::find()));
        return Ok(());
    }
    match cli.command {
        None => Err("a command is needed: run, agent, join (see --help)".into()),
        Some(Sub::Supervise { spool }) => Ok(supervise::run(&spool)?),
        Some(Sub::Run {
            name,
            state,
            controller,
            ca,
            listen,
            advertise,
            socket,
            client_config,
            path_prefix,
            declared,
            cgroup,
            log,
        }) => {
            logging::init(&log);
            run::run(run::Options {
                name,
                state,
                controller,
                ca,
                listen,
                advertise,
                socket,
                client_config,
                path_prefix,
                declared,
                cgroup,
            })
        }
        Some(Sub::HoldCgroup) => {
            sluice_noded::cgroup::hold().map_err(|e| format!("no cgroup for jobs: {e}"))?;
            sluice_noded::notify::notify("READY=1");
            loop {
                std::thread::park();
            }
        }
        Some(Sub::Agent { state, socket, log }) => {
            logging::init(&log);
            run::agent(&state, &socket)
        }
        Some(Sub::Join { controller, token, name, state }) => {
            let host = match name {
                Some(name) => name,
                None => hardware::find().hostname.split('.').next().unwrap_or_default().to_owned(),
            };
            run::join(&controller, &token, &host, &state)
        }
    }
}
