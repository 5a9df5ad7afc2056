/* draw.h - the model as the view wants it, on a screen of any size: `sluice top` whole. Pure. */
#ifndef SLUICE_CLIENT_CLI_TOP_DRAW_H
#define SLUICE_CLIENT_CLI_TOP_DRAW_H

#include "client/cli/top/screen.h"
#include "client/cli/top/view.h"

enum { DRAW_COLUMNS_LEAST = 40, DRAW_ROWS_LEAST = 12 };

struct draw_facts {
    const char *url;
    int64_t interval_ms;
    int64_t now_ms; /* by the clock of model_hear */
};

/* Fills the screen, which is fresh. `rows` are of the view's panel; the view is settled among them. */
void draw_all(struct screen *screen, const struct model *model, struct view *view, const struct rows *rows,
              const struct draw_facts *facts);

#endif
