#include "client/gateway/prorl/status_answer.h"

void status_answer(struct http_call *call, const char *words, const char *of)
{
    struct buffer body = {0}, text = {0};
    buffer_printf(&text, "%s%s", words, of);
    buffer_append_str(&body, "{\"status\":");
    json_text_append(&body, buffer_peek(&text));
    buffer_append_str(&body, "}");
    buffer_finish(&text);
    http_call_answer_json(call, 200, &body);
}
