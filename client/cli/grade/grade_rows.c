#include "client/cli/grade/grade_rows.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "client/cli/connect.h"
#include "common/base/cleanup.h"
#include "common/base/text.h"

#define BOM "\xef\xbb\xbf"
enum { BOM_LEN = 3 };

/* ---- one row --------------------------------------------------------------------------------------- */

static int read_files(const json_t *files, struct grade_left *left, struct fail *fail)
{
    const bool is_list = json_is_array(files);
    const size_t count = is_list ? json_array_size(files) : files ? 1 : 0;
    if (count > TEXTS_MAX)
        return fail_set(fail, -EINVAL, "files has %zu elements; the maximum is %d", count, TEXTS_MAX);
    for (size_t i = 0; i < count; i++)
        if (!(left->files[left->file_count++] = json_string_value(is_list ? json_array_get(files, i) : files)))
            return fail_set(fail, -EINVAL, "files must be a path, or a list of paths");
    return 0;
}

static int check_names(const json_t *row, struct fail *fail)
{
    const char *name;
    json_t *value;
    if (!json_is_object(row))
        return fail_set(fail, -EINVAL, "it is not a JSON object");
    json_object_foreach((json_t *)(uintptr_t)row, name, value)
    {
        if (!text_is_one_of(name, "task|files|text"))
            return fail_set(fail, -EINVAL, "a row has no field '%.64s': task, files and text", name);
    }
    return 0;
}

static const struct task_line *find_task(const struct grade_jobs *jobs, const json_t *row, struct fail *fail)
{
    const json_t *named = json_object_get(row, "task");
    const char *id = json_string_value(named);
    const struct task_line *line = id ? grade_jobs_find(jobs, id) : NULL;
    if (!named && jobs->tasks.count == 1)
        return &jobs->tasks.lines[0];
    if (!id)
        fail_set(fail, -EINVAL, "task must be the id of one of the %zu tasks", jobs->tasks.count);
    else if (!line)
        fail_set(fail, -EINVAL, "there is no task %.128s in %.200s", id, jobs->tasks.path);
    return line;
}

static int read_row(struct grade_jobs *jobs, struct grade_job *job, const json_t *row, struct fail *fail)
{
    struct grade_left left = {.source = GRADE_GIVEN};
    const json_t *text = json_object_get(row, "text");
    int code = check_names(row, fail);
    const struct task_line *line = code < 0 ? NULL : find_task(jobs, row, fail);
    if (!line)
        return fail->code;
    if (text && !json_is_string(text))
        return fail_set(fail, -EINVAL, "text must be a string");
    if (text)
        left.text = slice_of(json_string_value(text), json_string_length(text));
    code = read_files(json_object_get(row, "files"), &left, fail);
    if (code == 0 && !text && !left.file_count)
        code = fail_set(fail, -EINVAL, "it has neither files nor text");
    return code < 0 ? code : grade_jobs_make(jobs, job, line, &left, fail);
}

/* ---- all of them ----------------------------------------------------------------------------------- */

static bool take_row(struct grade_jobs *jobs, struct slice text, size_t number)
{
    struct fail fail = {0};
    struct grade_job *job = grade_jobs_add(jobs);
    if (!job) {
        cli_say("out of memory");
        return false;
    }
    job->row = number;
    json_t *row = NULL;
    if (text.len > GRADE_ROW_BYTES_MAX)
        fail_set(&fail, -E2BIG, "it is longer than %d MiB", GRADE_ROW_BYTES_MAX >> 20);
    else
        row = json_loadb((const char *)text.data, text.len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
    if (fail.code == 0)
        read_row(jobs, job, row, &fail);
    if (!job->json)
        snprintf(job->why, sizeof(job->why), "%s", fail.text);
    json_decref(row);
    return true;
}

static bool read_rows(struct grade_jobs *jobs, const char *path, FILE *file)
{
    AUTO_FREE char *line = NULL;
    size_t size = 0, number = 0;
    bool good = true;
    for (ssize_t len; good && (len = getline(&line, &size, file)) >= 0;) {
        const bool has_mark = number++ == 0 && len >= BOM_LEN && memcmp(line, BOM, BOM_LEN) == 0;
        const struct slice text = text_trim(
            slice_of(line + (has_mark ? BOM_LEN : 0), (size_t)len - (has_mark ? BOM_LEN : 0)));
        if (text.len)
            good = take_row(jobs, text, number);
    }
    if (good && (ferror(file) || !feof(file))) {
        cli_say("cannot read %s: %s", path, strerror(errno));
        return false;
    }
    return good;
}

bool grade_rows_read(struct grade_jobs *jobs, const char *path)
{
    const bool is_stdin = strcmp(path, "-") == 0;
    struct stat about;
    AUTO_FCLOSE FILE *opened = is_stdin ? NULL : fopen(path, "re");
    FILE *file = is_stdin ? stdin : opened;
    if (!file || fstat(fileno(file), &about) < 0) {
        cli_say("cannot read %s: %s", path, strerror(errno));
        return false;
    }
    if (S_ISDIR(about.st_mode)) {
        cli_say("--rows %s: it is a directory; rows are a file, a JSON object a line", path);
        return false;
    }
    if (!read_rows(jobs, path, file))
        return false;
    if (!jobs->count)
        cli_say("there is no row in %s", path);
    return jobs->count > 0;
}
