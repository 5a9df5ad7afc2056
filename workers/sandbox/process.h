/*
 * process.h - what the parts beside sandbox.c (command.c, the shell) need of a sandbox: an
 * end of a process as one of several things a fiber waits for, and the tools' directories.
 */
#ifndef SLUICE_WORKERS_SANDBOX_PROCESS_H
#define SLUICE_WORKERS_SANDBOX_PROCESS_H

#include "workers/sandbox/sandbox.h"

/* Keeps the memory of a sandbox that its owner closes while a fiber is still at work with it. */
void sandbox_hold(struct sandbox *sandbox);
void sandbox_release(struct sandbox *sandbox);

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
/* 0, or why the sandbox cannot be used: a breach or its end, in words. */
int sandbox_check(const struct sandbox *sandbox, struct fail *fail);

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

/* 1, 2, 3 ...: for names that are the same in every rollout. */
uint64_t sandbox_next_number(struct sandbox *sandbox);

/* Directories of the tools, borrowed: the commands, read-only inside, and the outputs,
 * where what lies may be anything: open single names with O_NOFOLLOW | O_NONBLOCK. */
int sandbox_commands_dir(const struct sandbox *sandbox);
int sandbox_outputs_dir(const struct sandbox *sandbox);
/* What an errno in the outputs' directory means: -errno for want of something of ours, else that the
 * agent has filled or spoiled it, and what needs it does not start: -ENOEXEC. */
int sandbox_outputs_code(int error);
/* What those inside call the first; the second is its "out". */
const char *sandbox_run_path(const struct sandbox *sandbox);

#endif
