"""Tasks on images: a directory, a SIF, a SquashFS, an OCI layout; bad ones; two workers that want the same one."""
import gzip
import hashlib
import io
import json
import os
import shutil
import struct
import subprocess
import sys
import tarfile
import tempfile
import unittest

sys.path.append(__file__.rsplit("/", 2)[0])  # tests/system
from case import Case, Fleet, sandbox  # noqa: E402
from harness import BINARY  # noqa: E402

IMAGE = os.path.join(BINARY, "workers", "sluice-image")
PROGRAMS = ("/bin/bash", "/bin/cat", "/bin/ls")


def libraries_of(program):
    """What the program needs to run, its loader included."""
    said = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    words = [word for line in said.splitlines() for word in line.split()]
    return {word for word in words if word.startswith("/") and os.path.exists(word)}


def make_root(path, name, programs=PROGRAMS):
    """A root file system that has bash and knows its name."""
    for program in programs:
        for file in {program} | libraries_of(program):
            to = path + file
            os.makedirs(os.path.dirname(to), exist_ok=True)
            if not os.path.exists(to):
                shutil.copy(file, to)
    os.makedirs(os.path.join(path, "etc"), exist_ok=True)
    with open(os.path.join(path, "etc", "which"), "w") as file:
        file.write(name + "\n")
    return path


def make_squashfs(root, path):
    if shutil.which("mksquashfs"):
        subprocess.run(["mksquashfs", root, path, "-noappend", "-quiet", "-no-progress"], check=True,
                       stdout=subprocess.DEVNULL)
    elif shutil.which("gensquashfs"):
        subprocess.run(["gensquashfs", "-q", "-D", root, path], check=True)
    else:
        raise unittest.SkipTest("neither mksquashfs nor gensquashfs is here")
    return path


def make_sif(squashfs, path):
    """A SIF with this root alone, as sylabs/sif lays it out."""
    with open(squashfs, "rb") as file:
        data = file.read()
    arch = {"x86_64": b"02", "aarch64": b"04", "riscv64": b"12", "ppc64le": b"06", "s390x": b"11"}[os.uname().machine]
    header = struct.pack("<32s10s3s3s16s8q", b"#!/usr/bin/env run-singularity\n", b"SIF_MAGIC\0", b"01\0", arch + b"\0",
                         bytes(16), 1700000000, 1700000000, 47, 48, 4096, 48 * 585, 32768, len(data))
    extra = struct.pack("<ii3s", 1, 2, arch + b"\0")
    descriptor = struct.pack("<iBIIIqqqqqqq128s384s", 0x4004, 1, 1, 0xf0000001, 0, 32768, len(data), len(data),
                             1700000000, 1700000000, 0, 0, b"root", extra)
    assert len(header) == 128 and len(descriptor) == 585
    with open(path, "wb") as file:
        file.write(header.ljust(4096, b"\0") + descriptor)
        file.seek(32768)
        file.write(data)
    return path


