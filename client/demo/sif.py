"""python3 sif.py SQUASHFS SIF: wraps a SquashFS in a SIF file with it as the primary system partition.

Only for machines without the tools that make such files (`apptainer build`). Layout: the SIF
specification's global header (128 bytes) and descriptors (585 bytes), little-endian, packed.
"""
import os
import platform
import shutil
import struct
import sys
import time
import uuid

DESCRIPTORS, DESCRIPTOR_SIZE, DESCRIPTORS_AT, DATA_AT = 48, 585, 4096, 32768
PARTITION, SQUASHFS, PRIMARY = 0x4004, 1, 2
ARCHITECTURES = {"x86_64": b"02", "aarch64": b"04"}


def header(size, now):
    launch = b"#!/usr/bin/env run-singularity\n"
    start = struct.pack("<32s10s3s3s16s", launch, b"SIF_MAGIC", b"01", ARCHITECTURES[platform.machine()], uuid.uuid4().bytes)
    return start + struct.pack("<8q", now, now, DESCRIPTORS - 1, DESCRIPTORS, DESCRIPTORS_AT,
                               DESCRIPTORS * DESCRIPTOR_SIZE, DATA_AT, size)


def descriptor(size, now):
    extra = struct.pack("<ii3s", SQUASHFS, PRIMARY, ARCHITECTURES[platform.machine()])
    return struct.pack("<iBIII7q128s384s", PARTITION, 1, 1, 0xf0000001, 0, DATA_AT, size, size, now, now,
                       os.getuid(), os.getgid(), b"root.squashfs", extra)


def main(squashfs, sif):
    size, now = os.path.getsize(squashfs), int(time.time())
    with open(squashfs, "rb") as data, open(sif, "wb") as out:
        out.write(header(size, now))
        out.seek(DESCRIPTORS_AT)
        out.write(descriptor(size, now))
        out.seek(DATA_AT)
        shutil.copyfileobj(data, out)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2])
