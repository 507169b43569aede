# SPDX-License-Identifier: Apache-2.0
"""More than seventy attempts of a job to escape from its node, and what prevents each.

`try_all` is the job's script; docs/trust.md lists `WAYS`. An attempt that succeeds returns a true value. An attempt
that fails raises an error, or returns a false value.
"""

from collections.abc import Sequence
from typing import NamedTuple

from localcloud.hosts.syscall_filter import REFUSED
from tests.support.moving_files import MOVING


class Way(NamedTuple):
    """`code`: the body of a function. `stopped_by`: what prevents it, in words for people."""

    name: str
    code: str
    stopped_by: str


NOT_SHOWN = "is not in its file system"
READ_ONLY = "its file system is read only"
NO_CAPABILITY = "it has no capability"
OWN_PROCESSES = "it sees its own processes only"
OWN_NETWORK = "its network namespace leads only where the plan does"
OWN_IPC = "its IPC namespace is its own"
PROTECTED = "its first process is of another user namespace"
FILTER = "the filter of system calls"

# Features of the kernel that no namespace separates, and that need no security hole.
DOORS = (
    Way("make other calls by io_uring", "return [name for name, *arguments in (('io_uring_setup', 1, BUFFER),"
        " ('io_uring_enter', -1, 0, 0, 0, None), ('io_uring_register', -1, 0, None, 0)) if reaches(name, *arguments)]",
        FILTER),
    Way("keep keys in the kernel", "return [name for name, *arguments in (('add_key', b'user', b'k', b'k', 1, -2),"
        " ('request_key', b'user', b'none', None, 0), ('keyctl', 0, -3, 0)) if reaches(name, *arguments)]", FILTER),
    Way("load a program into the kernel", "return reaches('bpf', 99, BUFFER, 16)", FILTER),
    Way("hold the kernel inside a call", "return reaches('userfaultfd', 1)", FILTER),
    Way("measure what the processor does", "return reaches('perf_event_open', None, 0, -1, -1, 0)", FILTER),
    Way("watch whole file systems", "return reaches('fanotify_init', 0x200, 0)", FILTER),
    Way("open files past all mounts", "return reaches('open_by_handle_at', -100, None, 0)", FILTER),
    Way("lend its memory to a pipe", "return reaches('vmsplice', os.pipe()[1],"
        " (ctypes.c_void_p * 2)(ctypes.addressof(BUFFER), 16), 1, 0)", FILTER),
    Way("make segments for 16-bit programs", "return reaches('modify_ldt', 0, BUFFER, 16)", FILTER),
    Way("make calls as a 32-bit program does", "return runs_32_bit_code() or reaches_number(0x40000000 | 39)", FILTER),
    Way("reach the hypervisor", "return socket.socket(getattr(socket, 'AF_VSOCK', 40), socket.SOCK_STREAM)", FILTER),
    Way("make sockets of other families", "return [family for family in range(64) if family not in (1, 2, 10, 16)"
        " and any(makes(family, kind) for kind in (1, 2, 3, 5))]", FILTER),
    Way("find a process that may make all calls", "return [p for p in pids() if p != '1'"
        " and (status := look(p, 'status')) and '\\nSeccomp:\\t2\\n' not in status]", FILTER),
)  # fmt: skip
WAYS = (
    *DOORS,
    Way("read the machine's shadow file", "return open('/etc/shadow').read()", NOT_SHOWN),
    Way("read the cloud's issuer key", "return open(CLOUD + '/keys/issuer.pem').read()", NOT_SHOWN),
    Way("read the deployer's credentials", "return open(CLOUD + '/config').read()", NOT_SHOWN),
    Way("read the cloud's database", "return open(CLOUD + '/state.sqlite3', 'rb').read()", NOT_SHOWN),
    Way("read another run's token", "return open(OTHER + '/given/rpst').read()", NOT_SHOWN),
    Way("read another run's output", "return open(OTHER + '/node-0.log').read()", NOT_SHOWN),
    Way("read its own specification", "return open(OWN + '/node-0.json').read()", NOT_SHOWN),
    Way("write its own result", "return open(OWN + '/node-0.result', 'w').write('{}')", NOT_SHOWN),
    Way("read the checkout", "return open(CHECKOUT + '/pyproject.toml').read()", NOT_SHOWN),
    Way("read the user's keys", "return [p for p in ('.oci', '.aws', '.ssh') if os.path.exists(USER + '/' + p)]"
        " or open(PLANTED).read()", NOT_SHOWN),
    Way("read the machine's temporary files", "return open(TEMPORARY).read()", NOT_SHOWN),
    Way("write to the user's home", "return open(USER + '/.bashrc', 'a').write('#')", READ_ONLY),
    Way("write to /etc", "return open('/etc/hosts', 'a').write('#')", READ_ONLY),
    Way("write to /usr", "return open('/usr/bin/ways-out', 'w').write('#')", READ_ONLY),
    Way("write to its environment", "return open(os.path.dirname(os.__file__) + '/ways_out.py', 'w').write('#')",
        READ_ONLY),
    Way("write to the launcher", "return open('/opt/trainyard/launcher/printing.py', 'a').write('#')", READ_ONLY),
    Way("make a setuid program", "shutil.copy('/bin/sh', 'sh'); os.chmod('sh', 0o6755);"
        " return subprocess.run(['./sh', '-pc', 'id -u'], capture_output=True, check=True).stdout != b'1000\\n'",
        "no program gives it more rights: no_new_privs, and mounts without setuid"),
    Way("mount its root for writing", "return call('mount', b'none', b'/', None, 0x1020, None)", NO_CAPABILITY),
    Way("take a mount away", "return call('umount2', b'/proc/sys', 2)", NO_CAPABILITY),
    Way("take another root", "os.chroot('/home'); return True", NO_CAPABILITY),
    Way("make the disk's device", "os.mknod('disk', 0o60600, os.makedev(254, 0)); return True", NO_CAPABILITY),
    Way("read the disk's device", "return [d for d in os.listdir('/dev') if d.startswith(('vd', 'sd', 'nvme', 'dm-',"
        " 'loop', 'mem', 'kmsg', 'kvm'))]", "its devices are given by name"),
    Way("leave by the first process", "return os.listdir('/proc/1/root') or os.listdir('/proc/1/cwd')", PROTECTED),
    Way("read the first process's files", "return [os.readlink('/proc/1/fd/' + n) for n in os.listdir('/proc/1/fd')]",
        PROTECTED),
    Way("read environments of others", "return [p for p in pids() if SECRET in look(p, 'environ')]", OWN_PROCESSES),
    Way("see the cloud's server", "return [p for p in pids() if 'localcloud.serve' in look(p, 'cmdline')]",
        OWN_PROCESSES),
    Way("signal the cloud's server", "os.kill(SERVER, 0); return True", OWN_PROCESSES),
    Way("kill the first process", "os.kill(1, 9); time.sleep(0.2); return not os.path.exists('/proc/1')", PROTECTED),
    Way("trace the first process", "return call('ptrace', 16, 1, None, None)", PROTECTED),
    Way("enter the machine's namespaces", "return call('setns', os.open('/proc/1/ns/mnt', 0), 0)", PROTECTED),
    Way("make a user namespace", "return call('unshare', 0x10000000)", "its namespace allows none below it"),
    Way("become root", "os.setuid(0); return True", NO_CAPABILITY),
    Way("keep the machine busy first", "return os.nice(-5) < 0", NO_CAPABILITY),
    Way("lift its limits", "soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE);"
        " resource.setrlimit(resource.RLIMIT_NOFILE, (hard + 1, hard + 1)); return True", NO_CAPABILITY),
    Way("lift its control group", "return [open(f, 'w').write(str(1 << 50)) for f in glob.glob("
        "'/sys/fs/cgroup/**/*limit_in_bytes', recursive=True) + ['/sys/fs/cgroup/memory.max']]", READ_ONLY),
    Way("take all inotify instances", "return len([n for n in range(65) if libc.inotify_init1(0) >= 0]) > 64",
        "its user namespace has a limit of its own"),
    Way("take all queued signals", "pid = os.getpid(); return resource.getrlimit(resource.RLIMIT_SIGPENDING)[1] >"
        " int(open('/proc/sys/kernel/threads-max').read()) // 8", "its user namespace has a limit of its own"),
    Way("set where cores go", "return open('/proc/sys/kernel/core_pattern', 'w').write('core')",
        "/proc/sys is read only"),
    Way("set the port range", "f = '/proc/sys/net/ipv4/ip_local_port_range'; t = open(f).read();"
        " return open(f, 'w').write(t)", "/proc/sys is read only"),
    Way("ask the kernel to stop the machine", "return open('/proc/sysrq-trigger', 'w').write('h')", READ_ONLY),
    Way("set the host's name", "socket.sethostname('ways-out'); return True", NO_CAPABILITY),
    Way("set the clock", "time.clock_settime(time.CLOCK_REALTIME, time.time()); return True", NO_CAPABILITY),
    Way("load a module", "return call('syscall', 313, os.open('/bin/true', 0), b'', 0)", NO_CAPABILITY),
    Way("read the kernel's log", "return call('klogctl', 3, ctypes.create_string_buffer(100), 100)"
        " or open('/dev/kmsg').read(1)", FILTER),
    Way("read the user's kernel keys", "return open('/proc/keys').read()", "its session keyring is its own"),
    Way("reach the internet", "return dial('1.1.1.1', 443) or dial('192.0.2.1', 80)", OWN_NETWORK),
    Way("reach what listens on this machine", "return dial('127.0.0.1', PORT)", OWN_NETWORK),
    Way("reach this machine's own address", "return [a for a in ADDRESSES.split() if dial(a, PORT)]", OWN_NETWORK),
    Way("reach a socket without a file", "s = socket.socket(socket.AF_UNIX); s.connect('\\0' + ABSTRACT); return True",
        OWN_NETWORK),
    Way("reach a socket by its file", "return [s for s in glob.glob('/run/**', recursive=True) + [SOCKET]"
        " if os.path.exists(s) and stat.S_ISSOCK(os.stat(s).st_mode)]", NOT_SHOWN),
    Way("listen to all packets", "return socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0x300)", FILTER),
    Way("open its firewall", "subprocess.run(['/usr/sbin/nft', 'flush', 'ruleset'], check=True, capture_output=True);"
        " return True", NO_CAPABILITY),
    Way("give itself another address", "subprocess.run(['/sbin/ip', 'address', 'add', '10.99.0.1/8', 'dev', 'lo'],"
        " check=True, capture_output=True); return True", NO_CAPABILITY),
    Way("read the machine's shared memory", "return call('shmget', SEGMENT, 0, 0)", OWN_IPC),
    Way("read the machine's /dev/shm", "return os.listdir('/dev/shm')", "its /dev/shm is its own"),
)  # fmt: skip

