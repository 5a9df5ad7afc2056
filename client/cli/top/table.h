/* table.h - a panel's rows as they are shown: filtered, sorted. Rows are the model's; the table holds them. */
#ifndef SLUICE_CLIENT_CLI_TOP_TABLE_H
#define SLUICE_CLIENT_CLI_TOP_TABLE_H

#include "client/cli/top/panels.h"

struct table_order {
    size_t column;
    bool is_reverse;    /* else numbers from the largest, texts from A */
    const char *filter; /* only rows that hold it in a cell, whatever its case; "": all */
};

struct rows {
    enum panel_id panel;
    json_t *all; /* owned */
    const json_t **order;
    size_t count, total; /* shown, and before the filter */
};

/* False when out of memory: then it is empty. */
bool rows_make(struct rows *rows, const struct model *model, enum panel_id panel, const struct table_order *order);
void rows_finish(struct rows *rows);
/* The row of this name, or NULL; *ret_at its place. */
const json_t *rows_find(const struct rows *rows, const char *name, size_t *ret_at);
const char *rows_name(const struct rows *rows, size_t at);

#define AUTO_ROWS __attribute__((cleanup(rows_finish))) struct rows

#endif
