#include "workers/agents/kinds/oracle_answer.h"

#include <string.h>

/* What a reader of plain text would look for in it. */
static bool has_mark(const char *answer)
{
    return strstr(answer, "\\boxed") || strstr(answer, "####") || strcasestr(answer, "answer");
}

/* exact takes a text as it is, unless the text itself has what the reader looks for. */
static const char *usual_extract(const struct task *task, const char *answer)
{
    if (strcmp(task->eval_extract, "auto") != 0)
        return task->eval_extract;
    return strcmp(task->eval_kind, "exact") == 0 && !has_mark(answer) ? "all" : "box";
}

static const char *accepted_answer(const struct task *task)
{
    static const char *const kinds[] = {"math", "choice", "exact"};
    const char *answer = task->eval_answer ? task->eval_answer : task->eval_answer_count ? task->eval_answers[0] : NULL;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
        if (strcmp(task->eval_kind, kinds[i]) == 0)
            return answer;
    return NULL;
}

static void say_accepted(const struct task *task, const char *answer, struct buffer *ret)
{
    static const struct {
        const char *extract, *before, *behind;
    } forms[] = {
        {"box", "\\boxed{", "}"}, {"hashes", "#### ", ""}, {"answer", "Answer: ", ""}, {"letter", "Answer: ", ""}};
    const char *extract = usual_extract(task, answer);
    const bool is_boxed = strstr(answer, "\\boxed{") != NULL;
    for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++)
        if (strcmp(extract, forms[i].extract) == 0 && !(is_boxed && strcmp(extract, "box") == 0)) {
            buffer_printf(ret, "%s%s%s", forms[i].before, answer, forms[i].behind);
            return;
        }
    buffer_append_str(ret, answer);
}

void oracle_answer(const struct task *task, struct buffer *ret)
{
    const char *accepted = accepted_answer(task);
    if (task->solution_answer)
        buffer_append_str(ret, task->solution_answer);
    else if (accepted && !task->solution_command_count && !task->solution_file_count)
        say_accepted(task, accepted, ret);
}
