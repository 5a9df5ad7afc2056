/*
 * task_table.h - task.def as rows, for what reads tasks and what describes them.
 * A row's path is its full path; [] stands for a list's elements.
 */
#ifndef SLUICE_SCHEMAS_TASK_TASK_TABLE_H
#define SLUICE_SCHEMAS_TASK_TASK_TABLE_H

#include "schemas/task/task.h"

enum task_type {
    TASK_OBJECT,
    TASK_NAME, /* text without '/', blanks and control characters */
    TASK_TEXT,
    TASK_PATH,  /* text; no ".." and not a directory by its form */
    TASK_PLACE, /* text; no "..": of a file or, of a source, a directory */
    TASK_IMAGE,
    TASK_DIRECTORY, /* absolute, no ".." */
    TASK_USER,
    TASK_VARIABLES, /* an object of names and texts */
    TASK_WORD,      /* one of row->words */
    TASK_OPEN_WORD, /* so, or a handler's name */
    TASK_HANDLER_NAME,
    TASK_UINT,
    TASK_INT,
    TASK_REAL,
    TASK_PROMPT,
    TASK_MESSAGES,
    TASK_FILES,
    TASK_EVAL_FILES,
    TASK_SOLUTION_FILES,
    TASK_SOLUTION_COMMANDS,
    TASK_FILE_TEXT,
    TASK_FILE_BASE64,
    TASK_SOURCE,      /* so, of one text */
    TASK_FILE_SOURCE, /* absolute, no ".." */
    TASK_FILE_MODE,
    TASK_SETUP,
    TASK_STEPS,
    TASK_FILE_LIST, /* a struct task_file_list */
    TASK_COMMANDS,  /* a struct task_text_list */
    TASK_REWARDS,   /* a struct task_least_list: a number, or an object of them */
    TASK_GRANTS,
    TASK_INIT_GRANTS,
    TASK_BUILD_GRANTS,
    TASK_EVAL_GRANTS,
    TASK_STATUSES,
    TASK_ANSWERS,      /* texts */
    TASK_OPTIONS,      /* an object of letters and texts */
    TASK_FAIL_TO_PASS, /* texts, as the next two */
    TASK_PASS_TO_PASS,
    TASK_PROTECTED,
    TASK_EXPECTED_TESTS, /* an object of names and words */
    TASK_HIDDEN,         /* absolute paths */
    TASK_ARTIFACTS,      /* paths, or objects */
    TASK_EXCLUDE,        /* texts */
    TASK_COLLECT,
    TASK_HANDLERS,
    TASK_TESTS,       /* an object, kept as JSON text */
    TASK_JUDGE_FILES, /* paths */
    TASK_CRITERIA,
    TASK_CHOICES, /* texts */
    TASK_TOOLS,
    TASK_TRAIN, /* labels */
    TASK_SCRIPT,
    TASK_RECORDED,  /* a trajectory's messages */
    TASK_ARGUMENTS, /* an object, kept as JSON text */
    TASK_METADATA,
    TASK_TYPE_COUNT
};

struct task_row {
    const char *path;
    enum task_type type;
    bool required;
    double min, max;
    const char *words;         /* "one|of|these", or NULL */
    const char *default_value; /* as text, or NULL */
    size_t offset;             /* of a member of struct task, or of the list's element */
    const char *doc;
};

extern const struct task_row task_rows[];
extern const size_t task_row_count;

/* The field `key` of the object at `parent` ("" for the task itself); NULL: it has none. */
const struct task_row *task_row_find(const char *parent, const char *key);
/* The required row behind this one, of whatever object; NULL: the first, or there is none. */
const struct task_row *task_row_next_required(const struct task_row *row);
/* Whether `row` stands directly in the object at `parent`. */
bool task_row_is_in(const struct task_row *row, const char *parent);

#endif
