"""Servers of other systems, each on a port and in a directory of its own, at the settings that
docs/contributing/benchmarks.md states."""
import glob
import os
import re
import shutil
import subprocess

import processes


class Missing(Exception):
    """It is not installed."""


def program(*names):
    """The first of these that is installed; Debian keeps servers in /usr/sbin and RabbitMQ's own script in /usr/lib."""
    for name in names:
        for path in [shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin"), *glob.glob(name)]:
            if path:
                return path
    raise Missing(f"{names[0].rsplit('/', 1)[-1]} is not installed")


class Server:
    """Processes on `port`. With `with`; leaving ends them and removes what they wrote."""

    def __init__(self, directory):
        self.directory, self.port, self.started = directory, processes.free_port(), []

    def __enter__(self):
        shutil.rmtree(self.directory, ignore_errors=True)
        os.makedirs(self.directory)
        try:
            self.start()
            processes.await_port(self.started[-1], self.port)
        except BaseException:
            self.__exit__()
            raise
        return self

    def spawn(self, *command, environment=None):
        with open(f"{self.directory}/log", "ab") as log:
            self.started.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                                 env={**os.environ, **(environment or {})}))

    def __exit__(self, *_):
        for process in reversed(self.started):
            processes.stop(process)
        shutil.rmtree(self.directory, ignore_errors=True)


class Redis(Server):
    fsync = "always"

    def start(self):
        self.spawn(program("redis-server"), "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--dir",
                   self.directory, "--appendonly", "yes", "--appendfsync", self.fsync)


class RedisEverySecond(Redis):
    fsync = "everysec"


class Beanstalkd(Server):
    fsync_ms = 0

    def start(self):
        self.spawn(program("beanstalkd"), "-l", "127.0.0.1", "-p", str(self.port), "-z", "1000000", "-b",
                   self.directory, "-f", str(self.fsync_ms))


class BeanstalkdEvery50(Beanstalkd):
    fsync_ms = 50


class Nats(Server):
    def start(self):
        self.spawn(program("nats-server"), "-a", "127.0.0.1", "-p", str(self.port), "-js", "-sd", self.directory)


class Rabbit(Server):
    """Erlang's schedulers do not spin while they wait, as its guide advises where cores are shared."""
    SCRIPT = "/usr/lib/rabbitmq/lib/rabbitmq_server-*/sbin/rabbitmq-server"

    def start(self):
        script, epmd = program(self.SCRIPT), program("epmd")
        names = processes.free_port()
        with open(f"{self.directory}/plugins", "w", encoding="ascii") as file:
            file.write("[].")
        self.spawn(epmd, "-address", "127.0.0.1", "-port", str(names))
        processes.await_port(self.started[0], names)
        self.spawn(script, environment={
            "HOME": self.directory, "RABBITMQ_NODENAME": f"bench-{self.port}@localhost",
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1", "RABBITMQ_NODE_PORT": str(self.port),
            "RABBITMQ_DIST_PORT": str(processes.free_port()), "RABBITMQ_MNESIA_BASE": f"{self.directory}/mnesia",
            "RABBITMQ_LOG_BASE": f"{self.directory}/logs", "RABBITMQ_CONF_ENV_FILE": "/dev/null",
            "RABBITMQ_CONFIG_FILE": f"{self.directory}/none",
            "RABBITMQ_ENABLED_PLUGINS_FILE": f"{self.directory}/plugins",
            "ERL_EPMD_ADDRESS": "127.0.0.1", "ERL_EPMD_PORT": str(names),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1} "
                                                   "+sbwt none +sbwtdcpu none +sbwtdio none"})


def versions():
    """Of the servers, as far as they are there."""
    found = []
    for name, command in (("Redis", ["redis-server", "--version"]), ("beanstalkd", ["beanstalkd", "-v"]),
                          ("NATS", ["nats-server", "--version"])):
        try:
            said = subprocess.run([program(command[0]), *command[1:]], capture_output=True, text=True, timeout=30).stdout
            found.append(f"{name} {re.search(r'[0-9]+[.][0-9.]*[0-9]', said).group()}")
        except Missing:
            pass
    for path in glob.glob(Rabbit.SCRIPT):
        found.append(f"RabbitMQ {re.search(r'rabbitmq_server-([0-9.]+)', path).group(1)}")
    return found
