/*
 * parents.h - the layers that an init layer stands on: those of its task's build, lowest first. They lie in
 * <store>/builds, of which every worker of the store has them, and the init layer names them in /.sluice-layers, a
 * digest a line.
 */
#ifndef SLUICE_WORKERS_STAGES_SANDBOX_PARENTS_H
#define SLUICE_WORKERS_STAGES_SANDBOX_PARENTS_H

#include "common/digest/digest.h"
#include "workers/layers/layer.h"

enum { PARENTS_MAX = 56 };
#define PARENTS_STORE "builds"
#define PARENTS_FILE "/.sluice-layers"

struct parents {
    char each[PARENTS_MAX][DIGEST_SIZE];
    size_t count;
};

/* Those that the unpacked init layer at `root` names. -EBADMSG: it names none, or not in this form. Blocking. */
int parents_read(const char *root, struct parents *ret, struct fail *fail);
/* The file's content, into an empty buffer. */
void parents_write(const struct parents *parents, struct buffer *ret);
/* `of` with the store of builds; *ret_path is what it borrows, the caller's. */
int parents_layers(const struct layers *of, struct layers *ret, char **ret_path, struct fail *fail);

#endif
