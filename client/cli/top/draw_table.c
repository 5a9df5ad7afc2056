#include "client/cli/top/draw_table.h"
#include "client/json/told.h"

#include <stdio.h>
#include <string.h>

enum { GAP = 1, LAST_LEAST = 32, KEY_WIDTH = 20 };

/* Of each column; 0: it is left out. */
struct layout {
    size_t widths[PANEL_COLUMNS_MAX];
};

/* As wide as its widest shown cell, within its bound. */
static size_t natural_width(const struct panel_column *column, const struct rows *rows, size_t first, size_t count)
{
    char cell[CELL_SIZE];
    size_t width = screen_width(column->title);
    for (size_t i = first; i < rows->count && i < first + count; i++) {
        cell_format(rows->order[i], column->key, column->kind, cell);
        const size_t own = screen_width(cell);
        width = own > width ? own : width;
    }
    return column->width_max && width > column->width_max ? column->width_max : width;
}

static size_t total_width(const struct layout *layout, const struct panel *panel)
{
    size_t sum = 0;
    for (size_t i = 0; i < panel->column_count; i++) {
        const size_t width = layout->widths[i];
        const bool is_last = i == panel->column_count - 1;
        sum += !width ? 0 : is_last && width > LAST_LEAST ? LAST_LEAST : width + GAP;
    }
    return sum;
}

/* Columns are left out, the highest rank first, until the others fit; the last one has what is left. */
static struct layout lay_out(const struct panel *panel, const struct rows *rows, size_t first, size_t count,
                             size_t columns)
{
    struct layout layout = {{0}};
    for (size_t i = 0; i < panel->column_count; i++)
        layout.widths[i] = natural_width(&panel->columns[i], rows, first, count);
    while (total_width(&layout, panel) > columns) {
        size_t worst = 0;
        unsigned rank = 0;
        for (size_t i = 0; i < panel->column_count; i++)
            if (layout.widths[i] && panel->columns[i].rank > rank) {
                rank = panel->columns[i].rank;
                worst = i;
            }
        if (!rank)
            break;
        layout.widths[worst] = 0;
    }
    return layout;
}

static void draw_row(struct screen *screen, const struct panel *panel, const struct layout *layout, const json_t *row,
                     size_t sorted_by)
{
    char cell[CELL_SIZE];
    for (size_t i = 0; i < panel->column_count; i++) {
        const struct panel_column *column = &panel->columns[i];
        const bool is_last = i == panel->column_count - 1;
        if (!layout->widths[i])
            continue;
        if (row)
            cell_format(row, column->key, column->kind, cell);
        else
            snprintf(cell, sizeof(cell), "%s", column->title);
        if (!row && i == sorted_by)
            screen_mark(screen, MARK_BOLD);
        screen_cell(screen, cell, is_last ? screen->columns : layout->widths[i], cell_is_number(column->kind));
        if (!row && i == sorted_by) {
            screen_mark(screen, MARK_PLAIN);
            screen_mark(screen, MARK_DIM);
        }
        screen_pad(screen, screen->column + GAP);
    }
    screen_next(screen);
}

void draw_table(struct screen *screen, const struct view *view, const struct rows *rows, size_t rows_max)
{
    const struct panel *panel = &panels[view->panel];
    const struct view_panel *own = &view->panels[view->panel];
    const struct layout layout = lay_out(panel, rows, own->first, rows_max, screen->columns);
    screen_mark(screen, MARK_DIM);
    draw_row(screen, panel, &layout, NULL, own->column);
    if (!rows->count)
        screen_put(screen, "%s", rows->total ? "nothing holds the filter's text: Esc shows all" : panel->empty);
    for (size_t i = own->first; i < rows->count && i < own->first + rows_max; i++) {
        screen_mark(screen, i == own->at ? MARK_CHOSEN : panel_mark(view->panel, rows->order[i]));
        draw_row(screen, panel, &layout, rows->order[i], own->column);
    }
}

