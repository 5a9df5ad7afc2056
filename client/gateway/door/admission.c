#include "client/gateway/door/admission.h"

static void on_status(struct http_call *call, const struct answer *answer)
{
    call->takes_refusals = false;
    if (answer->id != MSG_status) { /* a key that was removed, on a connection from before */
        http_call_refuse(call, 401, "unknown-key", "", "the broker does not know the key of this token");
        return;
    }
    json_t *status = json_text_read(answer->as.status.json);
    const json_t *asker = json_object_get(status, "asker");
    const char *name = json_string_value(json_object_get(asker, "name"));
    identities_know(call->gateway->identities, call->identity, name ? name : "",
                    json_is_true(json_object_get(asker, "is_admin")));
    json_decref(status);
    call->admitted(call);
}

void admission_ask(struct http_call *call, void (*then)(struct http_call *call))
{
    struct msg_status_get in = {0};
    call->admitted = then;
    call->takes_refusals = true;
    http_call_ask(call, MSG_status_get, &in, on_status);
}

void admission_run(struct http_call *call)
{
    if (!call->identity || call->identity->is_known)
        http_call_run(call);
    else
        admission_ask(call, http_call_run);
}
