/* submit.c - the tool that ends the rollout with an answer. */
#include <errno.h>

#include "workers/tools/arguments.h"
#include "workers/tools/toolbox.h"
#include "workers/tools/tools.h"

static int submit_call(struct toolbox *box, void *state, const json_t *arguments, struct tool_result *ret,
                       struct fail *fail)
{
    const char *answer = tool_string(arguments, "answer");
    (void)box, (void)state;
    ret->is_final = true;
    ret->answer = strdup(answer ? answer : "");
    return ret->answer ? tool_say(ret, fail, "Submitted.") : fail_memory(fail);
}

const struct tool tool_submit = {
    .name = "submit",
    .doc = "Ends the task. Call it once, when everything is done; nothing runs after it.",
    .arguments = {{"answer", TOOL_STRING, false, 0, 65536, NULL, "The final answer, where the task asks for one."}},
    .call = submit_call,
};
