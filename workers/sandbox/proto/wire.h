/*
 * wire.h - what the worker, the spawner and pid 1 of a sandbox say to each other: one
 * message a packet on SOCK_SEQPACKET socket pairs, descriptors beside it (SCM_RIGHTS).
 * All three were built together; the sandboxed processes hold no end of these sockets.
 */
#ifndef SLUICE_WORKERS_SANDBOX_PROTO_WIRE_H
#define SLUICE_WORKERS_SANDBOX_PROTO_WIRE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/slice.h"
#include "workers/sandbox/proto/listener.h"

enum { WIRE_TEXT_MAX = 65536, WIRE_FDS_MAX = 16 };
/* Of what those inside have in their environment beside the usual: each a NAME=VALUE, with its NUL among the bytes. */
enum { SANDBOX_VARIABLES_MAX = 256, SANDBOX_VARIABLES_BYTES_MAX = 16384 };

enum wire_verb {
    WIRE_SETUP = 1, /* worker -> spawner, before all else: text a struct spawner_setup, then masked_paths_list(); see
                       there for descriptors */
    WIRE_CONTAINER, /* worker -> spawner: text a struct wire_container, then image\0, with
                       has_harness name\0dir\0, and layer\0... */
    WIRE_KERNEL,    /* worker -> spawner: number[0] the `id` of a container; a kernel's channel, its output, then what
                       WIRE_INSIDE gave */
    WIRE_START,     /* worker -> pid 1: numbers arguments, variables; text int32 targets[fds], then
                     * workdir\0argv\0...variable\0...;     answers the pid */
    WIRE_KILL_ALL,  /* number[0] the pid to spare, or 0 */
    WIRE_SIGNAL,    /* numbers a pid, a signal for it and all its descendants; SIGKILL freezes them first */
    WIRE_ADOPT,     /* number[0] a pid whose end is to be told as if it had been started by this `id` */
    WIRE_FILE,      /* numbers flags, mode, as_user; text the path; answers with the descriptor */
    WIRE_PACK,      /* one descriptor to write to; number[0] 1: those at work go on then; answers the bytes */
    WIRE_INSIDE,    /* worker -> pid 1: answers with its namespaces, the user namespace first */
    WIRE_DONE,      /* the answer to `id`: numbers code (0 or negative errno), result; text a sentence */
    WIRE_EXITED,    /* pid 1 -> worker: `id` of the start, number[0] status (0..255, 256 + signal) */
    WIRE_BREACH,    /* spawner -> worker: `id` of the container, text the limit's name */
    WIRE_BORN, /* a new pid 1 -> spawner: `id` of the container; number[0] bits 1 << enum wire_own, a descriptor each */
    WIRE_RENAME, /* worker -> pid 1: number[0] 1: text from\0to\0; 0: text path\0, which is removed */
    WIRE_STATE,  /* worker -> pid 1: one file's descriptor, number[0] an enum wire_state, number[1] a mode; answers its
                    value */
    WIRE_KILL_COMMAND, /* worker -> pid 1: numbers a shell's pid, ticks since boot: sandbox_kill_command */
    WIRE_CONFIRM, /* worker -> pid 1: whether its file systems answer; number[0] makes a name that nobody has asked for
                   */
    WIRE_TOUCHED, /* pid 1 -> worker, before a pack's answer: number[0] how many, text of touched_write */
    WIRE_PLACE,   /* worker -> pid 1: numbers an enum wire_place, a mode; text path\0 */
    WIRE_COPY, /* worker -> pid 1: a descriptor, number[0] a mode or 0, text the path inside that what it stands for is
                  copied to */
    WIRE_TERMINAL, /* worker -> pid 1: answers with the master's descriptor and N of /dev/pts/N */
};

/* What a sandbox has of its own and is looked at through. */
enum wire_own {
    OWN_PROC,     /* its /proc */
    OWN_DISK,     /* the file system that takes what it writes */
    OWN_SEGMENTS, /* sysvipc/shm */
    OWN_OUTPUTS,  /* /run/sluice/out, where that is a tmpfs */
    OWN_SOCKETS,  /* net/sockstat */
    OWN_ASK,      /* socket_memory_open() */
    OWN_COUNT
};

enum wire_state { STATE_MODE, STATE_SIZE, STATE_LINKS, STATE_CHANGE_MODE };

/* What is to be at a path: a directory; an empty one, whatever was there; nothing, in a directory. */
enum wire_place { PLACE_DIRECTORY, PLACE_NEW_DIRECTORY, PLACE_FREE };

/* The id under which a new pid 1 says unasked that the container is ready, or why it is not. */
enum { WIRE_READY_ID = 1 };

struct wire_container {
    uint64_t memory_mib, disk_mib, processes, inodes, file_mib;
    uint64_t cpus;        /* to be bound to; 0: all */
    uint64_t usage;       /* its place among all */
    uint64_t kernels;     /* 1: it is to share a zygote (zygote.h), where one can be had */
    uint64_t is_sealed;   /* 1: sandbox_plan's */
    uint64_t uid, gid;    /* who those inside are, as they see it */
    uint64_t has_harness; /* 1: sandbox_plan's */
    uint64_t listener_count;
    struct listener listeners[LISTENERS_MAX];
};

struct wire_head {
    uint32_t verb, id;
    int64_t number[3];
};

struct wire_message {
    struct wire_head head;
    int fds[WIRE_FDS_MAX]; /* the receiver's: take_fd or wire_close_fds */
    size_t fd_count;
    bool is_short; /* descriptors were sent that this process has no room for */
    size_t text_len;
    char text[WIRE_TEXT_MAX + 1]; /* NUL-terminated beyond text_len; last, so that its end is rarely touched */
};

/* 0 or negative errno (-EAGAIN on a full non-blocking socket, -EMSGSIZE over the limits). */
int wire_send(int socket, const struct wire_head *head, struct slice text, const int *fds, size_t fd_count);
/* The head alone; a full socket, blocking or not, is -EAGAIN at once. */
int wire_try_send(int socket, const struct wire_head *head);
/* 1: a message; 0: the other end is gone; negative errno (-EAGAIN: nothing there). */
int wire_receive(int socket, struct wire_message *ret);
void wire_close_fds(struct wire_message *message);

/* Cuts NUL-ended strings out of text[from..]; NULL when there are none left. */
const char *wire_next_string(const struct wire_message *message, size_t *from);

#endif
