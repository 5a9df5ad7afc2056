#include "schemas/task/json/task_table.h"

#include <pthread.h>

#include "schemas/labels.h"
#include "schemas/task/evaluators.h"

#define OPTIONAL false
#define REQUIRED true
#define OBJECT(path_, doc_) {.path = path_, .type = TASK_OBJECT, .doc = doc_},
#define FIELD(owner_, type_, path_, member_, need_, min_, max_, default_, doc_)                                        \
    {.path = path_,                                                                                                    \
     .type = TASK_##type_,                                                                                             \
     .required = need_,                                                                                                \
     .min = min_,                                                                                                      \
     .max = max_,                                                                                                      \
     .default_value = default_,                                                                                        \
     .offset = offsetof(struct owner_, member_),                                                                       \
     .doc = doc_},
#define WORD(owner_, path_, member_, need_, words_, default_, doc_)                                                    \
    {.path = path_,                                                                                                    \
     .type = TASK_WORD,                                                                                                \
     .required = need_,                                                                                                \
     .words = words_,                                                                                                  \
     .default_value = default_,                                                                                        \
     .offset = offsetof(struct owner_, member_),                                                                       \
     .doc = doc_},
#define OPEN_WORD(owner_, path_, member_, need_, words_, default_, doc_)                                               \
    {.path = path_,                                                                                                    \
     .type = TASK_OPEN_WORD,                                                                                           \
     .required = need_,                                                                                                \
     .min = 1,                                                                                                         \
     .max = HANDLER_NAME_MAX,                                                                                          \
     .words = words_,                                                                                                  \
     .default_value = default_,                                                                                        \
     .offset = offsetof(struct owner_, member_),                                                                       \
     .doc = doc_},
#define LIST(type_, path_, min_, max_, doc_)                                                                           \
    {.path = path_, .type = TASK_##type_, .min = min_, .max = max_, .doc = doc_},

const struct task_row task_rows[] = {
#include "schemas/task/task.def"
};

const size_t task_row_count = sizeof(task_rows) / sizeof(task_rows[0]);

/* The length of each row's path, side by side: what most rows differ in. */
#undef OBJECT
#undef FIELD
#undef WORD
#undef OPEN_WORD
#undef LIST
#define OBJECT(path_, doc_) sizeof(path_) - 1,
#define FIELD(owner_, type_, path_, member_, need_, min_, max_, default_, doc_) sizeof(path_) - 1,
#define WORD(owner_, path_, member_, need_, words_, default_, doc_) sizeof(path_) - 1,
#define OPEN_WORD(owner_, path_, member_, need_, words_, default_, doc_) sizeof(path_) - 1,
#define LIST(type_, path_, min_, max_, doc_) sizeof(path_) - 1,
static const uint8_t path_lens[] = {
#include "schemas/task/task.def"
};

/* The row's path from the object at `parent` on; NULL: it is not within. */
static const char *path_in(const struct task_row *row, const char *parent, size_t parent_len)
{
    const char *path = row->path;
    if (parent_len == 0)
        return path;
    return strncmp(path, parent, parent_len) == 0 && path[parent_len] == '.' ? path + parent_len + 1 : NULL;
}

bool task_row_is_in(const struct task_row *row, const char *parent)
{
    const char *path = path_in(row, parent, strlen(parent));
    return path && !strchr(path, '.');
}

/* Rows by the length of their paths, and those that are required: a chain of each, in the table's order. */
enum { ROWS = sizeof(task_rows) / sizeof(task_rows[0]), NO_ROW = ROWS };
static uint16_t first_of_len[UINT8_MAX + 1], next_of_len[ROWS], first_required, next_required[ROWS];
static pthread_once_t rows_are_chained = PTHREAD_ONCE_INIT;

static void chain_rows(void)
{
    first_required = NO_ROW;
    for (size_t len = 0; len <= UINT8_MAX; len++)
        first_of_len[len] = NO_ROW;
    for (size_t i = ROWS; i-- > 0;) {
        next_of_len[i] = first_of_len[path_lens[i]];
        first_of_len[path_lens[i]] = (uint16_t)i;
        next_required[i] = first_required;
        first_required = task_rows[i].required ? (uint16_t)i : first_required;
    }
}

const struct task_row *task_row_find(const char *parent, const char *key)
{
    const size_t parent_len = strlen(parent), key_len = strlen(key), at = parent_len ? parent_len + 1 : 0;
    pthread_once(&rows_are_chained, chain_rows);
    for (size_t i = at + key_len <= UINT8_MAX ? first_of_len[at + key_len] : NO_ROW; i != NO_ROW; i = next_of_len[i]) {
        const char *path = task_rows[i].path;
        if (memcmp(path + at, key, key_len) == 0 && memcmp(path, parent, parent_len) == 0 &&
            (at == 0 || path[parent_len] == '.'))
            return memchr(key, '.', key_len) ? NULL : &task_rows[i];
    }
    return NULL;
}

const struct task_row *task_row_next_required(const struct task_row *row)
{
    pthread_once(&rows_are_chained, chain_rows);
    const size_t next = row ? next_required[row - task_rows] : first_required;
    return next != NO_ROW ? &task_rows[next] : NULL;
}
