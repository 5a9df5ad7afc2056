/* view.h - what the person who looks has chosen: a panel, a row, an order, a filter. Pure: keys come in. */
#ifndef SLUICE_CLIENT_CLI_TOP_VIEW_H
#define SLUICE_CLIENT_CLI_TOP_VIEW_H

#include "client/cli/top/keys.h"
#include "client/cli/top/table.h"

enum { VIEW_NAME_SIZE = 512, VIEW_FILTER_SIZE = 64 };

struct view_panel {
    size_t column; /* sorted by */
    bool is_reverse;
    char chosen[VIEW_NAME_SIZE]; /* the row's name; "": the first */
    size_t at;                   /* where it was last, should it be gone */
    size_t first;                /* the row at the top */
    char filter[VIEW_FILTER_SIZE];
};

struct view {
    enum panel_id panel;
    struct view_panel panels[PANEL_COUNT];
    size_t page;       /* rows that were shown at once */
    size_t scrolled;   /* rows of the details */
    bool types_filter; /* keys are its text */
    bool is_paused, shows_details, shows_help, ends;
};

void view_init(struct view *view);
/* The order of the panel that is shown. */
struct table_order view_order(const struct view *view);
/* One key, with the rows that are shown. */
void view_key(struct view *view, int key, const struct rows *rows);
/* Finds the chosen row among those of a newer answer, and has it among the `page` that are shown. */
void view_settle(struct view *view, const struct rows *rows, size_t page);

/* "q", "quit" and so on: what `?` shows. */
struct view_help {
    const char *keys, *meaning;
};
extern const struct view_help view_help[];
extern const size_t view_help_count;

#endif
