# SPDX-License-Identifier: Apache-2.0
"""A program that moves its files while they are counted."""

# Whenever the empty one of two folders was read, it moves its data there from the other, which is read later.
MOVING = """
import ctypes, os, struct, time
libc = ctypes.CDLL(None)
for name in ('a', 'b'):
    for n in range(2000): os.makedirs(f'{name}/between/{n}')
watch = libc.inotify_init1(0)
names = {libc.inotify_add_watch(watch, name.encode(), 0x10): name for name in ('a', 'b')}
os.mkdir('a/data')
where = 'a'
# Before the other process may move it.
folder = os.open('a/data', os.O_RDONLY)
if os.fork() == 0:
    for n in range(MOST):
        with open(os.open(f'{n}', os.O_WRONLY | os.O_CREAT, dir_fd=folder), 'wb') as f: f.write(b'x' * (4 << 20))
        time.sleep(0.01)
    time.sleep(600)
while True:
    events, at = os.read(watch, 1 << 16), 0
    while at < len(events):
        seen, _, _, named = struct.unpack_from('iIII', events, at)
        at += 16 + named
        if not named and names[seen] != where:
            os.rename(where + '/data', names[seen] + '/data')
            where = names[seen]
"""
