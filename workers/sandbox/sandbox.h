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
#include "common/loop/loop.h"
#include "workers/sandbox/proto/listener.h"
#include "workers/sandbox/proto/tier.h"

struct spawner;
struct sandbox;
struct cgroups;

/* Who those inside are, as they see it: one id is mapped, whichever that is, and none has a capability. */
struct sandbox_user {
    uint32_t uid, gid; /* uid 0: what changes owners and identities is answered as done (seccomp_root.h) */
};

/* A directory of the host's, seen read-only at /opt/harness/NAME: one for any number of sandboxes. */
struct sandbox_harness {
    const char *name, *dir; /* absolute */
};

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
    const struct sandbox_user *user; /* NULL: 1000, 1000 */
    const char *workdir;             /* where processes start, made if it is not there; NULL: /workspace */
    const char *const *variables;    /* "NAME=VALUE", over the usual ones; copied, as the workdir is */
    size_t variable_count;
    const struct sandbox_harness *harness; /* NULL: none */
    const struct listener *listeners;      /* made inside; see sandbox_take_listener */
    size_t listener_count;
};

enum { SANDBOX_FILE_MIB_MAX = 1 << 20 };

/*
 * A new sandbox, ready: /workspace (home and working directory, where the plan says nothing else), /tmp, /dev, /proc;
 * loopback only. -EINVAL for a plan that cannot be (a missing image), -ENOMEDIUM for an image that
 * cannot be read or mounted, else negative errno.
 */
int sandbox_open(struct spawner *spawner, const struct sandbox_plan *plan, struct sandbox **ret, struct fail *fail);
/* The listening socket of plan->listeners[i], the caller's from now on; -1 when it was taken. */
int sandbox_take_listener(struct sandbox *sandbox, size_t i);
/* Another descriptor of it, the caller's, as often as there are steps; -1 when there is none. */
int sandbox_copy_listener(const struct sandbox *sandbox, size_t i);
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

/*
 * fstat (type, mode, size and links only) and fchmod of what was handed out: a file system that is
 * served by a process answers those inside alone, so pid 1 is asked where we are refused.
 */

/*
 * One command by `bash -c`, output and errors together, at most output_max bytes kept
 * (head and tail, with a line in between saying how many bytes were left out). All processes are killed at its end, or
 * after timeout_ms (but for sandbox_spare). *status as sandbox_wait; *timed_out.
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
/*
 * What was at work before a command goes on behind its end (on), or is killed with what it started (off, as at
 * first). For who is to find the processes of others there, command after command.
 */
void sandbox_spare(struct sandbox *sandbox, bool on);
bool sandbox_spares(const struct sandbox *sandbox);
/* Counts a command that has ended; sandbox_command does it itself, tools call it. */
void sandbox_count_command(struct sandbox *sandbox, const struct sandbox_output *output, size_t output_max);

/* How many files it came by that decide what runs in an evaluator's sandbox (schemas/trajectory/tamper.def), and the
 * first of each kind one after the other, from *at = 0; borrowed. */
uint64_t sandbox_touched(const struct sandbox *sandbox);
bool sandbox_next_touched(const struct sandbox *sandbox, size_t *at, const char **what, const char **path);

/* ---- for what works in it: commands, requests, the tools --------------------------------------- */

/* Keeps the memory of a sandbox that its owner closes while a fiber is still at work with it. */
void sandbox_hold(struct sandbox *sandbox);
void sandbox_release(struct sandbox *sandbox);

/* 0, or why the sandbox cannot be used: a breach or its end, in words. */
int sandbox_check(const struct sandbox *sandbox, struct fail *fail);

/* 1, 2, 3 ...: for names that are the same in every rollout. */
uint64_t sandbox_next_number(struct sandbox *sandbox);

/* Directories of the tools, borrowed: the commands, read-only inside, and the outputs,
 * where what lies may be anything: open single names with O_NOFOLLOW | O_NONBLOCK. */
int sandbox_commands_dir(const struct sandbox *sandbox);
int sandbox_outputs_dir(const struct sandbox *sandbox);
/* What is started from now on has these variables in place of the plan's. -EINVAL: too many. */
int sandbox_set_variables(struct sandbox *sandbox, const char *const *variables, size_t count, struct fail *fail);
/* Where its processes start, as those inside call it. */
const char *sandbox_workdir(const struct sandbox *sandbox);
/* What those inside call the first; the second is its "out". */
const char *sandbox_run_path(const struct sandbox *sandbox);

#endif
