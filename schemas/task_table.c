#include "schemas/task_table.h"

#define OPTIONAL false
#define REQUIRED true
#define OBJECT(path_, doc_) {.path = path_, .type = TASK_OBJECT, .doc = doc_},
#define FIELD(owner_, type_, path_, member_, need_, min_, max_, default_, doc_)                    \
    {.path = path_,                                                                                \
     .type = TASK_##type_,                                                                         \
     .required = need_,                                                                            \
     .min = min_,                                                                                  \
     .max = max_,                                                                                  \
     .default_value = default_,                                                                    \
     .offset = offsetof(struct owner_, member_),                                                   \
     .doc = doc_},
#define WORD(owner_, path_, member_, need_, words_, default_, doc_)                                \
    {.path = path_,                                                                                \
     .type = TASK_WORD,                                                                            \
     .required = need_,                                                                            \
     .words = words_,                                                                              \
     .default_value = default_,                                                                    \
     .offset = offsetof(struct owner_, member_),                                                   \
     .doc = doc_},
#define LIST(type_, path_, min_, max_, doc_)                                                       \
    {.path = path_, .type = TASK_##type_, .min = min_, .max = max_, .doc = doc_},

const struct task_row task_rows[] = {
#include "schemas/task.def"
};

const size_t task_row_count = sizeof(task_rows) / sizeof(task_rows[0]);

bool task_row_is_in(const struct task_row *row, const char *parent)
{
    const char *last = strrchr(row->path, '.');
    size_t len = last ? (size_t)(last - row->path) : 0;
    return strlen(parent) == len && strncmp(row->path, parent, len) == 0;
}

const struct task_row *task_row_find(const char *parent, const char *key)
{
    size_t skip = parent[0] ? strlen(parent) + 1 : 0;
    for (size_t i = 0; i < task_row_count; i++)
        if (task_row_is_in(&task_rows[i], parent) && strcmp(task_rows[i].path + skip, key) == 0)
            return &task_rows[i];
    return NULL;
}
