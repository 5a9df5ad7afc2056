/*
 * sandbox.h - a rootless container for untrusted processes: user, mount, pid, ipc, uts, cgroup
 * and net namespaces, an overlay on tmpfs, capabilities dropped, no_new_privs, seccomp,
 * limits. Nothing of it survives its end: killing its pid 1 frees processes and files.
 *
 * A small single-threaded *spawner*, a program of its own whose bytes are part of this one, is
 * executed first thing in main and does all cloning (of a large process that is slow, and each
 * clone keeps what that has mapped); it dies with the worker, and the sandboxes with it. pid 1 of
 * a sandbox is our own code: it starts processes, reaps them, opens files and packs the upper
 * layer on request, and is out of the agent's reach.
 *
 * All calls but spawner_start run in a fiber and await; each may return -ETIMEDOUT or
 * -ECANCELED as awaits do.
 */
#ifndef SLUICE_WORKERS_SANDBOX_SANDBOX_H
#define SLUICE_WORKERS_SANDBOX_SANDBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/base/fail.h"
#include "schemas/limits.h"
#include "workers/runtime/loop.h"
#include "workers/sandbox/proto/listener.h"
#include "workers/sandbox/proto/tier.h"

struct spawner;
struct sandbox;
struct cgroups;

/*
 * Executes the spawner. Call before any thread or ZeroMQ context.
 * `scratch` is an existing private directory used only as a mount point.
 */
struct spawner *spawner_start(const char *scratch, struct fail *fail);
/* The same with another tier than overlay-tmpfs; `disks`: a directory of the cache, made where it
 * is missing, for tiers that write to a disk (workers with one cache share it). */
struct spawner *spawner_start_tier(const char *scratch, enum tier tier, const char *disks, struct fail *fail);
/* The same, each sandbox in a group of `cgroups` (cgroup.h), which outlives the spawner; NULL, or where there are
 * none: limits are watched. */
struct spawner *spawner_start_bounded(const char *scratch, enum tier tier, const char *disks,
                                      const struct cgroups *cgroups, struct fail *fail);
/* Binds it to the loop that its calls will await on. */
bool spawner_attach(struct spawner *spawner, struct loop *loop);
/* For whoever watches it: a child of the process that started it. */
pid_t spawner_pid(const struct spawner *spawner);
size_t spawner_count(const struct spawner *spawner); /* sandboxes that are open */
/* Kills every sandbox, waits for the spawner. */
void spawner_stop(struct spawner **spawner);

struct sandbox_plan {
    const char *image;   /* a directory, or "host": /usr /bin /sbin /lib* /etc /opt of this host, read-only */
    const char **layers; /* directories, lowest first, over the image; may be none */
    size_t layer_count;
    uint64_t memory_mib; /* all processes together, watched; breach kills the sandbox: sandbox_breach */
    uint64_t disk_mib;   /* of everything written */
    uint64_t processes;
    uint64_t inodes;   /* of everything written; 0: by disk_mib */
    uint64_t file_mib; /* any one file; 0: SANDBOX_FILE_MIB_MAX */
    uint64_t cpus;     /* 0: all that the worker may use */
    bool kernels;      /* Python kernels will be started: sandbox_fork_kernel may work */
    bool is_sealed;    /* names of system_names.def are read-only, and stay; on "host" they are in any case */
    const struct listener *listeners; /* made inside; see sandbox_take_listener */
    size_t listener_count;
};

enum { SANDBOX_FILE_MIB_MAX = 1 << 20 };

/*
 * A new sandbox, ready: /workspace (home and working directory), /tmp, /dev, /proc; uid 1000;
 * loopback only. -EINVAL for a plan that cannot be (a missing image), -ENOMEDIUM for an image that
 * cannot be read or mounted, else negative errno.
 */
int sandbox_open(struct spawner *spawner, const struct sandbox_plan *plan, struct sandbox **ret, struct fail *fail);
/* The listening socket of plan->listeners[i], the caller's from now on; -1 when it was taken. */
int sandbox_take_listener(struct sandbox *sandbox, size_t i);
/* Kills it and all its processes and files; does not wait for the kernel. NULL-safe. Any context. */
void sandbox_close(struct sandbox **sandbox);
/* "memory" once a limit of the plan killed the sandbox, else NULL. */
const char *sandbox_breach(const struct sandbox *sandbox);

/* What it has used so far, and how often it went beyond which limit (schemas/limits.def). */
struct sandbox_usage {
    uint64_t peak_memory_kib, peak_processes, peak_disk_bytes, peak_inodes;
    double cpu_seconds; /* of processes that have ended */
    uint64_t commands, timed_out, output_bytes, cut_bytes;
    uint32_t breaches[LIMIT_COUNT];
};
void sandbox_get_usage(const struct sandbox *sandbox, struct sandbox_usage *ret);

