/* labels.h - what a trace of a harness is, by name (labels.def). */
#ifndef SLUICE_SCHEMAS_LABELS_H
#define SLUICE_SCHEMAS_LABELS_H

#include <stdbool.h>
#include <stdint.h>

enum label {
#define LABEL(id, word, trains, meaning) LABEL_##id,
#include "schemas/labels.def"
#undef LABEL
    LABEL_COUNT
};

enum { LABEL_SIZE = 16 };

/* All of them, "one|of|these". */
const char *label_words(void);
const char *label_word(enum label label);
/* LABEL_COUNT when there is none of that word. */
enum label label_find(const char *word);

/* Labels as a set: a bit each. */
static inline uint32_t label_bit(enum label label) { return 1u << label; }
static inline bool labels_have(uint32_t labels, enum label label) { return labels & label_bit(label); }
/* Those that train where the task says nothing. */
uint32_t labels_trained(void);

#endif
