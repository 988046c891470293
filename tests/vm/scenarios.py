#!/usr/bin/env python3
"""Sluice in a virtual machine, installed as packaging/README.md says and run by a real systemd.

  scenarios.py systemd     both daemons by their units; a job outlives restarts and kills of either
  scenarios.py powercut    the controller's power is cut under load again and again; what was acknowledged is there

Environment: SLUICE_BIN (folder with sluice, sluice-ctld, sluice-noded), VMLAB (where images are kept; see vmlab.py),
SLUICE_SEED, SLUICE_CUTS (10).
"""
import collections, fcntl, hashlib, os, random, shutil, signal, subprocess, sys, tempfile, time

HERE = os.path.dirname(os.path.abspath(__file__)); ROOT = os.path.dirname(os.path.dirname(HERE))
os.environ.setdefault('VMLAB', os.path.join(tempfile.gettempdir(), 'sluice-vmlab'))
sys.path.insert(0, HERE)
import vmlab

BIN = os.environ.get('SLUICE_BIN') or os.path.join(ROOT, 'target/release')
# Guests are emulated where the processor can't help: everything takes about 15 times longer, and the host may be busy.
PATIENCE = 300

def say(*what): print(f'[{time.time() - T0:6.1f} s]', *what, flush=True)
T0 = time.time()

def image():
    """Builds the guest's image once for each version of the script that makes it."""
    with open(HERE + '/vmlab.py', 'rb') as f: key = hashlib.sha256(f.read()).hexdigest()
    stamp = vmlab.W + '/built'
    if not (os.path.exists(stamp) and open(stamp).read() == key and os.path.exists(vmlab.W + '/base.ext4')):
        say('building the image'); vmlab.build(); open(stamp, 'w').write(key)

def share(run):
    """What gets installed: programs, units, a configuration."""
    d = run + '/share'; os.makedirs(d + '/bin')
    for name in ('sluice', 'sluice-ctld', 'sluice-noded'):
        shutil.copy(f'{BIN}/{name}', d + '/bin/'); subprocess.run(['strip', d + '/bin/' + name], check=False)
    shutil.copytree(ROOT + '/packaging', d + '/packaging')
    vmlab.write(d + '/sluice.toml', CONFIG); vmlab.write(d + '/load', LOAD, 0o755); vmlab.write(d + '/install', INSTALL, 0o755)
    return d

CONFIG = '''cluster_name = "vm"

[[node]]
name = "n1"
cpus = 4
memory_mb = 256

[[partition]]
name = "main"
nodes = "n1"
default = true
max_time = "1-00:00:00"
'''

# As packaging/README.md has it.
INSTALL = r'''#!/bin/sh
set -eux
H=/host
install -m 755 $H/bin/sluice /usr/bin/
install -m 755 $H/bin/sluice-ctld $H/bin/sluice-noded /usr/sbin/
for c in sbatch srun squeue sinfo sacct scancel scontrol; do ln -sf sluice /usr/bin/$c; done
mkdir -p /usr/lib/systemd/system /usr/lib/sysusers.d /usr/lib/tmpfiles.d /etc/sluice
install -m 644 $H/packaging/systemd/* /usr/lib/systemd/system/
install -m 644 $H/packaging/sysusers.d/* /usr/lib/sysusers.d/
install -m 644 $H/packaging/tmpfiles.d/* /usr/lib/tmpfiles.d/
install -m 644 $H/sluice.toml /etc/sluice/
install -m 755 $H/load /usr/local/bin/load
printf 'cluster = "vm"\nsocket = "/run/sluice/ctld.sock"\n' >/etc/sluice/client.toml
systemd-sysusers
systemd-tmpfiles --create sluice.conf
runuser -u sluice -- /usr/sbin/sluice-ctld init --cluster vm
/usr/sbin/sluice-ctld issue-host --host n1 --login --compute --out /var/lib/sluice/noded/identity
id ada 2>/dev/null || useradd -m ada
systemctl daemon-reload
systemctl enable sluice-ctld
sync
'''