/* False once its pid 1 is gone. */
bool sandbox_is_alive(const struct sandbox *sandbox);

/* Beside the flags of open(2): with no more rights than the processes inside have. */
enum { SANDBOX_AS_USER = 1 << 30 };

/*
 * Opens a path inside the sandbox (as open(2), symlinks resolved inside, never blocking on
 * a FIFO) and hands the descriptor out. Parents are made when flags has O_CREAT.
 * Returns the fd (the caller's), or negative errno with a sentence.
 */
int sandbox_open_file(struct sandbox *sandbox, const char *path, int flags, mode_t mode, struct fail *fail);
/* Writes a whole file; 0 or negative errno. */
int sandbox_write_file(struct sandbox *sandbox, const char *path, const void *data, size_t len, mode_t mode,
                       struct fail *fail);

/*
 * fstat (type, mode, size and links only) and fchmod of what was handed out: a file system that is
 * served by a process answers those inside alone, so pid 1 is asked where we are refused.
 */
struct stat;
int sandbox_stat_file(struct sandbox *sandbox, int fd, struct stat *ret, struct fail *fail);
int sandbox_chmod_file(struct sandbox *sandbox, int fd, mode_t mode, struct fail *fail);

/* Renames as rename(2) does, or removes a file; with the rights of the processes inside. */
int sandbox_rename(struct sandbox *sandbox, const char *from, const char *to, struct fail *fail);
int sandbox_remove(struct sandbox *sandbox, const char *path, struct fail *fail);
/* A new terminal of the sandbox: the fd of its master (the caller's), *number is N of
 * /dev/pts/N; or negative errno. */
int sandbox_open_terminal(struct sandbox *sandbox, int *number, struct fail *fail);

/*
 * Starts argv[0] (absolute path) in /workspace with exactly these descriptors as 0.. (each
 * kept by the caller too); ret_pid is its pid inside. `fds` maps to numbers in `targets`.
 * -ENOEXEC, which means nothing else: the program does not start, whatever the kernel says of it
 * (it is not there, has no rights, is none, its interpreter is none). What is inside is at fault,
 * image or agent, and never the node; also where processes inside stopped it before it was executed,
 * and it was killed (pending_execs.h). The shells and kernels of the tools say it in the same way.
 */
struct sandbox_exec {
    const char *const *argv; /* NULL-terminated */
    const int *fds, *targets;
    size_t fd_count;
};
int sandbox_start(struct sandbox *sandbox, const struct sandbox_exec *exec, pid_t *ret_pid, struct fail *fail);
/* Awaits its end: exit status 0..255, 256 + signal; negative errno when cancelled or late. */
int sandbox_wait(struct sandbox *sandbox, pid_t pid, struct fail *fail);
/* Kills every process of the sandbox but its pid 1 and `except` (0: none). */
int sandbox_kill_all(struct sandbox *sandbox, pid_t except, struct fail *fail);

/*
 * One command by `bash -c`, output and errors together, at most output_max bytes kept
 * (head and tail, with a line in between saying how many bytes were left out). Everything it
 * started is killed at its end, or after timeout_ms. *status as sandbox_wait; *timed_out.
 * 0; -ENOEXEC when there is no bash that starts; else negative errno when the sandbox failed.
 */
struct sandbox_output {
    char *text; /* free; NUL-terminated, len bytes */
    size_t len;
    uint64_t total; /* bytes it wrote */
    int status;
    bool timed_out;
    double seconds;
};
/* Counts a command that has ended; sandbox_command does it itself, tools call it. */
void sandbox_count_command(struct sandbox *sandbox, const struct sandbox_output *output, size_t output_max);
int sandbox_command(struct sandbox *sandbox, const char *command, int64_t timeout_ms, size_t output_max,
                    struct sandbox_output *ret, struct fail *fail);
/* The same, and the end of what it wrote to its standard error, which is in the output, too, as it came. */
struct sandbox_errors {
    size_t len;
    char text[8192 + 1]; /* NUL-terminated */
};
int sandbox_command_apart(struct sandbox *sandbox, const char *command, int64_t timeout_ms, size_t output_max,
                          struct sandbox_output *ret, struct sandbox_errors *ret_errors, struct fail *fail);

/*
 * Kills all processes, then packs what was written (the overlay's upper directory) as a tar
 * with OCI whiteouts into `fd`. 0 with *bytes written; 0 bytes when nothing was written.
 */
int sandbox_pack(struct sandbox *sandbox, int fd, uint64_t *bytes, struct fail *fail);
/* How many files it came by that decide what runs in an evaluator's sandbox (schemas/trajectory/tamper.def), and the first of each
 * kind one after the other, from *at = 0; borrowed. */
uint64_t sandbox_touched(const struct sandbox *sandbox);
bool sandbox_next_touched(const struct sandbox *sandbox, size_t *at, const char **what, const char **path);

#endif
