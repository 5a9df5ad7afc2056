#include "client/cli/top/draw.h"

#include <stdio.h>

#include "client/cli/top/draw_head.h"
#include "client/cli/top/draw_table.h"
#include "client/json/told.h"

static void draw_tabs(struct screen *screen, const struct view *view, const struct rows *rows)
{
    const char *filter = view->panels[view->panel].filter;
    for (size_t i = 0; i < PANEL_COUNT; i++) {
        screen_mark(screen, i == view->panel ? MARK_CHOSEN : MARK_PLAIN);
        screen_put(screen, " %s", panels[i].title);
        if (i == view->panel && rows->count < rows->total)
            screen_put(screen, " %zu of %zu", rows->count, rows->total);
        else if (i == view->panel)
            screen_put(screen, " %zu", rows->total);
        screen_put(screen, " ");
        screen_mark(screen, MARK_PLAIN);
    }
    if (view->types_filter || *filter)
        screen_put(screen, "  filter: %s%s", filter, view->types_filter ? "_" : "");
    screen_next(screen);
}

static void draw_foot(struct screen *screen, const struct view *view, const struct model *model)
{
    const long long matched = told_number(model->list, "matched");
    const long long listed = (long long)json_array_size(json_object_get(model->list, "rollouts"));
    screen->row = screen->rows - 1;
    screen->column = 0;
    screen_mark(screen, MARK_DIM);
    if (view->types_filter)
        screen_put(screen, "type a text; Enter keeps the filter, Esc takes it away");
    else if (view->shows_details)
        screen_put(screen, "Enter back  j k scroll  p pause  ? help  q quit");
    else
        screen_put(screen, "Tab panel  Enter details  s sort: %s  f filter  p pause  ? help  q quit",
                   panels[view->panel].columns[view->panels[view->panel].column].title);
    if (view->panel == PANEL_ROLLOUTS && matched > listed && !view->shows_details)
        screen_put(screen, "  (%lld of %lld)", listed, matched);
}

static void draw_help(struct screen *screen)
{
    screen_next(screen);
    for (size_t i = 0; i < view_help_count && screen_left(screen) > 1; i++) {
        screen_mark(screen, MARK_BOLD);
        screen_cell(screen, view_help[i].keys, 24, false);
        screen_mark(screen, MARK_PLAIN);
        screen_wrap(screen, view_help[i].meaning, 24, 3);
    }
    screen_next(screen);
    screen_put(screen, "any key: back");
}

/* What is missing, where the last answer is an old one, or there was none. */
static void draw_away(struct screen *screen, const struct model *model, const struct draw_facts *facts)
{
    char since[32];
    screen_mark(screen, MARK_BAD);
    screen_put(screen, "%s", model->away);
    if (model->status) {
        cell_age(facts->now_ms - model->heard_ms, since, sizeof(since));
        screen_put(screen, "; what is below is %s old", since);
    }
    screen_next(screen);
}

static void draw_service(struct screen *screen, const struct model *model, struct view *view, const struct rows *rows)
{
    const bool is_tall = screen->rows >= 30;
    draw_health(screen, model, is_tall ? 4 : 2);
    draw_rates(screen, model);
    draw_stages(screen, model);
    if (is_tall)
        screen_next(screen);
    draw_tabs(screen, view, rows);
    const size_t left = screen_left(screen), page = left > 3 ? left - 2 : 1;
    view_settle(view, rows, page);
    if (view->shows_details)
        draw_details(screen, model, view, rows, page);
    else
        draw_table(screen, view, rows, page);
}

void draw_all(struct screen *screen, const struct model *model, struct view *view, const struct rows *rows,
              const struct draw_facts *facts)
{
    if (screen->columns < DRAW_COLUMNS_LEAST || screen->rows < DRAW_ROWS_LEAST) {
        screen_put(screen, "%d x %d is needed", DRAW_COLUMNS_LEAST, DRAW_ROWS_LEAST);
        return;
    }
    draw_title(screen, model, view, facts);
    if (*model->away)
        draw_away(screen, model, facts);
    if (view->shows_help) {
        draw_help(screen);
        return;
    }
    if (model->status)
        draw_service(screen, model, view, rows);
    else if (!*model->away)
        screen_put(screen, "asking the broker ...");
    draw_foot(screen, view, model);
}
