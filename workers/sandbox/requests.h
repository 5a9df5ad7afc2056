/* requests.h - what is asked of the first process of a sandbox: files, processes, terminals, packing. */
#ifndef SLUICE_WORKERS_SANDBOX_REQUESTS_H
#define SLUICE_WORKERS_SANDBOX_REQUESTS_H

#include "workers/sandbox/sandbox.h"

struct stat;

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
 * Copies a file, or what a directory holds, from outside to a path inside, as the copy service has it
 * (init/services/copy.h): `from` is open for reading, and nobody changes what it stands for meanwhile; `mode`: of all
 * that is made, 0: as it is. 0 or negative errno.
 */
int sandbox_copy_in(struct sandbox *sandbox, int from, const char *path, mode_t mode, struct fail *fail);

int sandbox_stat_file(struct sandbox *sandbox, int fd, struct stat *ret, struct fail *fail);
int sandbox_chmod_file(struct sandbox *sandbox, int fd, mode_t mode, struct fail *fail);

/* Renames as rename(2) does, or removes a file; with the rights of the processes inside. */
int sandbox_rename(struct sandbox *sandbox, const char *from, const char *to, struct fail *fail);
int sandbox_remove(struct sandbox *sandbox, const char *path, struct fail *fail);
/*
 * So that something of ours can lie at `path`, whatever those inside left there and on the way: a directory is there
 * (made, if it is not, with its parents); a new and empty one is, or nothing is, in place of all that was. Negative
 * errno with a sentence.
 */
int sandbox_make_dir(struct sandbox *sandbox, const char *path, mode_t mode, struct fail *fail);
int sandbox_remake_dir(struct sandbox *sandbox, const char *path, mode_t mode, struct fail *fail);
int sandbox_clear_path(struct sandbox *sandbox, const char *path, struct fail *fail);
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
 * Kills all processes, then packs what was written (the overlay's upper directory) as a tar
 * with OCI whiteouts into `fd`. 0 with *bytes written; 0 bytes when nothing was written.
 */
int sandbox_pack(struct sandbox *sandbox, int fd, uint64_t *bytes, struct fail *fail);
/* The same of processes that are only held still meanwhile, and go on. -EBUSY: they do not stop. */
int sandbox_snapshot(struct sandbox *sandbox, int fd, uint64_t *bytes, struct fail *fail);

/*
 * 1: it ended, *status as sandbox_wait's, and is forgotten; 0: it runs, and fiber_wake will
 * come to the current fiber when it ends or the sandbox does (spurious wakes happen: look
 * again); negative errno: the sandbox is gone, or there is no such process (-ESRCH).
 */
int sandbox_poll_exit(struct sandbox *sandbox, pid_t pid, int *status, struct fail *fail);
/* The current fiber is no longer woken for it; called before a fiber that polled ends. */
void sandbox_forget_exit(struct sandbox *sandbox, pid_t pid);
/* Kills without waiting, where waiting is no longer possible. */
void sandbox_kill_all_later(struct sandbox *sandbox);

/*
 * Whether what was seen in it can be believed: its first process lives and answers, so do its file systems, and
 * the kernel has ended no process for want of memory that may have been one of its own. 0, or -EIO with a sentence;
 * -ETIMEDOUT when nothing answers.
 */
int sandbox_confirm(struct sandbox *sandbox, struct fail *fail);

/*
 * Kills what a command of the shell started: everything but the shell itself, what else was started
 * here (sandbox_start, sandbox_adopt) and what had begun before began_ticks (since boot, as /proc
 * counts), these with their descendants. 0 ticks: older things and the shell are killed, too.
 * -EBUSY: new processes keep appearing.
 */
int sandbox_kill_command(struct sandbox *sandbox, pid_t shell, uint64_t began_ticks, struct fail *fail);

/* A signal for a process and all its descendants; SIGKILL lets none of them escape it. */
int sandbox_signal_tree(struct sandbox *sandbox, pid_t pid, int signal, struct fail *fail);
/* SIGKILL for them without waiting, where waiting is no longer possible. */
void sandbox_kill_tree_later(struct sandbox *sandbox, pid_t pid);
/* Makes a process that was not started by sandbox_start, but is a child of pid 1, one that
 * sandbox_poll_exit and sandbox_wait know. -ESRCH: there is none (any more). */
int sandbox_adopt(struct sandbox *sandbox, pid_t pid, struct fail *fail);

/*
 * Asks the fork server of the image (zygote.h) for a kernel with these two descriptors, its channel
 * and its output; it says on the channel what became of it. Negative errno: there is no such
 * server here, and the kernel is to be started in the ordinary way.
 */
int sandbox_fork_kernel(struct sandbox *sandbox, const int fds[2], struct fail *fail);

/* What an errno in the outputs' directory means: -errno for want of something of ours, else that the
 * agent has filled or spoiled it, and what needs it does not start: -ENOEXEC. */
int sandbox_outputs_code(int error);

#endif
