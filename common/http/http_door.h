/* http_door.h - a listening socket on a loop: who comes in, while it is open; else they wait in the kernel's queue. */
#ifndef SLUICE_COMMON_HTTP_HTTP_DOOR_H
#define SLUICE_COMMON_HTTP_HTTP_DOOR_H

#include <stdbool.h>
#include <sys/socket.h>

#include "common/loop/loop.h"

struct http_door {
    int fd;
    struct loop *loop;
    struct loop_watch *watch;
    bool is_shut;
    /* Takes the descriptor. */
    void (*come)(void *arg, int fd, const struct sockaddr *address, socklen_t len);
    void *arg;
};

/* All but its watch is set; the descriptor is the door's until it is closed. False: out of memory. */
bool http_door_open(struct http_door *door);
void http_door_close(struct http_door *door);
/* May be called by `come`. */
void http_door_shut(struct http_door *door);
/* Does nothing where it is not shut. */
void http_door_reopen(struct http_door *door);

#endif
