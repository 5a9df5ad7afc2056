#include "client/cli/top/table.h"
#include "client/json/told.h"

#include <stdlib.h>
#include <string.h>

static bool holds(const json_t *row, const struct panel *panel, const char *words)
{
    char cell[CELL_SIZE];
    for (size_t i = 0; i < panel->column_count; i++) {
        cell_format(row, panel->columns[i].key, panel->columns[i].kind, cell);
        if (strcasestr(cell, words))
            return true;
    }
    return false;
}

struct sorting {
    const struct panel *panel;
    const struct table_order *order;
};

/* Equal ones stay in the order of their names, so that rows do not jump. */
static int compare(const void *a, const void *b, void *arg)
{
    const json_t *one = *(const json_t *const *)a, *other = *(const json_t *const *)b;
    const struct sorting *by = arg;
    const struct panel_column *column = &by->panel->columns[by->order->column];
    const int order = cell_compare(one, other, column->key, column->kind);
    if (order)
        return by->order->is_reverse ? -order : order;
    return cell_compare(one, other, by->panel->name_key, CELL_TEXT);
}

bool rows_make(struct rows *rows, const struct model *model, enum panel_id id, const struct table_order *order)
{
    const struct panel *panel = &panels[id];
    struct sorting by = {panel, order};
    *rows = (struct rows){.panel = id, .all = panel->rows(model)};
    rows->total = json_array_size(rows->all);
    rows->order = calloc(rows->total + 1, sizeof(*rows->order));
    if (!rows->order)
        return false;
    for (size_t i = 0; i < rows->total; i++) {
        const json_t *row = json_array_get(rows->all, i);
        if (json_is_object(row) && (!*order->filter || holds(row, panel, order->filter)))
            rows->order[rows->count++] = row;
    }
    qsort_r(rows->order, rows->count, sizeof(*rows->order), compare, &by);
    return true;
}

void rows_finish(struct rows *rows)
{
    json_decref(rows->all);
    free(rows->order);
    *rows = (struct rows){0};
}

const char *rows_name(const struct rows *rows, size_t at)
{
    return at < rows->count ? told_text(rows->order[at], panels[rows->panel].name_key) : "";
}

const json_t *rows_find(const struct rows *rows, const char *name, size_t *ret_at)
{
    for (size_t i = 0; i < rows->count; i++)
        if (strcmp(rows_name(rows, i), name) == 0) {
            *ret_at = i;
            return rows->order[i];
        }
    return NULL;
}
