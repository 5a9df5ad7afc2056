/* print.h - what commands print with: aligned columns, colour where there is a terminal. */
#ifndef SLUICE_CLIENT_CLI_PRINT_PRINT_H
#define SLUICE_CLIENT_CLI_PRINT_PRINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "client/sluice.h"

/* Rows of cells, printed tame; columns are as wide as their widest cell. The first row is the heading. */
struct columns {
    size_t count; /* of columns */
    char **cells;
    size_t cell_count, capacity;
    bool failed; /* out of memory: what is there is printed */
};

void columns_add(struct columns *columns, const char *format, ...) __attribute__((format(printf, 2, 3)));
void columns_print(const struct columns *columns, FILE *out);
void columns_finish(struct columns *columns);
#define AUTO_COLUMNS __attribute__((cleanup(columns_finish))) struct columns

/* A terminal, and NO_COLOR is not set. */
bool has_colour(FILE *out);
/* "0.125", "1", or "-" when there is none. */
void print_reward(const struct sluice_trajectory *trajectory, char *ret, size_t size);
/* "35 ms", "5.1 s", "3 min 20 s" */
void print_duration(uint64_t ms, char *ret, size_t size);
/* All its tokens, and those that the policy sampled. */
void count_tokens(const struct sluice_trajectory *trajectory, size_t *all, size_t *sampled);

#endif
