#!/usr/bin/env python3
"""Throw-away Debian 12 guests (systemd + cgroup v2) for tests: build, gold, demo. `scenarios.py` stands on it.

  vmlab.py build   root tree, kernel, initramfs, base.ext4   (needs the Debian registry)
  vmlab.py gold    boots one guest once and saves its whole state
  vmlab.py demo    two guests restored from that state: run, copy, cut the network, cut the power
"""
import atexit, base64, ctypes, glob, json, os, selectors, shutil, socket, subprocess, sys, tempfile, threading, time

W = os.environ.get('VMLAB') or os.path.join(tempfile.gettempdir(), 'sluice-vmlab')   # everything is kept below this folder
SOURCES = os.environ.get('VMLAB_SOURCES', '/etc/apt/sources.list.d/debian.sources')   # where this host itself gets Debian packages
MEM, SMP = int(os.environ.get('VM_MEM', '384')), '4,sockets=2,cores=2,threads=1'

# ---------------------------------------------------------------- image
PKGS = 'systemd,systemd-sysv,dbus,udev,kmod,iproute2,procps,qemu-guest-agent'
IDENT = r'''#!/bin/sh
# vmlab-ident NAME N [EPOCH]: who this guest is; arguments, else the kernel command line
NAME=$1 N=$2
if [ -z "$NAME" ]; then read -r L </proc/cmdline; for w in $L; do case $w in vm.name=*) NAME=${w#*=};; vm.n=*) N=${w#*=};; esac; done; fi
[ -n "$NAME" ] || exit 0
[ -z "$3" ] || date -s "@$3" >/dev/null
echo "$NAME" >/proc/sys/kernel/hostname; echo "$NAME" >/etc/hostname
{ echo 127.0.0.1 localhost; for i in 1 2 3 4 5 6 7 8; do echo "10.77.0.$i n$i"; done; } >/etc/hosts
printf 'link set lo up\nlink set eth0 down\nlink set eth0 address 52:54:00:77:00:0%s\naddr flush dev eth0\naddr add 10.77.0.%s/24 dev eth0\nlink set eth0 up\n' $N $N | ip -force -batch - 2>/dev/null
exit 0
'''
UNIT_IDENT = '''[Unit]
DefaultDependencies=no
After=systemd-modules-load.service
Before=sysinit.target network-pre.target shutdown.target
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/local/sbin/vmlab-ident
[Install]
WantedBy=sysinit.target
'''
TRIGGER = '[Service]\nExecStart=\nExecStart=-/bin/udevadm trigger --action=add --subsystem-match=net --subsystem-match=block --subsystem-match=virtio-ports\n'
MASK = '''systemd-logind.service systemd-binfmt.service dev-hugepages.mount dev-mqueue.mount sys-kernel-tracing.mount sys-kernel-debug.mount
 sys-kernel-config.mount sys-fs-fuse-connections.mount modprobe@drm.service modprobe@configfs.service modprobe@fuse.service modprobe@efi_pstore.service
 modprobe@loop.service modprobe@dm_mod.service systemd-pstore.service kmod-static-nodes.service systemd-journal-flush.service systemd-random-seed.service
 systemd-sysusers.service systemd-update-utmp.service systemd-update-utmp-runlevel.service systemd-timesyncd.service getty.target
 proc-sys-fs-binfmt_misc.automount apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer systemd-tmpfiles-clean.timer'''.split()
INIT = '''#!/bin/busybox sh
B=/bin/busybox
$B mount -t devtmpfs dev /dev
for m in /m/*; do $B insmod $m; done
n=0; while [ ! -b /dev/vda ] && [ $n -lt 200 ]; do $B sleep 0.05; n=$((n+1)); done
$B mount -t ext4 /dev/vda /root && exec $B switch_root -c /dev/console /root /sbin/init
'''
def sh(*a, **k): return subprocess.run(list(a), check=True, stdout=subprocess.PIPE, text=True, **k).stdout
def write(p, s, mode=0o644):
    os.makedirs(os.path.dirname(p), exist_ok=True); open(p, 'w').write(s); os.chmod(p, mode)

