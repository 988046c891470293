//! The rows. `B`, `A`, `R`: sbatch, salloc (allocate), srun (run).

use crate::getopt::OptionSpec;

pub const B: u8 = 1;
pub const A: u8 = 2;
pub const R: u8 = 4;
const BA: u8 = B | A;
const BR: u8 = B | R;
const AR: u8 = A | R;
const ALL: u8 = B | A | R;

const fn flag(long: &'static str, help: &'static str) -> OptionSpec {
    OptionSpec::flag(long, help)
}
const fn value(long: &'static str, metavar: &'static str, help: &'static str) -> OptionSpec {
    OptionSpec::value(long, metavar, help)
}
const fn maybe(long: &'static str, metavar: &'static str, help: &'static str) -> OptionSpec {
    OptionSpec::maybe(long, metavar, help)
}

const NO_BURST_BUFFERS: &str = "there are no burst buffers";
const NO_CONTAINERS: &str = "containers come with a later release";
const NO_FEDERATION: &str = "there are no federations of clusters";
const NO_BCAST: &str = "copying the program to the nodes comes with a later release";

/// In the manual pages' order.
pub static ROWS: &[(u8, OptionSpec)] = &[
    (ALL, value("account", "name", "charge the job to this account").short('A')),
    (ALL, value("acctg-freq", "spec", "sampling intervals of accounting").stored()),
    (B, value("array", "indexes", "submit a job array: 0-15, 1,3,5-7, 0-15:4, with %limit at once").short('a')),
    (R, flag("async", "return at once").refused("steps that outlive srun come with a later release")),
    (B, value("batch", "features", "features of the node that runs the script")),
    (ALL, value("bb", "spec", "burst buffer").refused(NO_BURST_BUFFERS)),
    (ALL, value("bbf", "file", "burst buffer file").refused(NO_BURST_BUFFERS)),
    (R, maybe("bcast", "path", "copy the program to the nodes").refused(NO_BCAST)),
    (R, value("bcast-exclude", "paths", "libraries not to copy").refused(NO_BCAST)),
    (BR, value("begin", "time", "do not start before this time").short('b')),
    (A, value("begin", "time", "do not start before this time")),
    (A, flag("bell", "ring the terminal bell when the allocation is granted")),
    (ALL, value("chdir", "dir", "working directory").short('D')),
    (ALL, value("cluster-constraint", "list", "features of the cluster").refused(NO_FEDERATION)),
    (ALL, value("clusters", "name", "the cluster to use; only this one is known").short('M')),
    (ALL, value("comment", "text", "free text kept with the job")),
    (R, maybe("compress", "library", "compress what --bcast copies").refused(NO_BCAST)),
    (ALL, flag("consolidate-segments", "place segments together").stored()),
    (
        ALL,
        value("constraint", "features", "features that the nodes must have: a&b, a|b, a*2, [a|b], [a*2&b*4]")
            .short('C'),
    ),
    (ALL, value("container", "bundle", "OCI bundle").refused(NO_CONTAINERS)),
    (ALL, value("container-id", "id", "OCI container id").refused(NO_CONTAINERS)),
    (ALL, value("container-type", "type", "kind of container").refused(NO_CONTAINERS)),
    (ALL, flag("contiguous", "take neighbouring nodes")),
    (ALL, value("core-spec", "n", "cores reserved for the system").short('S').stored()),
    (ALL, value("cores-per-socket", "n", "cores that each socket must have, at least")),
    (R, value("cpu-bind", "type", "bind tasks to CPUs").stored()),
    (ALL, value("cpu-freq", "spec", "CPU frequency").stored()),
    (ALL, value("cpus-per-gpu", "n", "CPUs for each GPU").stored()),
    (ALL, value("cpus-per-task", "n", "CPUs for each task").short('c')),
    (ALL, value("deadline", "time", "remove the job when it cannot end by this time")),
    (ALL, value("delay-boot", "minutes", "delay the boot of nodes").stored()),
    (ALL, value("dependency", "type:jobid", "start after these jobs").short('d')),
    (R, flag("disable-status", "one Ctrl-C is passed on at once").short('X')),
    (
        ALL,
        value("distribution", "type", "how tasks are dealt out: block, cyclic, plane=n (arbitrary is refused)")
            .short('m'),
    ),
    (R, value("epilog", "program", "run after the step").refused("programs around a step come with a later release")),
    (BR, value("error", "file", "file for standard error").short('e')),
    (R, flag("exact", "use only the CPUs asked for")),
    (ALL, value("exclude", "hosts", "nodes not to use").short('x')),
    (ALL, maybe("exclusive", "user", "do not share nodes with other jobs")),
    (BR, value("export", "vars", "environment to pass on: ALL, NONE, NIL, names, NAME=value")),
    (B, value("export-file", "file|fd", "environment to pass on, NUL-separated NAME=value")),
    (
        R,
        maybe("external-launcher", "type", "start a foreign launcher's daemons")
            .refused("it comes with a later release"),
    ),
    (ALL, value("extra", "text", "free text for the site").stored()),
    (ALL, value("extra-node-info", "S[:C[:T]]", "sockets, cores, threads that nodes must have, at least").short('B')),
    (B, maybe("get-user-env", "mode", "start from the user's login environment")),
    (BA, value("gid", "group", "run with this group; only one's own")),
    (ALL, value("gpu-bind", "type", "bind tasks to GPUs").stored()),
    (ALL, value("gpu-mem", "size", "memory that each GPU must have, at least; Sluice's own")),
    (ALL, value("gpu-freq", "spec", "GPU frequency").stored()),
    (ALL, value("gpus", "n", "GPUs for the whole job").short('G')),
    (ALL, value("gpus-per-node", "n", "GPUs on each node")),
    (ALL, value("gpus-per-socket", "n", "GPUs on each socket")),
    (ALL, value("gpus-per-task", "n", "GPUs for each task")),
    (ALL, value("gres", "list", "generic resources on each node")),
    (ALL, value("gres-flags", "flags", "enforce-binding: only cores near the devices; disable-binding: any cores")),
    (ALL, flag("help", "show this help").short('h')),
    (R, value("het-group", "list", "components of a heterogeneous job").refused("there are no heterogeneous jobs")),
    (ALL, value("hint", "type", "binding hints").stored()),
    (ALL, flag("hold", "submit held").short('H')),
    (B, flag("ignore-pbs", "ignore #PBS lines in the script")),
    (R, value("ignore-signals", "list", "signals that srun ignores: INT, TERM …").stored()),
    (AR, maybe("immediate", "seconds", "give up when it cannot start within so many seconds").short('I')),
    (BR, value("input", "file", "file for standard input").short('i')),
    (ALL, value("job-name", "name", "name of the job").short('J')),
    (R, value("jobid", "id", "run in this job")),
    (A, maybe("kill-command", "signal", "kill the command when the allocation ends").short('K')),
    (R, maybe("kill-on-bad-exit", "0|1", "end the step when a task fails").short('K')),
    (B, value("kill-on-invalid-dep", "yes|no", "remove the job when its dependency cannot be met")),
    (R, flag("label", "put the task's number before each line").short('l')),
    (ALL, value("licenses", "names", "licences: name[:count],…").short('L')),
    (ALL, value("mail-type", "types", "when to send mail")),
    (ALL, value("mail-user", "user", "whom to send mail")),
    (ALL, value("mcs-label", "label", "security label").stored()),
    (ALL, value("mem", "size", "memory on each node, MB or with K, M, G, T")),
    (ALL, value("mem-bind", "type", "bind tasks to memory").stored()),
    (ALL, value("mem-per-cpu", "size", "memory for each CPU")),
    (ALL, value("mem-per-gpu", "size", "memory for each GPU")),
    (ALL, value("mem-update", "spec", "lower the memory of a running job").stored()),
    (ALL, value("mincpus", "n", "CPUs on each node, at least")),
    (R, value("mpi", "type", "kind of MPI: none")),
    (R, value("msg-timeout", "seconds", "time for answers of nodes").stored()),
    (R, flag("multi-prog", "the operand is a file that names a program for each task")),
    (ALL, value("network", "spec", "network of the job").stored()),
    (ALL, maybe("nice", "value", "lower the priority by this")),
    (R, flag("no-allocate", "run without an allocation").short('Z').refused("all tasks run in an allocation")),
    (A, flag("no-bell", "never ring the terminal bell")),
    (BA, flag("no-kill", "go on when a node fails").short('k').stored()),
    (R, flag("no-kill", "go on when a node fails").short('k').stored()),
    (B, flag("no-requeue", "never requeue the job")),
    (A, flag("no-shell", "leave at once and keep the allocation")),
    (ALL, value("nodefile", "file", "file with the nodes to use").short('F')),
    (ALL, value("nodelist", "hosts", "nodes that must be used").short('w')),
    (ALL, value("nodes", "min[-max]", "number of nodes").short('N')),
    (ALL, value("ntasks", "n", "number of tasks").short('n')),
    (ALL, value("ntasks-per-core", "n", "tasks on each core, at most")),
    (ALL, value("ntasks-per-gpu", "n", "tasks for each GPU").stored()),
    (ALL, value("ntasks-per-node", "n", "tasks on each node")),
    (ALL, value("ntasks-per-socket", "n", "tasks on each socket, at most")),
    (ALL, maybe("oom-kill-step", "0|1", "end the whole step when memory runs out").stored()),
    (BR, value("open-mode", "append|truncate", "how output files are opened")),
    (BR, value("output", "file", "file for standard output").short('o')),
    (ALL, flag("overcommit", "more tasks than CPUs").short('O')),
    (R, flag("overlap", "share CPUs with other steps of the job")),
    (ALL, flag("oversubscribe", "share CPUs with other jobs").short('s')),
    (B, flag("parsable", "print the job's number alone")),
    (R, flag("parsable", "print identifiers alone").refused("it belongs to --async, which comes with a later release")),
    (ALL, value("partition", "names", "partitions that may run the job").short('p')),
    (ALL, value("prefer", "features", "features that the nodes should have, in place of --constraint")),
    (R, flag("preserve-env", "the environment's task and node counts win").short('E')),
    (ALL, value("priority", "n", "priority; administrators only")),
    (ALL, value("profile", "types", "what to profile").stored()),
    (R, value("prolog", "program", "run before the step").refused("programs around a step come with a later release")),
    (BR, maybe("propagate", "limits", "resource limits to pass on: ALL, NONE, names")),
    (R, flag("pty", "run task 0 on a pseudo terminal")),
    (ALL, value("qos", "name", "quality of service").short('q')),
    (ALL, flag("quiet", "say only what went wrong").short('Q')),
    (R, flag("quit-on-interrupt", "one Ctrl-C ends the step")),
    (ALL, flag("reboot", "reboot the nodes first").refused("nodes are not rebooted for a job")),
    (R, value("relative", "n", "start at the n-th node of the job").short('r')),
    (B, flag("requeue", "requeue the job after a failure of its nodes")),
    (
        ALL,
        value("reservation", "name", "use this reservation")
            .refused("Requested reservation is invalid: there are no reservations yet"),
    ),
    (ALL, value("resources", "spec", "resources of the job").refused("it comes with a later release")),
    (ALL, maybe("resv-ports", "count", "reserve ports").stored()),
    (ALL, value("segment", "n", "nodes that belong together in one block of the topology")),
    (R, maybe("send-libs", "yes|no", "copy the program's libraries").refused(NO_BCAST)),
    (ALL, value("signal", "[{R|B}:]sig[@secs]", "signal to send before the time limit")),
    (R, value("slurmd-debug", "level", "how much the node daemon says").stored()),
    (ALL, value("sockets-per-node", "n", "sockets that each node must have, at least")),
    (ALL, flag("spread-job", "spread over as many nodes as can be used")),
    (ALL, flag("spread-segments", "spread segments").stored()),
    (ALL, flag("stepmgr", "manage steps on the job's first node; always so")),
    (ALL, value("switches", "n[@time]", "leaf switches, at most, and how long to wait for that")),
    (
        R,
        value("task-epilog", "program", "run after each task")
            .refused("programs around a task come with a later release"),
    ),
    (
        R,
        value("task-prolog", "program", "run before each task")
            .refused("programs around a task come with a later release"),
    ),
    (BR, flag("test-only", "say when and where the job would start")),
    (ALL, value("thread-spec", "n", "threads reserved for the system").stored()),
    (R, value("threads", "n", "threads of srun itself").short('T').stored()),
    (ALL, value("threads-per-core", "n", "threads that each core must have, at least")),
    (ALL, value("time", "limit", "time limit: minutes, mm:ss, h:m:s, d-h:m:s, UNLIMITED").short('t')),
    (ALL, value("time-min", "limit", "time limit that would do")),
    (ALL, value("tmp", "size", "temporary disk on each node, at least")),
    (R, value("treewidth", "n", "width of the message tree").stored()),
    (ALL, value("tres-bind", "spec", "bind tasks to resources").stored()),
    (ALL, value("tres-per-task", "list", "resources for each task").stored()),
    (BA, value("uid", "user", "run as this user; only oneself")),
    (R, flag("unbuffered", "pass output on at once, not line by line").short('u')),
    (ALL, flag("usage", "show a short summary")),
    (ALL, flag("use-min-nodes", "of a range of nodes, few")),
    (ALL, flag("verbose", "say more; may be repeated").short('v')),
    (ALL, flag("version", "show the version").short('V')),
    (B, flag("wait", "wait for the end of the job and exit as it did").short('W')),
    (R, value("wait", "seconds", "after the first task ended, time for the others").short('W')),
    (BA, value("wait-all-nodes", "0|1", "start when all nodes are ready").stored()),
    (R, flag("wait-for-children", "a task ends with the last of its processes").stored()),
    (ALL, value("wckey", "key", "workload characterization key")),
    (B, value("wrap", "command", "run this command line instead of a script")),
    (AR, maybe("x11", "mode", "forward X11").refused("X11 forwarding comes with a later release")),
];
