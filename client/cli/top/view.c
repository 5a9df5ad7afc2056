#include "client/cli/top/view.h"

#include <stdio.h>
#include <string.h>

#include "common/cmdline/cmdline.h"

void view_init(struct view *view)
{
    *view = (struct view){.page = 10};
    for (size_t i = 0; i < PANEL_COUNT; i++)
        view->panels[i].column = panels[i].sort;
}

struct table_order view_order(const struct view *view)
{
    const struct view_panel *own = &view->panels[view->panel];
    return (struct table_order){.column = own->column, .is_reverse = own->is_reverse, .filter = own->filter};
}

void view_settle(struct view *view, const struct rows *rows, size_t page)
{
    struct view_panel *own = &view->panels[view->panel];
    view->page = page ? page : 1;
    if (!rows_find(rows, own->chosen, &own->at) && own->at >= rows->count)
        own->at = rows->count ? rows->count - 1 : 0;
    snprintf(own->chosen, sizeof(own->chosen), "%s", rows_name(rows, own->at));
    if (own->first > own->at)
        own->first = own->at;
    if (own->at >= own->first + view->page)
        own->first = own->at - view->page + 1;
    if (own->first + view->page > rows->count)
        own->first = rows->count > view->page ? rows->count - view->page : 0;
}

/* ---- what keys do -------------------------------------------------------------------------------- */

static void choose(struct view *view, const struct rows *rows, size_t at)
{
    struct view_panel *own = &view->panels[view->panel];
    own->at = rows->count ? (at < rows->count ? at : rows->count - 1) : 0;
    snprintf(own->chosen, sizeof(own->chosen), "%s", rows_name(rows, own->at));
}

/* In the details the same keys scroll. */
static void move(struct view *view, const struct rows *rows, long by)
{
    const struct view_panel *own = &view->panels[view->panel];
    const size_t from = view->shows_details ? view->scrolled : own->at;
    const size_t to = by < 0 && (size_t)-by > from ? 0 : (size_t)((long)from + by);
    if (view->shows_details)
        view->scrolled = to;
    else
        choose(view, rows, to);
}

static void up(struct view *view, const struct rows *rows) { move(view, rows, -1); }
static void down(struct view *view, const struct rows *rows) { move(view, rows, 1); }
static void page_up(struct view *view, const struct rows *rows) { move(view, rows, -(long)view->page); }
static void page_down(struct view *view, const struct rows *rows) { move(view, rows, (long)view->page); }
static void first(struct view *view, const struct rows *rows) { move(view, rows, -1000000); }
static void last(struct view *view, const struct rows *rows) { move(view, rows, 1000000); }

static void change_panel(struct view *view, int by)
{
    view->panel = (enum panel_id)(((int)view->panel + by + PANEL_COUNT) % PANEL_COUNT);
    view->shows_details = false;
}

static void next_panel(struct view *view, const struct rows *rows) { (void)rows, change_panel(view, 1); }
static void panel_before(struct view *view, const struct rows *rows) { (void)rows, change_panel(view, -1); }

static void sort(struct view *view, const struct rows *rows)
{
    struct view_panel *own = &view->panels[view->panel];
    (void)rows;
    own->column = (own->column + 1) % panels[view->panel].column_count;
    own->is_reverse = false;
}

static void reverse(struct view *view, const struct rows *rows)
{
    (void)rows;
    view->panels[view->panel].is_reverse = !view->panels[view->panel].is_reverse;
}

static void filter(struct view *view, const struct rows *rows)
{
    (void)rows;
    view->types_filter = !view->shows_details;
}

static void details(struct view *view, const struct rows *rows)
{
    view->shows_details = !view->shows_details && rows->count > 0;
    view->scrolled = 0;
}

static void pause_it(struct view *view, const struct rows *rows)
{
    (void)rows;
    view->is_paused = !view->is_paused;
}

static void help(struct view *view, const struct rows *rows)
{
    (void)rows;
    view->shows_help = true;
}

/* Out of the details, then out of the filter. */
static void back(struct view *view, const struct rows *rows)
{
    (void)rows;
    if (view->shows_details)
        view->shows_details = false;
    else
        view->panels[view->panel].filter[0] = '\0';
}

static void quit(struct view *view, const struct rows *rows)
{
    (void)rows;
    view->ends = true;
}

static const struct {
    int key;
    void (*act)(struct view *view, const struct rows *rows);
} acts[] = {
    {KEY_UP, up},
    {'k', up},
    {KEY_DOWN, down},
    {'j', down},
    {KEY_PAGE_UP, page_up},
    {'b', page_up},
    {KEY_PAGE_DOWN, page_down},
    {' ', page_down},
    {KEY_HOME, first},
    {'g', first},
    {KEY_END, last},
    {'G', last},
    {KEY_TAB, next_panel},
    {KEY_RIGHT, next_panel},
    {KEY_BACK_TAB, panel_before},
    {KEY_LEFT, panel_before},
    {'s', sort},
    {'r', reverse},
    {'f', filter},
    {'/', filter},
    {KEY_ENTER, details},
    {'p', pause_it},
    {'?', help},
    {'h', help},
    {KEY_ESCAPE, back},
    {'q', quit},
    {'Q', quit},
};

const struct view_help view_help[] = {
    {"Tab, left, right", "another panel: rollouts, workers, engines, streams, notices"},
    {"up, down, j, k", "another row; in details: scroll"},
    {"PgUp, PgDn, Home, End", "the same, by pages; b, blank, g, G do, too"},
    {"Enter", "all that is known of the row, and what is there; again: back"},
    {"s, r", "sort by the next column; the other way round"},
    {"f", "only rows that hold a text: type it, then Enter; Esc: all rows again"},
    {"p", "pause: nothing is asked until p again"},
    {"?", "this help"},
    {"q, Ctrl-C", "quit"},
};
const size_t view_help_count = ROWS(view_help);

static void type_filter(struct view *view, int key)
{
    char *text = view->panels[view->panel].filter;
    size_t len = strlen(text);
    unsigned char gone = 0;
    if (key == KEY_ENTER || key == KEY_ESCAPE || key == KEY_TAB)
        view->types_filter = false;
    if (key == KEY_ESCAPE)
        text[0] = '\0';
    else if (key == KEY_DELETE && len > 0)
        do {
            gone = (unsigned char)text[--len];
            text[len] = '\0';
        } while (len > 0 && (gone & 0xc0) == 0x80);
    else if (key >= ' ' && key < 256 && key != KEY_DELETE && len < VIEW_FILTER_SIZE - 1) {
        text[len] = (char)key;
        text[len + 1] = '\0';
    }
}

void view_key(struct view *view, int key, const struct rows *rows)
{
    if (view->shows_help) {
        view->shows_help = false;
        view->ends = key == 'q';
        return;
    }
    if (view->types_filter) {
        type_filter(view, key);
        return;
    }
    for (size_t i = 0; i < ROWS(acts); i++)
        if (acts[i].key == key) {
            acts[i].act(view, rows);
            return;
        }
}
