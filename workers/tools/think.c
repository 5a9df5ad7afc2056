/* think.c - the tool that does nothing: the thought is the call itself, kept in the record. */
#include "workers/tools/toolbox.h"
#include "workers/tools/tools.h"

static int think_call(struct toolbox *box, void *state, const json_t *arguments, struct tool_result *ret,
                      struct fail *fail)
{
    (void)box, (void)state, (void)arguments;
    return tool_say(ret, fail, "Noted.");
}

const struct tool tool_think = {
    .name = "think",
    .doc = "Writes down a thought. It changes nothing and shows you nothing new; use it to reason "
           "before a difficult step.",
    .arguments = {{"thought", TOOL_STRING, true, 1, 65536, NULL, "What you think."}},
    .call = think_call,
};
