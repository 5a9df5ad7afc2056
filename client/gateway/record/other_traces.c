#include "client/gateway/record/other_traces.h"

#include "client/gateway/json_text.h"
#include "client/gateway/record/arrays.h"

void other_traces_append(const struct sluice_trajectory *trajectory, const struct sluice_trace *told,
                         struct buffer *out)
{
    const char *joint = "[";
    for (size_t i = 0; i < trajectory->trace_count; i++) {
        const struct sluice_trace *trace = &trajectory->traces[i];
        if (trace == told)
            continue;
        json_text_printf(out, "%j{\"label\":%s,\"reason\":%s,\"token_ids\":", joint, trace->label, trace->reason);
        arrays_append_ids(out, trace->token_ids, trace->token_count);
        buffer_append_str(out, ",\"mask\":");
        arrays_append_mask(out, trace->mask, trace->token_count);
        buffer_append_str(out, ",\"logprobs\":");
        arrays_append_logprobs(out, trace->logprobs, trace->token_count);
        buffer_append_str(out, "}");
        joint = ",";
    }
    buffer_append_str(out, *joint == '[' ? "[]" : "]");
}
