/*
 * touched.h - which of what was written decides what runs in an evaluator's sandbox (schemas/trajectory/tamper.def),
 * noted while it is packed. Of each kind the first few by name, so that many of one hide none of another; all are
 * counted.
 */
#ifndef SLUICE_WORKERS_SANDBOX_INIT_SERVICES_TOUCHED_H
#define SLUICE_WORKERS_SANDBOX_INIT_SERVICES_TOUCHED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
#define TAMPER_KIND(id, word, meaning) TAMPER_##id,
#define TAMPER_PATH(id, pattern)
#include "schemas/trajectory/tamper.def"
#undef TAMPER_KIND
#undef TAMPER_PATH
    TAMPER_KINDS
};

enum { TOUCHED_OF_A_KIND = 8, TOUCHED_MAX = TAMPER_KINDS * TOUCHED_OF_A_KIND, TOUCHED_PATH_SIZE = 256 };

/* All zero: nothing. */
struct touched {
    uint64_t count;
    size_t of_kind[TAMPER_KINDS], file_count;
    struct {
        uint8_t kind;
        char path[TOUCHED_PATH_SIZE]; /* cut where it is longer */
    } files[TOUCHED_MAX];
};

/* A file, a link, or a name that is gone; `path` is from the root, without its slash. */
void touched_note(struct touched *touched, const char *path);
/* A directory in place of what lay there before; is_sure: and something did. */
void touched_note_dir(struct touched *touched, const char *path, bool is_sure);
/* "KIND\0PATH\0" of each into `ret`; how many bytes that is. */
enum { TOUCHED_TEXT_MAX = TOUCHED_MAX * (TOUCHED_PATH_SIZE + 16) };
size_t touched_write(const struct touched *touched, char ret[TOUCHED_TEXT_MAX]);

#endif
