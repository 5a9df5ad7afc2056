#include "schemas/labels.h"

#include <string.h>

static const struct {
    const char *word;
    bool trains;
} labels[LABEL_COUNT] = {
#define LABEL(id, word, trains, meaning) {word, trains},
#include "schemas/labels.def"
#undef LABEL
};

#define LABEL(id, word, trains, meaning) _Static_assert(sizeof(word) <= LABEL_SIZE, word " fits a record");
#include "schemas/labels.def"
#undef LABEL

/* Behind the first bar. */
static const char barred[] =
#define LABEL(id, word, trains, meaning) "|" word
#include "schemas/labels.def"
#undef LABEL
    ;

const char *label_words(void) { return barred + 1; }

const char *label_word(enum label label) { return labels[label].word; }

enum label label_find(const char *word)
{
    unsigned label = 0;
    while (label < LABEL_COUNT && strcmp(labels[label].word, word) != 0)
        label++;
    return (enum label)label;
}

uint32_t labels_trained(void)
{
    uint32_t trained = 0;
    for (unsigned label = 0; label < LABEL_COUNT; label++)
        trained |= labels[label].trains ? label_bit((enum label)label) : 0;
    return trained;
}
