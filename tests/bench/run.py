#!/usr/bin/python3
"""Measures weir beside its peers: one line a measure, then a table for people.

    tests/bench/run.py BUILD [ROOM...]

ROUNDS, SECONDS (of each load) and SEED come from the environment. The exit status is 1 when a measure
could not be taken, and with STRICT=1 also when one misses its bound. docs/bench.md says how it is done.
"""
import os
import sys
import time

import room_archive
import room_db
import room_http
import room_lake
import room_replica
import room_s3
import room_shard
import room_start
import room_store
import room_swarm
from lab import Lab, Measure, Unmeasured

ROOMS = {"http": room_http, "db": room_db, "store": room_store, "start": room_start, "s3": room_s3,
         "replica": room_replica, "swarm": room_swarm, "lake": room_lake, "archive": room_archive,
         "shard": room_shard}


def table(rows):
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())


def row(measure):
    if measure.failed is not None:
        return [measure.name, "-", "", "MISS", "", "", ""]
    bound = "none" if not measure.bound else "%s %g" % measure.bound
    spread = f"{min(measure.ratios):.3g}-{max(measure.ratios):.3g}"
    verdict = "" if not measure.bound else "ok" if measure.met else "MISS"
    return [measure.name, f"{measure.value:.3g}{measure.unit}", bound, verdict, spread, measure.ours, measure.peer]


def show(measures, lab, began):
    print()
    table([["measure", "value", "bound", "", "spread", "weir", "peer"]] + [row(m) for m in measures])
    print()
    for why in dict.fromkeys(m.failed for m in measures if m.failed is not None):
        names = ", ".join(m.name for m in measures if m.failed == why)
        print(f"could not be measured: {names}: {why}")
    for measure in measures:
        if measure.failed is None and not measure.met:
            print(f"{measure.name} misses its bound; docs/bench.md says where the time goes")
    load = "%.1f %.1f %.1f" % os.getloadavg()
    print(f"{lab.rounds} rounds of {lab.seconds:g} s, medians of ratios within a round; {os.cpu_count()} cores, "
          f"load average {load}, disk {lab.disk()}, {time.monotonic() - began:.0f} s in all")


def measure_room(lab, room):
    """Every measure of the room's table of bounds is there in the end, if only as not measured."""
    left = dict(room.BOUNDS)
    try:
        for measure in room.measure(lab):
            measure.bound = left.pop(measure.name, None)
            yield measure
    except Unmeasured as why:
        for name in left:
            measure = Measure(name, [], failed=str(why))
            measure.bound = left[name]
            yield measure
    finally:
        lab.stop_all()


def measure_rooms(lab, rooms):
    measures = []
    for room in rooms:
        for measure in measure_room(lab, ROOMS[room]):
            print(measure.line(), flush=True)
            measures.append(measure)
    return measures


def main():
    build, *rooms = sys.argv[1:]
    unknown = [room for room in rooms if room not in ROOMS]
    if unknown:
        sys.exit(f"no such room: {unknown[0]} (there are {', '.join(ROOMS)})")
    lab = Lab(os.path.abspath(build), int(os.environ.get("ROUNDS") or 5), float(os.environ.get("SECONDS") or 2),
              os.environ.get("SEED"))
    began = time.monotonic()
    try:
        measures = measure_rooms(lab, rooms or list(ROOMS))
        show(measures, lab, began)
    finally:
        lab.close()
    missed = any(not m.met for m in measures) and os.environ.get("STRICT") == "1"
    sys.exit(1 if missed or any(m.failed is not None for m in measures) else 0)


if __name__ == "__main__":
    main()
