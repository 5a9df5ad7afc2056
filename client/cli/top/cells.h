/* cells.h - one value of the broker's answers as one cell of a table. */
#ifndef SLUICE_CLIENT_CLI_TOP_CELLS_H
#define SLUICE_CLIENT_CLI_TOP_CELLS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum cell_kind {
    CELL_TEXT,
    CELL_NUMBER,
    CELL_LIMIT,   /* a number, "-" where there is none */
    CELL_AGE,     /* milliseconds, as "3m20s" */
    CELL_BYTES,   /* as "12.3M" */
    CELL_PERCENT, /* thousandths, as "12%" */
    CELL_SLOTS,   /* of a worker: jobs of slots, by jobs */
    CELL_DOING    /* of a rollout: its turn and tool, and why it does not get on */
};

enum { CELL_SIZE = 512 };

/* "-" for what the broker did not tell; longer texts are cut. */
void cell_format(const json_t *row, const char *key, enum cell_kind kind, char ret[CELL_SIZE]);
/* Whether it stands at the right of its column, and is sorted from the largest. */
bool cell_is_number(enum cell_kind kind);
/* -1, 0, 1: texts by their bytes, numbers by size; what is not told comes last. */
int cell_compare(const json_t *a, const json_t *b, const char *key, enum cell_kind kind);

void cell_age(int64_t ms, char *ret, size_t size);

#endif
