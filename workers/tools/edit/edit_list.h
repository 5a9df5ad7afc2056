/* edit_list.h - what is in a directory, as the tool `edit` shows it. */
#ifndef SLUICE_WORKERS_TOOLS_EDIT_EDIT_LIST_H
#define SLUICE_WORKERS_TOOLS_EDIT_EDIT_LIST_H

#include "workers/tools/edit/edit_file.h"

/* What is in a directory, two levels deep, without hidden files: a path a line, '/' after
 * directories, sorted. */
int edit_file_list(const struct edit_file *file, struct sandbox *sandbox, struct buffer *out, struct fail *fail);

#endif
