/*
 * had.h - names of groups whose answers their callers had, on disk: whoever asks for the same again, after a gateway
 * that was killed, gets another rollout, and a caller who never had its answer gets that one. A line is written when an
 * answer is delivered; it survives kill -9, and after a power cut a caller may at worst be told an old answer again.
 */
#ifndef SLUICE_CLIENT_GATEWAY_RUNS_HAD_H
#define SLUICE_CLIENT_GATEWAY_RUNS_HAD_H

#include "common/base/fail.h"
#include "common/containers/table.h"

enum { HAD_NAME_SIZE = 97 };

struct had;

/* Makes the file and its directory where they are not there. NULL with a sentence. */
struct had *had_open(const char *path, struct fail *fail);
void had_close(struct had **had);
bool had_has(const struct had *had, const char *name);
/* False: it is not on disk, but known as long as this process lives. */
bool had_add(struct had *had, const char *name);
/* It is needed no longer: the broker does not know it any more either. The file is written anew now and then. */
void had_remove(struct had *had, const char *name);

#endif