HELD_BY = "control groups, or the watcher where this account may make none"
# These could crash the machine. Each ends its run, or is limited to the resources of a node. `told`: the reported
# reason.
GREEDY = (
    Way("make processes without end", "while True: os.fork() or time.sleep(60)", HELD_BY),
    Way("take all memory", "held = []\nwhile True: held.append(b'x' * (16 << 20))", HELD_BY),
    Way("take memory under no name", "f = os.memfd_create('f')\nwhile True: os.write(f, b'x' * (16 << 20))", HELD_BY),
    Way("fill the disk", "for n in range(1 << 30): open(f'f{n}', 'wb').write(b'x' * (8 << 20))",
        "the watcher, and a limit on the size of each file"),
    Way("fill the disk with files that have no name", "held = []\nfor n in range(1 << 30):\n"
        "    held.append(open('f', 'wb')); os.unlink('f'); held[-1].write(b'x' * (8 << 20)); held[-1].flush()",
        "the watcher, and a limit on the size of each file"),
    Way("move files while they are counted", f"exec({MOVING.replace('MOST', '1 << 30')!r})",
        "the watcher, which stops the node while it counts"),
    Way("fill the disk with mapped files", "held = []\nfor n in range(1 << 30):\n    f = open('f', 'w+b')\n"
        "    os.unlink('f'); f.write(b'x' * (8 << 20)); f.flush(); held.append(mmap.mmap(f.fileno(), 4096))\n"
        "    f.close(); time.sleep(0.01)", "the watcher, when the disk is nearly full"),
    Way("fill the disk with files in messages", "ends = [socket.socketpair() for n in range(200)]\n"
        "for n in range(1 << 30):\n    f = open('f', 'wb')\n    os.unlink('f'); f.write(b'x' * (8 << 20)); f.flush()\n"
        "    socket.send_fds(ends[n % 200][0], [b'x'], [f.fileno()]); f.close()\n    time.sleep(0.01)",
        "the watcher, when the disk is nearly full"),
    Way("print without end", "while True: print('x' * 60_000)", "the watcher"),
    Way("make files without end", "for n in range(1 << 30): open(f'f{n}', 'w').close()", "the watcher"),
)  # fmt: skip