def build():
    R, t0 = W + '/rootfs', time.time(); os.makedirs(W, exist_ok=True); shutil.rmtree(R, ignore_errors=True)
    sh('mmdebstrap', '--quiet', '--mode=root', '--variant=minbase', '--format=directory', '--include=' + PKGS, '--dpkgopt=force-unsafe-io',
       *[f'--dpkgopt=path-exclude=/usr/share/{d}/*' for d in ('man', 'doc', 'locale')], '--aptopt=Acquire::Languages "none"',
       'bookworm', R, SOURCES)
    t1 = time.time()
    kpkg = [l.split()[1] for l in sh('apt-cache', 'depends', 'linux-image-cloud-amd64').splitlines() if 'Depends: linux-image-' in l][0]
    with tempfile.TemporaryDirectory(dir=W) as d:
        os.chmod(d, 0o755); sh('apt-get', 'download', '-q', kpkg, cwd=d, stderr=subprocess.DEVNULL); sh('dpkg-deb', '-x', glob.glob(d + '/*.deb')[0], d + '/x')
        shutil.copytree(d + '/x/lib/modules', R + '/usr/lib/modules'); k = os.listdir(R + '/usr/lib/modules')[0]
        shutil.copy(f'{d}/x/boot/vmlinuz-{k}', W + '/vmlinuz')
    sh('depmod', '-b', R, k)
    # identity, services
    open(R + '/etc/machine-id', 'w').close(); open(R + '/etc/fstab', 'w').close()
    write(R + '/usr/local/sbin/vmlab-ident', IDENT, 0o755); write(R + '/etc/systemd/system/vmlab-ident.service', UNIT_IDENT)
    write(R + '/etc/modules-load.d/vmlab.conf', 'virtio_pci\nvirtio_console\nvirtio_net\nvirtio_rng\n')
    write(R + '/etc/systemd/system/systemd-udev-trigger.service.d/few.conf', TRIGGER)
    write(R + '/etc/systemd/journald.conf.d/v.conf', '[Journal]\nStorage=volatile\nRuntimeMaxUse=16M\n')
    sh('chroot', R, 'systemctl', '--quiet', 'set-default', 'multi-user.target'); sh('chroot', R, 'systemctl', '--quiet', 'enable', 'vmlab-ident.service')
    sh('chroot', R, 'systemctl', '--quiet', 'mask', *MASK)
    # initramfs: busybox and the modules that reach /dev/vda
    with tempfile.TemporaryDirectory() as T:
        for x in ('bin', 'dev', 'root', 'm'): os.mkdir(f'{T}/{x}')
        shutil.copy('/bin/busybox', T + '/bin/'); seen = []
        for mod in ('virtio_pci', 'virtio_blk'):
            for l in sh('modprobe', '-d', R, '-S', k, '--show-depends', mod).splitlines():
                f = l.split()[1]
                if f not in seen: shutil.copy(f, f'{T}/m/{len(seen):02d}-{os.path.basename(f)}'); seen.append(f)
        write(T + '/init', INIT, 0o755)
        sh('sh', '-c', f'cd {T} && find . | cpio -o -H newc --quiet > {W}/initrd')
    img = W + '/base.ext4'
    if os.path.exists(img): os.unlink(img)
    sh('truncate', '-s', '3G', img); sh('mkfs.ext4', '-q', '-F', '-d', R, img)
    print(f'build: mmdebstrap {t1-t0:.0f} s, rest {time.time()-t1:.0f} s; image {os.stat(img).st_blocks >> 11} MiB on disk, kernel {k}')

# ---------------------------------------------------------------- network: a switch over Unix datagram sockets
class Switch:
    def __init__(self, d):
        self.d, self.ports, self.mac, self.cut, self.sel = d, {}, {}, set(), selectors.DefaultSelector()
        self.r = threading.Thread(target=self.loop, daemon=True); self.r.start()
    def netdev(self, name):
        sp, gp = f'{self.d}/sw-{name}', f'{self.d}/vm-{name}'
        for p in (sp, gp):
            if os.path.exists(p): os.unlink(p)
        if name in self.ports: self.sel.unregister(self.ports[name][0]); self.ports[name][0].close()
        s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); s.bind(sp); s.setblocking(False)
        self.ports[name] = (s, gp); self.sel.register(s, selectors.EVENT_READ, name)
        return f'dgram,id=n0,local.type=unix,local.path={gp},remote.type=unix,remote.path={sp}'
    def loop(self):
        while True:
            for key, _ in self.sel.select(.1):
                for _ in range(64):
                    try: f = key.fileobj.recv(70000)
                    except OSError: break
                    self.mac[f[6:12]] = key.data; to = self.mac.get(f[:6])
                    for n in ([to] if to else list(self.ports)):
                        if n != key.data and (key.data, n) not in self.cut:
                            try: self.ports[n][0].sendto(f, self.ports[n][1])
                            except OSError: pass
            time.sleep(0 if self.ports else .05)

