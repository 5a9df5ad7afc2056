/*
 * panels.h - the tables of `sluice top`, as tables: which columns each has, of which rows. A column that does not fit
 * is left out by its rank: 0 never is, the highest goes first.
 */
#ifndef SLUICE_CLIENT_CLI_TOP_PANELS_H
#define SLUICE_CLIENT_CLI_TOP_PANELS_H

#include "client/cli/top/cells.h"
#include "client/cli/top/model.h"
#include "client/cli/top/screen.h"

enum panel_id { PANEL_ROLLOUTS, PANEL_WORKERS, PANEL_ENGINES, PANEL_STREAMS, PANEL_NOTICES, PANEL_COUNT };
enum { PANEL_COLUMNS_MAX = 12 };

struct panel_column {
    const char *title, *key;
    enum cell_kind kind;
    unsigned width_max; /* 0: all that is left of the row; the last column's */
    unsigned rank;
};

struct panel {
    const char *title;    /* "Rollouts" */
    const char *name_key; /* of the text by which a row is known again in the next answer */
    const char *empty;    /* what is said where there is no row */
    const struct panel_column *columns;
    size_t column_count;
    size_t sort; /* the column by which it is sorted at first */
    /* A new array of the rows. */
    json_t *(*rows)(const struct model *model);
    /* Rows that belong to the chosen one: another panel's, whose `related_key` names it. NULL: none. */
    const char *related_key;
};

extern const struct panel panels[PANEL_COUNT];

/* How the row is shown: bad, worth a look, or plain. */
enum mark panel_mark(enum panel_id panel, const json_t *row);

#endif