_NUMBERS = {row.name: {"x86_64": row.x86_64, "aarch64": row.aarch64} for row in REFUSED}
_HELPERS = """
import ctypes, errno, glob, mmap, os, resource, shutil, socket, stat, subprocess, sys, time
libc = ctypes.CDLL(None, use_errno=True)
BUFFER = ctypes.create_string_buffer(4096)
def call(name, *arguments):
    if getattr(libc, name)(*arguments) < 0: raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return True
def reaches(name, *arguments):
    number = NUMBERS[name][os.uname().machine]
    return number is not None and reaches_number(number, *arguments)
def reaches_number(number, *arguments):  # whether the call's own code answers: with a result, or with another error
    return libc.syscall(number, *arguments) >= 0 or ctypes.get_errno() not in (errno.EPERM, errno.ENOSYS)
def makes(family, kind):
    try: socket.socket(family, kind).close()
    except OSError as error: return error.errno != errno.EAFNOSUPPORT
    return True
def runs_32_bit_code():  # getpid by the old way into the kernel, which takes the numbers of i386
    if os.uname().machine != 'x86_64': return False
    code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    code.write(bytes.fromhex('b814000000 cd80 c3'))
    address = ctypes.addressof(ctypes.c_char.from_buffer(code))
    pid = os.fork()
    if pid == 0: os._exit(0 if ctypes.CFUNCTYPE(ctypes.c_int)(address)() == os.getpid() else 1)
    return os.waitpid(pid, 0)[1] == 0
def pids(): return [name for name in os.listdir('/proc') if name.isdigit()]
def look(pid, name):
    try: return open(f'/proc/{pid}/{name}', 'rb').read().decode(errors='replace')
    except OSError: return ''
def dial(address, port):
    try: return socket.create_connection((address, port), timeout=1)
    except OSError: return None
"""
_PLANTED = """
for name in ('CLOUD', 'OTHER', 'CHECKOUT', 'USER', 'PLANTED', 'TEMPORARY', 'SECRET', 'ADDRESSES', 'ABSTRACT', 'SOCKET'):
    globals()[name] = os.environ['WAY_' + name]
SERVER, PORT, SEGMENT = (int(os.environ['WAY_' + name]) for name in ('SERVER', 'PORT', 'SEGMENT'))
OWN = CLOUD + '/runs/' + os.environ['JOB_RUN_OCID']
SECRET = SECRET[::-1]  # told backwards, so as not to be in this one's own environment
"""


def try_all(ways: Sequence[Way] = WAYS, planted: bool = True) -> str:
    """The job's script. It prints the number and the result of each attempt, and a line at the end."""
    lines = [_HELPERS, f"NUMBERS = {_NUMBERS}", _PLANTED if planted else ""]
    for number, way in enumerate(ways):
        lines.append(f"def way{number}():\n    {way.code}\n")
    lines.append(
        f"for number in range({len(ways)}):\n"
        "    try: print(number, 'OUT' if (it := globals()[f'way{number}']()) else 'held', repr(it)[:80], flush=True)\n"
        "    except (OSError, ValueError, subprocess.SubprocessError) as error:\n"
        "        print(number, 'held', repr(error)[:80], flush=True)\n"
        "print('all tried')\n"
    )
    return "\n".join(lines)