# ---------------------------------------------------------------- guests
class Json:
    """one JSON object a line over a Unix socket: QMP and the guest agent"""
    def __init__(self, path, tries=500):
        self.s, self.buf = socket.socket(socket.AF_UNIX), b''
        while True:                                       # the file is there a moment before QEMU listens on it
            try: self.s.connect(path); return
            except (FileNotFoundError, ConnectionRefusedError):
                tries -= 1
                if not tries: raise
                time.sleep(.02)
    def send(self, o): self.s.sendall(json.dumps(o).encode() + b'\n')
    def recv(self, timeout):
        self.s.settimeout(timeout)
        while b'\n' not in self.buf:
            d = self.s.recv(65536)
            if not d: raise EOFError
            self.buf += d
        l, self.buf = self.buf.split(b'\n', 1)
        return json.loads(l[l.rfind(b'\xff') + 1:])

def accel():
    """hardware KVM only: a /dev/kvm without kvm_intel or kvm_amd behind it may not run a stock kernel"""
    hw = any(os.path.exists(f'/sys/module/{m}') for m in ('kvm_intel', 'kvm_amd')) and os.access('/dev/kvm', os.R_OK | os.W_OK)
    return ('kvm', 'host') if hw else ('tcg,thread=multi', 'max')

class Guest:
    def __init__(self, run, name, n, switch=None, gold=None, cache='writeback'):
        self.name, self.n, self.sw, self.gold, self.cache, self.p = name, n, switch, gold, cache, None
        self.d = f'{run}/{name}'; os.makedirs(self.d, exist_ok=True); self.disk = self.d + '/disk.qcow2'
        back = ('raw', W + '/base.ext4') if gold is None else ('qcow2', gold + '/gold/disk.qcow2')
        if not os.path.exists(self.disk): sh('qemu-img', 'create', '-q', '-f', 'qcow2', '-F', back[0], '-b', back[1], self.disk)
        atexit.register(self.power_off)
    def start(self, restore=False, timeout=600):
        for f in ('qmp', 'ga'):
            if os.path.exists(f'{self.d}/{f}'): os.unlink(f'{self.d}/{f}')
        acc, cpu = accel(); h = MEM // 2
        cmdline = ('root=/dev/vda rw console=ttyS0 quiet systemd.show_status=0 mitigations=off init_on_alloc=0 random.trust_cpu=on '
                   f'no_timer_check nokaslr vm.name={self.name} vm.n={self.n}')
        a = ['qemu-system-x86_64', '-M', 'pc', '-accel', acc, '-cpu', cpu, '-smp', SMP, '-m', str(MEM),
             '-object', f'memory-backend-ram,id=m0,size={h}M', '-object', f'memory-backend-ram,id=m1,size={h}M',
             '-numa', 'node,nodeid=0,cpus=0-1,memdev=m0', '-numa', 'node,nodeid=1,cpus=2-3,memdev=m1',
             '-nodefaults', '-no-user-config', '-display', 'none', '-kernel', W + '/vmlinuz', '-initrd', W + '/initrd', '-append', cmdline,
             '-drive', f'if=none,id=d0,format=qcow2,file={self.disk},cache={self.cache}', '-device', 'virtio-blk-pci,drive=d0',
             '-netdev', self.sw.netdev(self.name) if self.sw else 'hubport,id=n0,hubid=0', '-device', 'virtio-net-pci,netdev=n0',
             '-device', 'virtio-serial-pci', '-chardev', f'socket,id=ga,path={self.d}/ga,server=on,wait=off',
             '-device', 'virtserialport,chardev=ga,name=org.qemu.guest_agent.0', '-device', 'virtio-rng-pci', '-device', 'vmgenid,guid=auto',
             '-serial', f'file:{self.d}/console.log', '-qmp', f'unix:{self.d}/qmp,server=on,wait=off']
        # What the guest tells through /dev/virtio-ports/sluice.acks is on the host before the guest's write returns.
        a += ['-chardev', f'file,id=acks,path={self.d}/acks.log,append=on', '-device', 'virtserialport,chardev=acks,name=sluice.acks']
        if restore: a += ['-incoming', f'exec:cat {self.gold}/state.bin']
        self.t0 = time.time(); log = open(self.d + '/qemu.log', 'ab')
        self.p = subprocess.Popen(a, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                                  preexec_fn=lambda: ctypes.CDLL(None).prctl(1, 9))   # PR_SET_PDEATHSIG, SIGKILL: no guest outlives its test
        while not os.path.exists(self.d + '/qmp'):
            if self.p.poll() is not None: raise RuntimeError(open(self.d + '/qemu.log').read())
            time.sleep(.01)
        self.qs = Json(self.d + '/qmp'); self.qs.recv(30); self.qmp('qmp_capabilities')
        if restore:
            while self.qmp('query-status')['status'] == 'inmigrate': time.sleep(.02)
            self.qmp('cont')
        self.wait_agent(timeout)
        if restore: self.run(f'/usr/local/sbin/vmlab-ident {self.name} {self.n} {time.time():.2f}', check=True)
        self.up = time.time() - self.t0; return self
    def qmp(self, ex, **args):
        self.qs.send({'execute': ex, 'arguments': args})
        while True:
            r = self.qs.recv(120)
            if 'return' in r: return r['return']
            if 'error' in r: raise RuntimeError((ex, r['error']))
    def wait_agent(self, timeout):
        end = time.time() + timeout; self.ga = Json(self.d + '/ga')
        while time.time() < end:
            if self.p.poll() is not None: raise RuntimeError('qemu ended: ' + open(self.d + '/qemu.log').read())
            sid = int.from_bytes(os.urandom(4), 'big'); self.ga.s.sendall(b'\xff'); self.ga.send({'execute': 'guest-sync-delimited', 'arguments': {'id': sid}})
            try:
                while True:
                    r = self.ga.recv(20)
                    if r.get('return') == sid: return
            except (OSError, ValueError): pass
        raise TimeoutError(self.name + ': no agent')
    def agent(self, ex, timeout=60, **args):
        self.ga.send({'execute': ex, 'arguments': args}); r = self.ga.recv(timeout)
        if 'error' in r: raise RuntimeError((ex, r['error']))
        return r['return']
    def run(self, cmd, timeout=120, stdin=b'', check=False):
        """(exit code, stdout, stderr) of a shell command in the guest"""
        pid = self.agent('guest-exec', path='/bin/sh', arg=['-c', cmd], **{'input-data': base64.b64encode(stdin).decode(), 'capture-output': True})['pid']
        end, d = time.time() + timeout, .01
        while not (r := self.agent('guest-exec-status', pid=pid))['exited']:
            if time.time() > end: raise TimeoutError(cmd)
            time.sleep(d); d = min(d * 1.5, .25)
        o, e = (base64.b64decode(r.get(k, '')).decode(errors='replace') for k in ('out-data', 'err-data'))
        rc = r.get('exitcode', -r.get('signal', 0))
        if check and rc: raise RuntimeError((cmd, rc, o, e))
        return rc, o, e
    def share(self, folder, at='/host'):
        """hot-plugs a read-only disk that holds a copy of a host folder"""
        img = self.d + '/share.img'
        if os.path.exists(img): os.unlink(img)
        sh('truncate', '-s', '256M', img); sh('mkfs.ext4', '-q', '-F', '-O', '^has_journal', '-d', folder, img)
        self.qmp('blockdev-add', **{'node-name': 'sh', 'driver': 'raw', 'read-only': True, 'file': {'driver': 'file', 'filename': img, 'read-only': True, 'locking': 'off'}})
        self.qmp('device_add', driver='virtio-blk-pci', id='shd', drive='sh')
        self.run(f'i=0; while [ ! -b /dev/vdb ] && [ $i -lt 100 ]; do sleep 0.1; i=$((i+1)); done; mkdir -p {at}; mount -o ro /dev/vdb {at}', check=True)
    def link(self, up): self.qmp('set_link', name='n0', up=up)
    def freeze(self, on): self.qmp('stop' if on else 'cont')                # a hung host: silent, memory kept
    def power_off(self):
        """power loss: the guest's memory is gone at once, its disk file stays"""
        if self.p: self.p.kill(); self.p.wait(); self.p = None
    def stat(self):
        f = open(f'/proc/{self.p.pid}/stat').read().rsplit(')', 1)[1].split()
        rss = [int(l.split()[1]) >> 10 for l in open(f'/proc/{self.p.pid}/status') if l.startswith('VmRSS')][0]
        return f'[{time.time()-self.t0:.1f} s wall, {(int(f[11])+int(f[12]))/100:.1f} s CPU, {rss} MiB, load {open("/proc/loadavg").read().split()[0]}]'

