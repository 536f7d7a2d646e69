"""Attempts to get out, as Python source, and the function that runs one behind a wall.

Each ends in an exception unless it got what it was after. SECRET is a file that may not be read, OUTSIDE a path that
may not come to be, PORT a listening socket of this machine, HOST the id of a living process outside.
"""

from __future__ import annotations

#: What any wall around hostile code holds off.
HOSTILE = {
    "read a file": "open(SECRET).read()",
    "read through pathlib": "import pathlib; pathlib.Path(SECRET).read_text()",
    "read through the descriptor": "import os; os.read(os.open(SECRET, os.O_RDONLY), 100)",
    "read the passwords": "open('/etc/shadow').read()",
    "read the users": "open('/etc/passwd').read()",
    "read the name of the host": "open('/etc/hostname').read()",
    "list the folder of the secret": "import os; os.listdir(os.path.dirname(SECRET))",
    "list the home folders": "import os; os.listdir('/home')",
    "read with a relative path": "open('../../../../../../..' + SECRET).read()",
    "read through a link of its own": "import os; os.symlink(SECRET, '/tmp/link'); open('/tmp/link').read()",
    "read through a hard link": "import os; os.link(SECRET, '/tmp/hard'); open('/tmp/hard').read()",
    "read through the root of process 1": "open('/proc/1/root' + SECRET).read()",
    "read through its own root": "open('/proc/self/root' + SECRET).read()",
    "read through the root of a process outside": "open(f'/proc/{HOST}/root' + SECRET).read()",
    "read the memory of the machine": "open('/proc/kcore', 'rb').read(10)",
    "read the environment of process 1": "open('/proc/1/environ').read()",
    "read the environment of a process outside": "open(f'/proc/{HOST}/environ').read()",
    "read the environment": "import os; os.environ['TOOLCRIB_SECRET']",
    "write outside": "open(OUTSIDE, 'w').write('x')",
    "make a folder outside": "import os; os.mkdir(OUTSIDE)",
    "move something outside": "import os; open('/tmp/x', 'w').close(); os.rename('/tmp/x', OUTSIDE)",
    "write to the system": "open('/usr/toolcrib-was-here', 'w').write('x')",
    "write to the root": "open('/toolcrib-was-here', 'w').write('x')",
    "write to the devices": "open('/dev/toolcrib-was-here', 'w').write('x')",
    "write to the library": "import sys; open(PACKAGE + '/was_here.py', 'w').write('x')",
    "connect to this machine": "import socket; socket.create_connection(('127.0.0.1', PORT), 2)",
    "connect to another machine": "import socket; socket.create_connection(('192.0.2.1', 80), 2)",
    "ask for a name": "import socket; socket.getaddrinfo('example.com', 80)",
    "send a datagram": "import socket; socket.socket(type=socket.SOCK_DGRAM).sendto(b'x', ('192.0.2.1', 53))",
    "connect to an abstract socket": "import socket; socket.socket(socket.AF_UNIX).connect(chr(0) + ABSTRACT)",
    "fetch a page": "import urllib.request; urllib.request.urlopen(f'http://127.0.0.1:{PORT}/', timeout=2)",
    "start a shell": "import subprocess; subprocess.run(['sh', '-c', f'cat {SECRET}'], check=True)",
    "copy with a command": "import os; assert os.system(f'cp {SECRET} /tmp/copy') == 0",
    "walk the classes": """
found = [c for c in ().__class__.__base__.__subclasses__() if c.__name__ == 'catch_warnings']
found[0]()._module.__builtins__['open'](SECRET).read()""",
    "walk a function's globals": "(lambda: 0).__globals__['__builtins__']['open'](SECRET).read()",
    "import by name": "__import__('os').listdir(__import__('os').path.dirname(SECRET))",
    "look for what the collector knows": """
import gc
[o for o in gc.get_objects() if isinstance(o, str) and 'deep secret' in o][0 if 'deep secret' not in SECRET else 1]""",
    "evaluate": "eval('open(SECRET).read()', {'SECRET': SECRET})",
    "open with the C library": "import ctypes; assert ctypes.CDLL(None).open(SECRET.encode(), 0) >= 0",
    "mount": "import ctypes; assert ctypes.CDLL(None).mount(b'none', b'/tmp', b'tmpfs', 0, None) == 0",
    "mount for writing": "import ctypes; assert ctypes.CDLL(None).mount(None, b'/usr', None, 32 | 4096, None) == 0",
    "make namespaces of its own": "import ctypes; assert ctypes.CDLL(None).unshare(0x10000000) == 0",
    "trace another process": "import ctypes; assert ctypes.CDLL(None).ptrace(16, HOST, 0, 0) == 0",
    "change the root": "import os; os.chroot('/tmp')",
    "make a device": "import os, stat; os.mknod('/tmp/disk', stat.S_IFBLK | 0o600, os.makedev(8, 0))",
    "become another user": "import os; os.setuid(1)",
    "raise its bounds": "import resource as r; r.setrlimit(r.RLIMIT_AS, (r.RLIM_INFINITY, r.RLIM_INFINITY))",
    "signal a process outside": "import os; os.kill(HOST, 9)",
    "signal every process": "import os; os.kill(-1, 15); raise SystemError('still here')",
    "kill the first process": "import os; os.kill(1, 9); raise SystemError('still here')",
    "use descriptors it was left": """
import os, stat
for number in range(3, 256):
    try:
        mode = os.fstat(number).st_mode
    except OSError:
        continue
    assert not stat.S_ISREG(mode) and not stat.S_ISDIR(mode) and not stat.S_ISSOCK(mode), f'ESCAPED {number}'
raise SystemError('nothing but pipes')""",
    "type into the terminal": "import fcntl; fcntl.ioctl(open('/dev/tty'), 0x5412, b'x')",
}

