/* draw_head.h - the upper part: how the service is, in words; its stages; its rates. */
#ifndef SLUICE_CLIENT_CLI_TOP_DRAW_HEAD_H
#define SLUICE_CLIENT_CLI_TOP_DRAW_HEAD_H

#include "client/cli/top/draw.h"

void draw_title(struct screen *screen, const struct model *model, const struct view *view,
                const struct draw_facts *facts);
/* Health with its reasons, at most so many rows of these, and what work waits for. */
void draw_health(struct screen *screen, const struct model *model, size_t reasons_max);
void draw_rates(struct screen *screen, const struct model *model);
void draw_stages(struct screen *screen, const struct model *model);

#endif