# A job that goes on until it is told to end.
JOB = '''#!/bin/sh
echo $$
while [ ! -e /tmp/go ]; do sleep 0.5; done
echo done
exit 3
'''

# One worker of the load. What is told on the port was acknowledged before. S: submitted, C: comment set, X: cancelled.
LOAD = r'''#!/bin/bash
W=$1 P=/dev/virtio-ports/sluice.acks
cd /tmp
n=0
while :; do
  n=$((n+1))
  id=$(sbatch --parsable --hold --job-name=w$W-$n --wrap "exit $n") || continue
  echo "S $id w$W-$n" >$P
  case $((n % 3)) in
    1) scontrol update jobid=$id comment=c$W-$n && echo "C $id c$W-$n" >$P;;
    2) scancel $id && echo "X $id" >$P;;
  esac
done
'''

class Host(vmlab.Guest):
    def until(self, what, cmd, ok=lambda out: True, seconds=PATIENCE):
        """Runs a command until it succeeds and its output is as wanted."""
        end = time.time() + seconds
        while True:
            rc, out, err = self.run(cmd, timeout=seconds)
            if rc == 0 and ok(out.strip()): return out.strip()
            if time.time() > end: raise AssertionError(f'{what}: not within {seconds} s; last: {rc} {out!r} {err!r}\n{self.logs()}')
            time.sleep(.5)
    def logs(self):
        return self.run('journalctl -b --no-pager -u sluice-ctld -u sluice-noded -n 60; systemctl status sluice-ctld sluice-noded --no-pager -l')[1]
    def must(self, cmd, timeout=PATIENCE):
        rc, out, err = self.run(cmd, timeout=timeout)
        if rc: raise AssertionError(f'{cmd}: exit {rc}\n{out}{err}\n{self.logs()}')
        return out.strip()

def guest(run):
    image()
    g = Host(run, 'n1', 1).start(); say('guest is up', g.stat())
    g.share(share(run)); g.must('sh /host/install 2>&1'); say('installed')
    return g

def start(g, *units):
    for unit in units:
        g.must(f'systemctl start {unit}'); assert g.must(f'systemctl is-active {unit}') == 'active'

def systemd(run):
    g = guest(run); start(g, 'sluice-ctld', 'sluice-noded'); say('both units are active')
    assert g.must('systemctl show -p User --value sluice-ctld') == 'sluice'
    g.until('the node joins', 'sinfo -h -o %t', lambda out: out == 'idle')
    rc, job, err = g.run('cat >/tmp/job.sh && cd /tmp && runuser -u ada -- sbatch --parsable -o /tmp/out-%j job.sh', stdin=JOB.encode(), timeout=PATIENCE); job = job.strip()
    assert rc == 0, err; say('job', job)
    pid = g.until('the job runs', f'cat /tmp/out-{job}', lambda out: out.isdigit())
    unit = g.must(f'cat /proc/{pid}/cgroup'); say('its cgroup:', unit); assert unit.startswith('0::/sluice.slice/sluice-jobs.service/sluice-n1'), unit
    alive = f'kill -0 {pid}'
    def same(after):
        g.must(alive)
        g.until(f'the job runs on after {after}', f'squeue -h -j {job} -o %T', lambda out: out == 'RUNNING')
        g.until(f'the node is back after {after}', 'sinfo -h -o %t', lambda out: out in ('alloc', 'mix'))
        g.must(alive); say('the job outlived', after)
    g.must('systemctl restart sluice-noded'); same('a restart of the node daemon')
    g.must('systemctl restart sluice-ctld'); same('a restart of the controller')
    for unit in ('sluice-noded', 'sluice-ctld'):
        before = g.must(f'systemctl show -p NRestarts --value {unit}'); g.must(f'systemctl kill -s KILL --kill-who=main {unit}')
        g.until(f'{unit} is started again', f'systemctl show -p NRestarts --value {unit}', lambda out: int(out) > int(before))
        g.until(f'{unit} is active again', f'systemctl is-active {unit}'); same(f'kill -9 of {unit}')
    g.must('systemctl stop sluice-noded'); g.must('touch /tmp/go')
    g.until('the job ends while its node daemon is down', f'tail -1 /tmp/out-{job}', lambda out: out == 'done')
    g.must('systemctl start sluice-noded')
    g.until('its record', f'sacct -n -X -P -j {job} -o State,ExitCode', lambda out: out == 'FAILED|3:0'); say('ended while the node daemon was down; its exit status is there')
    watch = g.must('systemctl show -p WatchdogUSec -p Type -p Delegate -p KillMode sluice-noded'); say(watch.split())
    lines = g.must('journalctl -b --no-pager -o json -u sluice-ctld -n 5'); assert '"PRIORITY"' in lines
    g.must('systemctl stop sluice-noded sluice-ctld'); g.power_off()

