/*
 * link.h - a client's sockets: how it proves who it is, and why it cannot talk to the broker.
 *
 * FRONT's handshakes are listened to. One that is refused ends libzmq's attempts, so the socket is
 * made anew, every LINK_AGAIN_MS, and the reason is what a request that finds no answer fails with.
 */
#ifndef SLUICE_CLIENT_LIB_LINK_H
#define SLUICE_CLIENT_LIB_LINK_H

#include <stdint.h>

#include "common/net/curve.h"

struct sluice_client;

enum { LINK_AGAIN_MS = 500 };

struct link {
    struct key key;
    char key_path[512]; /* "" without a key */
    bool allow_plaintext, is_refused;
    int bad_key;                  /* what reading the key failed with, and its sentence */
    char error[1200];             /* why there is no connection, "" if nothing is known */
    struct handshakes handshakes; /* of FRONT */
    unsigned broken;              /* how many in a row ended without a word */
    int64_t again_ms;
    uint64_t made; /* how often FRONT was made: FEED, which was refused with it, is made as often */
};

/* From the environment: SLUICE_KEY, SLUICE_ALLOW_PLAINTEXT. */
void link_init(struct link *link);
void link_finish(struct link *link);
/* In place of a file's; NULL: none. Before the first socket. */
void link_set_key(struct link *link, const struct key *key);

/* A socket of the client's context, connected to url with its key, limits and keepalive; NULL with a sentence and
 * errno. */
void *link_socket(struct sluice_client *client, int type, const char *url);
/* Opens and closes client->front. */
int link_open_front(struct sluice_client *client);
void link_close_front(struct sluice_client *client);

/* Hears what became of FRONT's handshakes and mends what can be. Call it in every round. */
void link_mend(struct sluice_client *client, int64_t now_ms);
/* No answer came: -EACCES with the reason if there is one, else -ETIMEDOUT. */
int link_fail(struct sluice_client *client);

#endif