/* ---- details ---------------------------------------------------------------------------------------- */

/* Rows that are scrolled past are written onto a screen that nobody sees. */
struct scroll {
    struct screen *screen;
    size_t skip, left, written;
};

static void details_row(struct scroll *scroll, const char *key, const char *value)
{
    AUTO_SCREEN own;
    if (!screen_init(&own, scroll->screen->columns, 40, scroll->screen->is_utf8))
        return;
    screen_mark(&own, MARK_DIM);
    screen_cell(&own, key, KEY_WIDTH, false);
    screen_mark(&own, MARK_PLAIN);
    screen_wrap(&own, value, KEY_WIDTH, own.rows);
    for (size_t i = 0; i < own.row || i == 0; i++, scroll->written++) {
        if (scroll->written < scroll->skip || !scroll->left)
            continue;
        buffer_append(&scroll->screen->text[scroll->screen->row], own.text[i].data, own.text[i].len);
        screen_next(scroll->screen);
        scroll->left--;
    }
}

static void add_value(struct scroll *scroll, const char *key, const json_t *value)
{
    char title[64], text[64];
    const size_t len = strlen(key);
    const bool is_ms = len > 3 && strcmp(key + len - 3, "_ms") == 0;
    snprintf(title, sizeof(title), "%.*s", (int)(is_ms ? len - 3 : len), key);
    for (char *at = title; *at; at++)
        if (*at == '_')
            *at = ' ';
    if (json_is_string(value)) {
        details_row(scroll, title, json_string_length(value) ? json_string_value(value) : "-");
        return;
    }
    if (json_is_integer(value) && is_ms)
        cell_age((int64_t)json_integer_value(value), text, sizeof(text));
    else if (json_is_integer(value))
        snprintf(text, sizeof(text), "%lld", (long long)json_integer_value(value));
    else if (json_is_real(value))
        snprintf(text, sizeof(text), "%.6g", json_real_value(value));
    else
        snprintf(text, sizeof(text), "%s", json_is_true(value) ? "yes" : json_is_false(value) ? "no" : "-");
    details_row(scroll, title, text);
}

/* The live rollouts that the chosen worker, engine or stream has. */
static void add_related(struct scroll *scroll, const struct model *model, const char *key, const char *name)
{
    const json_t *list = json_object_get(model->list, "rollouts"), *rollout;
    char doing[CELL_SIZE], since[32], line[2 * CELL_SIZE];
    size_t at;
    json_array_foreach(list, at, rollout)
    {
        if (strcmp(told_text(rollout, key), name) != 0)
            continue;
        cell_format(rollout, "why", CELL_DOING, doing);
        cell_age(told_number(rollout, "for_ms"), since, sizeof(since));
        snprintf(line, sizeof(line), "%s: %s %s for %s: %s", told_text(rollout, "rollout"), told_text(rollout, "stage"),
                 told_text(rollout, "state"), since, doing);
        details_row(scroll, "rollout", line);
    }
}

static void add_all(struct scroll *scroll, const struct model *model, const struct view *view, const json_t *row)
{
    const struct panel *panel = &panels[view->panel];
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)row, key, value) add_value(scroll, key, value);
    if (panel->related_key)
        add_related(scroll, model, panel->related_key, view->panels[view->panel].chosen);
}

/* Once to see how much there is, so that nobody scrolls behind its end. */
void draw_details(struct screen *screen, const struct model *model, struct view *view, const struct rows *rows,
                  size_t rows_max)
{
    const struct view_panel *own = &view->panels[view->panel];
    struct scroll whole = {.screen = screen};
    if (own->at >= rows->count)
        return;
    add_all(&whole, model, view, rows->order[own->at]);
    const size_t last = whole.written > rows_max ? whole.written - rows_max : 0;
    view->scrolled = view->scrolled < last ? view->scrolled : last;
    struct scroll scroll = {.screen = screen, .skip = view->scrolled, .left = rows_max};
    add_all(&scroll, model, view, rows->order[own->at]);
}
