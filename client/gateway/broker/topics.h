/*
 * topics.h - what one caller listens to on FEED: bodies of topics, each handed to whoever listens to that topic. FEED
 * is free to drop: who must miss nothing asks FRONT as well, and takes what comes here for a hint that there is more.
 */
#ifndef SLUICE_CLIENT_GATEWAY_BROKER_TOPICS_H
#define SLUICE_CLIENT_GATEWAY_BROKER_TOPICS_H

#include "client/gateway/broker/caller.h"
#include "common/containers/list.h"

enum { TOPIC_SIZE = 224 };

struct topics;

/* In a struct of who listens; all zero before its first use. */
struct listening {
    struct topics *topics; /* NULL: it does not */
    struct topic *topic;
    struct list link;
    void (*heard)(void *arg, struct slice body); /* may end this listening, and begin others */
    void *arg;
};

/* NULL: out of memory. Connects when somebody listens. The caller stays for as long. */
struct topics *topics_open(struct loop *loop, struct caller *caller);
void topics_close(struct topics **topics);
/* False: out of memory. */
bool topics_listen(struct topics *topics, struct listening *listening, const char *topic);
/* May be called twice. */
void topics_leave(struct listening *listening);
/* Once before each wait of the loop. */
void topics_work(struct topics *topics);

#endif