def gold():
    G = W + '/gold'; shutil.rmtree(G, ignore_errors=True); os.makedirs(G)
    g = Guest(G, 'gold', 9).start(); print('gold: agent answers', g.stat(), flush=True)
    st = g.run('systemctl is-system-running --wait; sync', timeout=600)[1].strip(); print('gold:', st, g.stat(), flush=True)
    t = time.time(); g.qmp('stop'); g.qmp('migrate-set-parameters', **{'max-bandwidth': 10 << 30}); g.qmp('migrate', uri=f'exec:cat > {G}/state.bin')
    while (s := g.qmp('query-migrate').get('status')) not in ('completed', 'failed'): time.sleep(.05)
    g.power_off(); os.chmod(G + '/gold/disk.qcow2', 0o444)
    print(f'gold: state {s} in {time.time()-t:.1f} s, {os.path.getsize(G + "/state.bin") >> 20} MiB')

def demo(n=2):
    run = W + '/run'; shutil.rmtree(run, ignore_errors=True); os.makedirs(run); T = time.time(); sw = Switch(run)
    os.makedirs(run + '/share'); shutil.copy('/bin/busybox', run + '/share/')
    gs = [Guest(run, f'n{i}', i, sw, gold=W + '/gold') for i in range(1, n + 1)]
    th = [threading.Thread(target=g.start, kwargs={'restore': True}) for g in gs]
    [x.start() for x in th]; [x.join() for x in th]
    print(f'{n} guests ready after {time.time()-T:.1f} s'); 
    for g in gs: print(g.name, g.stat(), flush=True)
    t = time.time()
    for g in gs: g.share(run + '/share')
    print(f'share mounted in {time.time()-t:.1f} s')
    for g in gs:
        t = time.time(); print(g.name, g.run('hostname; stat -fc %T /sys/fs/cgroup; cat /sys/fs/cgroup/cgroup.controllers; cat /sys/devices/system/node/online; exit 7'), f'{time.time()-t:.1f} s')
    a, b = gs[:2]; ping = '/host/busybox ping -c 2 -W 2 n2 | grep received'
    print('ping:', a.run(ping)[1].strip())
    b.run('(sleep 60 | /host/busybox nc -l -p 5000 | wc -c > /tmp/n) >/dev/null 2>&1 &'); time.sleep(1)
    t = time.time(); a.run('/host/busybox dd if=/dev/zero bs=64k count=320 2>/dev/null | /host/busybox nc n2 5000', timeout=200); print('20 MiB a to b: %.1f s,' % (time.time() - t), b.run('for i in 1 2 3 4 5 6 7 8 9; do sleep 0.5; [ -s /tmp/n ] && break; done; cat /tmp/n')[1].strip(), 'bytes arrived')
    a.link(False); print('link off:', a.run(ping)[1].strip()); a.link(True); time.sleep(.5); print('link on:', a.run(ping)[1].strip())
    sw.cut.add(('n2', 'n1')); print('n2->n1 cut:', a.run(ping)[1].strip()); sw.cut.clear()
    for i in range(2):
        t = time.time(); r = a.run('systemd-run -q --wait -p Delegate=yes -p MemoryMax=64M true'); print('systemd-run --wait true:', r[0], f'{time.time()-t:.1f} s', flush=True)
    t = time.time(); a.run('true'); print(f'true: {time.time()-t:.2f} s')
    b.run('mkdir /root/t; cd /root/t; echo synced > A; sync A .; echo dirty > B', check=True); b.power_off(); b.gold = None
    print('power cut; cold boot ...', flush=True); b.start(); print('n2 back', b.stat(), b.run('cat /proc/sys/kernel/hostname; head /root/t/*')[1].split(), flush=True)
    for g in gs: print(g.name, g.stat()); g.power_off()
    print(f'demo: {time.time()-T:.1f} s')

if __name__ == '__main__':
    {'build': build, 'gold': gold, 'demo': lambda: demo(int(sys.argv[2]) if len(sys.argv) > 2 else 2)}[sys.argv[1]]()
