/* search.c - the tool `search`: a search of the web (search_service.h), outside of the sandbox. */
#include <errno.h>
#include <stdlib.h>

#include "common/base/cleanup.h"
#include "workers/runtime/fiber.h"
#include "common/loop/loop_now.h"
#include "workers/sandbox/output.h"
#include "workers/tools/arguments.h"
#include "workers/tools/search/search_service.h"
#include "workers/tools/toolbox.h"
#include "workers/tools/tools.h"

enum { RESULTS_STANDARD = 5 };

static const char *search_lacks(const struct toolbox *box)
{
    return box->search ? NULL : "this worker has no web search (sluice-worker --search)";
}

static int say_results(struct toolbox *box, const struct buffer *text, struct tool_result *ret, struct fail *fail)
{
    struct output output;
    size_t len;
    output_init(&output, box->limits->output_bytes);
    output_append(&output, text->data, text->len);
    ret->total = output.total;
    AUTO_FREE char *kept = output_take(&output, &len);
    return kept ? tool_say_bytes(ret, slice_of(kept, len), fail) : fail_memory(fail);
}

static int search_call(struct toolbox *box, void *state, const json_t *arguments, struct tool_result *ret,
                       struct fail *fail)
{
    AUTO_BUFFER text = {0};
    size_t found = 0;
    const char *query = tool_string(arguments, "query");
    const size_t count = (size_t)tool_integer(arguments, "max_results", RESULTS_STANDARD);
    (void)state;
    const uint64_t limit_s = box->limits->command_s;
    fiber_push_deadline(loop_now_ms() + 1000 * (int64_t)(limit_s < SEARCH_SECONDS_MAX ? limit_s : SEARCH_SECONDS_MAX));
    int code = search_ask(box->search, query, count, &text, &found, fail);
    fiber_pop_deadline();
    if (code == -ECANCELED || code == -ENOMEM || (code == -ETIMEDOUT && fiber_is_late()))
        return code;
    if (code < 0) {
        char words[sizeof(fail->text)];
        snprintf(words, sizeof(words), "%s", fail->text);
        ret->timed_out = code == -ETIMEDOUT;
        return tool_refuse(ret, fail, "No results: %s.", words);
    }
    return found ? say_results(box, &text, ret, fail) : tool_say(ret, fail, "Nothing was found.");
}

const struct tool tool_search = {
    .name = "search",
    .doc = "Searches the web and shows titles, addresses and excerpts of what was found.",
    .arguments = {{"query", TOOL_STRING, true, 1, SEARCH_QUERY_MAX, NULL, "What to search for."},
                  {"max_results", TOOL_INTEGER, false, 1, SEARCH_RESULTS_MAX, NULL,
                   "How many results to show; 5 if absent."}},
    .lacks = search_lacks,
    .call = search_call,
};