#: What crash-prone code does too.
BROKEN = {
    "exit": "import os; os._exit(0)",
    "leave": "import sys; sys.exit(0)",
    "crash": "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)",
    "abort": "import os; os.abort()",
    "stop": "import os, signal; os.kill(os.getpid(), signal.SIGSTOP)",
    "never end": "while True: pass",
    "ignore signals and never end": """
import signal
for s in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP): signal.signal(s, signal.SIG_IGN)
while True: pass""",
    "take all memory": "x = bytearray(10**11)",
    "leak": "x = []\nwhile True: x.append(' ' * 10_000_000 + str(len(x)))",
    "recurse in C": "x = []\nfor _ in range(10**7): x = [x]\nrepr(x)",
    "recurse": "def f(n): return f(n + 1)\nf(0)",
    "say too much": "'x' * 50_000_000",
    "say too much for JSON": "['x' * 1_000_000] * 100",
    "print without end": "print('x' * 10_000_000)\nraise SystemError('nobody reads it')",
    "open too many files": "import os\nx = [open('/dev/null') for _ in range(5_000)]",
    "write too much": "with open('/tmp/toolcrib-flood', 'w') as f:\n    while True: f.write('x' * 1_000_000)",
    "fork without end": """
import os, time
for _ in range(300):
    if os.fork() == 0: time.sleep(60); os._exit(0)
time.sleep(60)""",
    "time out while it holds children": """
import subprocess, sys
for _ in range(5): subprocess.Popen([sys.executable, '-S', '-c', 'import time; time.sleep(60)'])
while True: pass""",
    "time out while it holds children in sessions of their own": """
import subprocess, sys
for _ in range(5):
    subprocess.Popen([sys.executable, '-S', '-c', 'import time; time.sleep(60)'], start_new_session=True)
while True: pass""",
    "die and leave children": """
import os, subprocess, sys
subprocess.Popen([sys.executable, '-S', '-c', 'import time; time.sleep(60)'], start_new_session=True)
os._exit(5)""",
    "forge an answer": """
import os, struct
for number in range(3, 20):
    try: os.write(number, struct.pack('>Q', 12) + b'{"value": 1}')
    except OSError: pass
import time; time.sleep(60)""",
    "close its pipes": "import os; os.closerange(3, 100)\nimport time; time.sleep(60)",
    "return something that is not data": "object()",
    "return something circular": "x = []\nx.append(x)\nx",
}


def attempt(code: str, given: dict) -> object:
    """Run an attempt, and return the value of its last line, if that is an expression.

    Args:
        code: Python source.
        given: The names it may use.
    """
    import ast

    tree = ast.parse(code)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    names = dict(given)
    exec(compile(tree, "attempt", "exec"), names)
    return eval(compile(ast.Expression(last.value), "attempt", "eval"), names) if last else None  # noqa: S307  # the same