def make_layer(add):
    """A gzipped tar that `add` filled."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as tar:
        add(tar)
    return file.getvalue()


def make_layout(path, layers, tag="it", said=None):
    """An OCI image layout of one image; `said` is what it says of how it is run."""
    blobs = os.path.join(path, "blobs", "sha256")
    os.makedirs(blobs)

    def put(data, kind):
        name = hashlib.sha256(data).hexdigest()
        with open(os.path.join(blobs, name), "wb") as file:
            file.write(data)
        return {"mediaType": "application/vnd.oci.image." + kind, "digest": "sha256:" + name, "size": len(data)}

    architecture = {"x86_64": "amd64", "aarch64": "arm64"}.get(os.uname().machine, os.uname().machine)
    config = {"architecture": architecture, "os": "linux", "config": said or {},
              "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(gzip.decompress(layer)).hexdigest()
                                                  for layer in layers]}}
    manifest = {"schemaVersion": 2, "config": put(json.dumps(config).encode(), "config.v1+json"),
                "layers": [put(layer, "layer.v1.tar+gzip") for layer in layers]}
    one = dict(put(json.dumps(manifest).encode(), "manifest.v1+json"),
               annotations={"org.opencontainers.image.ref.name": tag})
    for name, document in (("oci-layout", {"imageLayoutVersion": "1.0.0"}),
                           ("index.json", {"schemaVersion": 2, "manifests": [one]})):
        with open(os.path.join(path, name), "w") as file:
            json.dump(document, file)
    return path


def add_file(tar, name, text):
    info = tarfile.TarInfo(name)
    info.size = len(text)
    tar.addfile(info, io.BytesIO(text))


class Images(Case):
    def setUp(self):
        self.there = tempfile.mkdtemp(prefix="sluice-images-")
        self.addCleanup(shutil.rmtree, self.there)
        self.cache = self.path("cache")  # of all workers, as on one node
        self.fleet = self.enter(Fleet(workers={"init": 2, "run": 2, "eval": 2}, worker_options=("--cache", self.cache, "--images", self.there)))
        self.root = make_root(os.path.join(self.there, "root"), "packed")

    def path(self, name):
        return os.path.join(self.there, name)

    def on(self, number, image, which="packed"):
        """Set-up, the agent's layer and the evaluator all see the image and what was written over it."""
        return sandbox(number, f'test "$(cat /etc/which /etc/mine made)" = $\'{which}\\nmine\\nmade\'', image=image,
                       setup=["echo mine >/etc/mine", "echo made >made"])

    def test_images_that_nobody_offers_end_their_task_and_no_sandbox_shows_what_the_worker_was_told(self):
        told = tempfile.mkdtemp(prefix="sluice-told-", dir="/opt" if os.access("/opt", os.W_OK) else None)
        self.addCleanup(shutil.rmtree, told)
        key = os.path.join(told, "search.key")
        with open(key, "w", encoding="utf-8") as file:
            file.write("a-key\n")
        os.chmod(told, 0o755)
        options = ("--images", self.there, "--search", "tavily=https://127.0.0.1:1", "--search-key", key)
        fleet = self.enter(Fleet(workers={"init": 1, "run": 1, "eval": 1}, worker_options=options))
        outside = tempfile.mkdtemp(prefix="sluice-outside-")
        self.addCleanup(shutil.rmtree, outside)
        os.symlink(outside, self.path("link"))
        refused = ["/", "/etc", "/proc", fleet.data, fleet.store, outside, self.path("link"), told]
        client = self.client(fleet)
        client.submit([sandbox(k, image=image) for k, image in enumerate(refused)] + [sandbox(99, f'test ! -s "{key}"')], stream="s")
        for t in self.read(client, "s", len(refused) + 1):
            if t.task == "sandbox-99":
                self.assertEqual((t.outcome, t.reward), ("ok", 1.0), t)
            else:
                self.assertEqual((t.outcome, t.reward), ("task", None), t)
                self.assertIn("--images", t.detail)

    def run_all(self, tasks, stream="s", samples=1):
        client = self.client(self.fleet)
        client.submit([dict(task, samples=samples) for task in tasks], stream=stream)
        return self.read(client, stream, len(tasks) * samples)

    def test_tasks_run_on_a_sif_a_squashfs_an_oci_layout_and_a_directory(self):
        squashfs = make_squashfs(self.root, self.path("it.squashfs"))

        def second(tar):
            add_file(tar, "etc/which", b"oci\n")
            add_file(tar, "bin/.wh.ls", b"")
        layout = make_layout(self.path("layout"), [make_layer(lambda tar: tar.add(self.root, ".")), make_layer(second)])
        archive = self.path("layout.tar")
        with tarfile.open(archive, "w") as tar:
            tar.add(layout, ".")
        tasks = [self.on(7, archive, "oci"), self.on(1, make_sif(squashfs, self.path("it.sif"))), self.on(2, squashfs), self.on(3, self.root),
                 self.on(4, layout, "oci"), self.on(5, layout + ":it", "oci"),
                 sandbox(6, "test ! -e /bin/ls && test -e /bin/cat", image=layout)]
        self.assert_all(self.run_all(tasks, samples=2))
        said = subprocess.run([IMAGE, "list", "--json", "--cache", self.cache], capture_output=True, check=True)
        kinds = sorted(row["kind"] for row in json.loads(said.stdout))
        self.assertEqual(kinds, ["oci", "sif", "squashfs"])  # by four workers and twelve rollouts: once each

    def test_a_bad_image_ends_its_task_with_the_reason_and_costs_others_nothing(self):
        good = make_sif(make_squashfs(self.root, self.path("it.squashfs")), self.path("good.sif"))
        with open(good, "rb") as file:
            data = file.read()
        bad = {"short.sif": (data[:40000], "and the file has 40000"),
               "no.sif": (data.replace(b"SIF_MAGIC", b"SIF_MAGIX"), "neither a SIF nor a SquashFS"),
               "version.sif": (data.replace(b"SIF_MAGIC\x0001", b"SIF_MAGIC\x0002"), "a SIF of a version other than 01"),
               "noise.sif": (data[:33000] + bytes(range(256)) * 64 + data[33000 + 256 * 64:], "noise.sif")}
        for name, (content, _) in bad.items():
            with open(self.path(name), "wb") as file:
                file.write(content)
        words = {k: words for k, (_, words) in enumerate(bad.values())}
        layout = make_layout(self.path("layout"), [make_layer(lambda tar: add_file(tar, "../../out", b"x"))])
        damaged = make_layout(self.path("damaged"), [make_layer(lambda tar: tar.add(self.root, "."))])
        largest = max((os.path.join(damaged, "blobs", "sha256", name) for name in
                       os.listdir(os.path.join(damaged, "blobs", "sha256"))), key=os.path.getsize)
        with open(largest, "r+b") as file:
            file.seek(os.path.getsize(largest) // 2)
            file.write(b"damage")
        words.update({10: "its path leads out", 11: "layout", 12: "there is no image"})
        images = [*(self.path(name) for name in bad)], layout, damaged, self.path("none.sif")
        tasks = [sandbox(k, image=image) for k, image in enumerate(images[0])]
        tasks += [sandbox(10, image=layout), sandbox(11, image=damaged), sandbox(12, image=images[3])]
        seen = self.run_all(tasks + [self.on(20, good), sandbox(21)])
        for t in seen:
            number = int(t.task.split("-")[1])
            if number >= 20:
                self.assertEqual((t.outcome, t.reward), ("ok", 1.0), t)
                continue
            self.assertEqual((t.outcome, t.reward), ("task", None), t)
            if number != 11:  # gzip or the digest finds it, whichever comes first
                self.assertIn(words[number], t.detail)
        self.assertFalse(os.path.exists(self.path("out")))
        left = [name for name in os.listdir(os.path.join(self.cache, "images")) if ".tmp." in name]
        self.assertEqual(left, [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
