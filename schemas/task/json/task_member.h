/* task_member.h - one value of a task as the text that it was submitted as. */
#ifndef SLUICE_SCHEMAS_TASK_TASK_MEMBER_H
#define SLUICE_SCHEMAS_TASK_TASK_MEMBER_H

#include "common/base/slice.h"

/* Of the JSON of one object that task_parse has taken: the text of the member's value, borrowed; empty:
 * there is none. */
struct slice task_member(struct slice json, const char *name);

#endif
