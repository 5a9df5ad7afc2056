#include "workers/evaluators/swe/eval_script.h"

#include <ctype.h>

#include "common/base/text.h"
#include "workers/evaluators/swe/log_line.h"

static const char begin_mark[] = ">>>>> Start Test Output", end_mark[] = ">>>>> End Test Output",
                  status_mark[] = ">>>>> Test Exit Code:";

enum { RM_LINE_BYTES = 32768 };

/* ---- bash ------------------------------------------------------------------------------------------ */

static void enter(const struct task_swe *swe, struct buffer *out)
{
    buffer_append_str(
        out,
        "sluice_git() { git -c core.hooksPath=/dev/null -c core.fsmonitor=false -c safe.directory='*' "
        "-c core.quotePath=false -c gc.auto=0 -c maintenance.auto=false -c core.untrackedCache=false \"$@\"; }\ncd ");
    buffer_append_quoted(out, swe->repository);
    buffer_printf(out,
                  " && [ \"$(pwd -P)\" = \"$PWD\" ] && [ -e .git ] && "
                  "sluice_git rev-parse -q --verify 'HEAD^{commit}' >/dev/null || exit %d\n",
                  SCRIPT_NO_REPOSITORY);
}

static void check_base(const struct task_swe *swe, struct buffer *out)
{
    buffer_printf(out, "sluice_git cat-file -e '%s^{commit}' || exit %d\n", swe->base_commit, SCRIPT_NO_BASE);
}

void script_check(const struct task_swe *swe, struct buffer *out)
{
    enter(swe, out);
    check_base(swe, out);
}

void script_take_patch(const struct task_swe *swe, const char *path, size_t max, struct buffer *out)
{
    enter(swe, out);
    /* 1: some of it cannot be added, of a name as .GIT or without rights; the agent's doing, and all else counts. */
    buffer_printf(out, "sluice_git add -A --ignore-errors . >&2; [ $? -le 1 ] || exit %d\n", SCRIPT_NO_PATCH);
    buffer_printf(out,
                  "sluice_git diff --cached --binary --no-color --no-ext-diff --no-textconv --no-renames --full-index "
                  "--src-prefix=a/ --dst-prefix=b/ HEAD | head -c %zu >%s\n"
                  "case ${PIPESTATUS[0]} in 0|141) ;; *) exit %d;; esac\n",
                  max, path, SCRIPT_NO_PATCH);
}

/* Many by one rm: a patch may make a hundred thousand. */
static void remove_files(const struct paths *paths, struct buffer *out)
{
    size_t line = 0;
    for (size_t i = 0; i < paths->count; i++) {
        if (i == 0 || out->len - line > RM_LINE_BYTES) {
            buffer_append_str(out, i ? "\nrm -f --" : "rm -f --");
            line = out->len;
        }
        buffer_append_str(out, " ");
        buffer_append_quoted(out, paths->each[i]);
    }
    buffer_append_str(out, "\n");
}

/* As SWE-bench does it: each way in turn, and the tree as it was between them. */
void script_apply(const struct task_swe *swe, const char *path, const struct paths *made, struct buffer *out)
{
    enter(swe, out);
    remove_files(made, out); /* what the image has there untracked */
    buffer_printf(out,
                  "sluice_restore() { sluice_git reset -q --hard HEAD; }\n"
                  "sluice_git apply --verbose %1$s && exit 0\n"
                  "sluice_git apply --verbose --3way %1$s && exit 0\nsluice_restore\n"
                  "sluice_git apply --verbose --reject %1$s && exit 0\nsluice_restore\n"
                  "patch --batch --fuzz=5 -p1 -i %1$s && exit 0\nsluice_restore\n"
                  "sluice_git apply --reverse --check %1$s && exit 0\n"
                  "exit %2$d\n",
                  path, SCRIPT_NOT_APPLIED);
}

/* ---- running the tests ------------------------------------------------------------------------------- */

/*
 * The task's own script, its marks with the nonce. They are in quotes there: what stands between two more of the same
 * is outside, and expands.
 */
