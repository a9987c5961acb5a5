#!/usr/bin/env python3
"""Interleaved pairs: CPU of `imagelint scan` over CPU of inflating the same layers; peak memory; `inspect` against
cuobjdump. Usage: run.py IMAGELINT INFLATE LAYOUT [--tenfold LAYOUT] [--pairs N] [--inspect FILE CUOBJDUMP]"""
import argparse, json, os, statistics, subprocess, sys, time

p = argparse.ArgumentParser()
p.add_argument('imagelint')
p.add_argument('inflate')
p.add_argument('layout')
p.add_argument('--tenfold')
p.add_argument('--pairs', type=int, default=5)
p.add_argument('--inspect', nargs=2)
a = p.parse_args()


def run(*command):
    """(CPU seconds, wall seconds, peak MiB) of one command."""
    start = time.monotonic()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode not in (0, 1):
        sys.exit(f'{command} failed with {child.returncode}')
    return usage.ru_utime + usage.ru_stime, time.monotonic() - start, usage.ru_maxrss / 1024


def blob(layout, digest):
    return os.path.join(layout, 'blobs', *digest.split(':'))


def layers(layout):
    top = json.load(open(os.path.join(layout, 'index.json')))['manifests'][0]
    return [blob(layout, l['digest']) for l in json.load(open(blob(layout, top['digest'])))['layers']]


def show(name, values, unit=''):
    print(f'{name:34} {statistics.median(values):8.3f}{unit}  (min {min(values):.3f}, max {max(values):.3f})')


blobs = layers(a.layout)
size = sum(map(os.path.getsize, blobs))
unpacked = sum(int(subprocess.run([a.inflate, b], capture_output=True, check=True).stdout) for b in blobs)
print(f'{len(blobs)} layer(s), {size / 1e9:.2f} GB stored, {unpacked / 1e9:.2f} GB unpacked, load {os.getloadavg()[0]:.1f}')
ratios, walls, peaks, floors = [], [], [], []
for _ in range(a.pairs):
    floor = [run(a.inflate, b) for b in blobs]
    scan = run(a.imagelint, 'scan', '--quiet', f'oci:{a.layout}')
    cpu, wall = sum(f[0] for f in floor), sum(f[1] for f in floor)
    ratios.append(scan[0] / cpu)
    walls.append(scan[1] / wall)
    peaks.append(scan[2])
    floors.append(unpacked / 1e6 / cpu)
show('inflate alone', floors, ' MB/s')
show('CPU, scan / inflate', ratios)
show('wall, scan / inflate', walls)
show('peak memory of scan', peaks, ' MiB')
if a.tenfold:
    big = run(a.imagelint, 'scan', '--quiet', f'oci:{a.tenfold}')
    print(f'{"peak memory, ten times the image":34} {big[2]:8.3f} MiB  ({big[2] / statistics.median(peaks):.2f} times)')
if a.inspect:
    ours, theirs = [], []
    for _ in range(3):
        ours.append(run(a.imagelint, 'inspect', a.inspect[0])[1])
    theirs.append(run(a.inspect[1], '--list-elf', '--list-ptx', a.inspect[0])[1])
    print(f'{"inspect, cuobjdump / imagelint":34} {statistics.median(theirs) / statistics.median(ours):8.1f}  '
          f'({statistics.median(theirs):.1f} s / {statistics.median(ours):.3f} s)')
