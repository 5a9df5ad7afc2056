/*
 * keys.h - key files: who somebody is, as text. One `word value` a line, '#' begins a comment:
 *
 *     role trainer          # trainer, worker, admin or broker
 *     name alice            # 1 to 64 of A-Z a-z 0-9 . _ -, not beginning with . or -
 *     public Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID
 *     secret D:)Q[IlAW!ahhC2ac:9*A}h:p?([4%wOTJ%JR%cs
 *     broker rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7
 *
 * The three are CURVE keys in Z85. A file without `secret` is a certificate and may be read by
 * anybody; one with it must be its owner's alone, else it is refused. `broker` is the broker's
 * public key: with it, one file is all that a client or a worker needs.
 */
#ifndef SLUICE_COMMON_NET_KEYS_H
#define SLUICE_COMMON_NET_KEYS_H

#include <stdbool.h>

#include "common/base/fail.h"

enum key_role { ROLE_TRAINER, ROLE_WORKER, ROLE_ADMIN, ROLE_BROKER, ROLE_COUNT };

enum { KEY_TEXT_SIZE = 41, KEY_NAME_SIZE = 65, KEY_FILE_MAX = 4096 };

struct key {
    enum key_role role;
    char name[KEY_NAME_SIZE];
    char public_text[KEY_TEXT_SIZE];
    char secret_text[KEY_TEXT_SIZE]; /* "" in a certificate */
    char broker_text[KEY_TEXT_SIZE]; /* "" where it says none */
};

const char *key_role_name(enum key_role role);
bool key_role_parse(const char *text, enum key_role *ret);
bool key_name_is_valid(const char *name);

/*
 * -ENOENT and the like; -EACCES: it holds a secret and others than its owner may read or change it;
 * -EINVAL: it is not a key file. The sentence names the file and the line.
 */
int key_read(const char *path, struct key *ret, struct fail *fail);
/* The same, and -EINVAL if it is a certificate, or names no broker. */
int key_read_own(const char *path, struct key *ret, struct fail *fail);
/* Makes the file, whole or not at all, 0600 if it holds a secret. -EEXIST: it is there already. */
int key_write(const char *path, const struct key *key, struct fail *fail);

/* Overwrites the secret. */
void key_wipe(struct key *key);

#endif