def acks(g):
    """What the guest acknowledged so far. A line cut short was not."""
    with open(g.d + '/acks.log') as f: text = f.read()
    return [line.split() for line in text[:text.rfind('\n') + 1].splitlines()]

def powercut(run):
    seed = int(os.environ.get('SLUICE_SEED') or time.time()); rnd = random.Random(seed); cuts = int(os.environ.get('SLUICE_CUTS', '10')); say('SLUICE_SEED =', seed)
    g = guest(run); start(g, 'sluice-ctld'); known = collections.Counter()
    for cut in range(1, cuts + 1):
        before = len(acks(g)) if os.path.exists(g.d + '/acks.log') else 0
        g.must('for w in 1 2 3; do systemd-run -q --collect load $w; done')
        end, least, more = time.time() + PATIENCE, before + rnd.randrange(5, 40), rnd.random() * 2
        while not os.path.exists(g.d + '/acks.log') or len(acks(g)) < least:
            if time.time() > end: raise AssertionError(f'no load after {PATIENCE} s: {len(acks(g)) - before} acknowledgements\n{g.logs()}')
            time.sleep(.05)
        time.sleep(more); g.power_off(); told = acks(g)
        g.start(); g.until('the controller is up again', 'systemctl is-active sluice-ctld'); g.until('it answers', 'scontrol ping')
        verify(g, told); say(f'cut {cut}: {len(told) - before} acknowledgements more, {len(told)} in all, every one is there')
    g.power_off()

def verify(g, told):
    rows = {}
    out = g.must("squeue -a -h -t all -o '%i|%j|%T|%k'") + '\n' + g.must('sacct -a -n -X -P -S 1970-01-01 -o JobIDRaw,JobName,State,Comment')
    for line in out.splitlines():
        if line.count('|') >= 3:
            job, name, state, comment = line.split('|', 3); rows.setdefault(job, (name, state, comment))
    named, lost = {}, []
    for what, job, *rest in told:
        name, state, comment = rows.get(job, (None, None, None))
        if what == 'S':
            if named.setdefault(job, rest[0]) != rest[0]: lost.append(f'{job} was given to {named[job]} and to {rest[0]}')
            if name != rest[0]: lost.append(f'submission {job} {rest[0]}: found {name}')
        elif what == 'C' and comment != rest[0]: lost.append(f'comment {rest[0]} of {job}: found {comment}')
        elif what == 'X' and not (state or '').startswith('CANCELLED'): lost.append(f'{job} was cancelled: found {state}')
    if lost: raise AssertionError(f'{len(lost)} of {len(told)} acknowledgements were broken: ' + '; '.join(lost[:20]))

if __name__ == '__main__':
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    os.makedirs(vmlab.W, exist_ok=True); one = open(vmlab.W + '/lock', 'w'); fcntl.flock(one, fcntl.LOCK_EX)   # guests share image and machine
    with tempfile.TemporaryDirectory(prefix='sluice-vm-') as run:
        {'systemd': systemd, 'powercut': powercut}[sys.argv[1]](run); say('passed')
