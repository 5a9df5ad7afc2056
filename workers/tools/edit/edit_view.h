/* edit_view.h - the tool `edit` shows files. */
#ifndef SLUICE_WORKERS_TOOLS_EDIT_EDIT_VIEW_H
#define SLUICE_WORKERS_TOOLS_EDIT_EDIT_VIEW_H

#include "workers/tools/edit/edit_call.h"

/* What was put there, within the limit; empties it. */
int edit_say_output(struct edit_call *call, struct output *output);

int edit_view(struct edit_call *call);

#endif