static void mark_script(const char *script, const char *nonce, struct buffer *out)
{
    const char *begin = (const char *)text_find_last(slice_from_str(script), begin_mark);
    const char *end = (const char *)text_find_last(slice_from_str(script), end_mark);
    const char *at = script;
    for (const char *next = begin < end ? begin : end; next; next = next == begin && end > begin ? end : NULL) {
        const size_t len = next == begin ? strlen(begin_mark) : strlen(end_mark);
        buffer_append(out, at, (size_t)(next - at) + len);
        buffer_printf(out, next == begin ? " %s" : " %s '$?'", nonce);
        at = next + len;
    }
    buffer_append_str(out, at);
    buffer_append_str(out, "\n");
}

static void restore_tests(const struct task_swe *swe, const struct paths *tests, struct buffer *out)
{
    for (size_t i = 0; i < tests->count; i++) {
        buffer_append_str(out, "sluice_file=");
        buffer_append_quoted(out, tests->each[i]);
        buffer_printf(out,
                      "\nif sluice_git cat-file -e '%1$s':\"$sluice_file\" 2>/dev/null; then "
                      "sluice_git checkout -q '%1$s' -- \"$sluice_file\"; else rm -rf -- \"$sluice_file\"; fi\n",
                      swe->base_commit);
    }
}

static void run_command(const struct task_swe *swe, const char *test_patch, const struct paths *tests,
                        const char *nonce, struct buffer *out)
{
    enter(swe, out);
    if (swe->prepare) {
        buffer_printf(out, "%s\n", swe->prepare);
        enter(swe, out);
    }
    restore_tests(swe, tests, out);
    if (swe->test_patch)
        buffer_printf(out, "sluice_git apply --verbose %s || exit %d\n", test_patch, SCRIPT_NO_TESTS);
    buffer_printf(out, "echo '%s %s'\n(\n%s\n)\necho '%s %s' $?\n", begin_mark, nonce, swe->test_command, end_mark,
                  nonce);
}

void script_run(const struct task_swe *swe, const char *test_patch, const struct paths *tests, const char *plugins,
                const char nonce[static NONCE_SIZE], struct buffer *out)
{
    if (plugins)
        buffer_printf(out,
                      "export PYTHONPATH=%s${PYTHONPATH:+:$PYTHONPATH} "
                      "PYTEST_ADDOPTS=\"-p swe_witness ${PYTEST_ADDOPTS-}\"\n",
                      plugins);
    if (swe->script)
        mark_script(swe->script, nonce, out);
    else
        run_command(swe, test_patch, tests, nonce, out);
}

/* ---- what it printed ------------------------------------------------------------------------------------- */

/* Bash's trace of the command that prints a mark is none. */
static bool is_mark(struct slice line, const char *mark, const char *nonce)
{
    const ptrdiff_t at = log_line_find(line, mark);
    const bool is_traced = log_line_starts(line, "+") && log_line_find(line, "echo") > 0;
    return at >= 0 && (!*nonce || log_line_find(line, nonce) > at) && !is_traced;
}

int script_read_number(struct slice text)
{
    while (text.len > 0 && !isdigit(text.data[0]))
        text = slice_from(text, 1);
    int number = text.len > 0 ? 0 : -1;
    for (size_t i = 0; i < text.len && i < 4 && isdigit(text.data[i]); i++)
        number = 10 * number + (text.data[i] - '0');
    return number;
}

static int status_behind(struct slice line, const char *what)
{
    return script_read_number(slice_from(line, (size_t)log_line_find(line, what) + strlen(what)));
}

/* Of our own script the mark has said it, and what is printed behind it may make it worse, never better. */
static bool may_say_status(const struct task_swe *swe, const struct script_log *said, int status)
{
    return said->ends > 0 && (swe->script || status != 0);
}

void script_read_log(const struct task_swe *swe, struct slice log, const char nonce[static NONCE_SIZE],
                     struct script_log *ret)
{
    const uint8_t *begin = NULL, *end = NULL;
    *ret = (struct script_log){.exit_status = -1};
    for (struct slice line; log_line_next(&log, &line);)
        if (is_mark(line, begin_mark, nonce)) {
            ret->begins++;
            begin = log.data;
        } else if (is_mark(line, end_mark, nonce)) {
            ret->ends++;
            end = line.data;
            ret->exit_status = status_behind(line, nonce);
        } else if (log_line_find(line, status_mark) >= 0) {
            const int status = status_behind(line, status_mark);
            ret->exit_status = may_say_status(swe, ret, status) ? status : ret->exit_status;
        }
    if (ret->begins == 1 && ret->ends == 1 && begin && begin <= end)
        ret->tests = slice_of(begin, (size_t)(end - begin));
}
