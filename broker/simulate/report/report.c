#include "broker/simulate/report/report.h"

#include "broker/simulate/report/numbers.h"
#include "broker/simulate/report/verdict.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- for people ------------------------------------------------------------------------------ */

static void print_head(const struct report *report, FILE *out)
{
    const struct fleet *fleet = report->fleet;
    const struct figures *figures = report->figures;
    char engines[32], tokens[32], queued[32], per_hour[32];
    print_count((double)fleet->engines, engines);
    print_count(fleet->speed.tokens_per_s, tokens);
    print_count((double)(report->load->groups * report->load->samples), queued);
    print_count(report->load->per_hour, per_hour);
    fprintf(out, "fleet          %s engines of %s tokens/s", engines, tokens);
    for (enum stage stage = STAGE_INIT; stage < STAGE_COUNT; stage++) {
        char workers[32], slots[32];
        print_count((double)fleet->workers[stage], workers);
        print_count((double)fleet->slots[stage], slots);
        fprintf(out, ", %s x %s %s slots", workers, slots, stage_wire(stage));
    }
    fprintf(out, "\ntasks          %s\n", report->tasks);
    fprintf(out, "submitted      %s rollouts in groups of %llu, %s%s, seed %llu\n", queued,
            (unsigned long long)report->load->samples, report->load->per_hour > 0 ? per_hour : "all at the start",
            report->load->per_hour > 0 ? " an hour" : "", (unsigned long long)report->load->seed);
    char ended[32], from[32], to[32], rate[32];
    print_count((double)figures->ended, ended);
    print_seconds(figures->from_s, from);
    print_seconds(figures->to_s, to);
    print_count(figures->per_hour, rate);
    fprintf(out, "\nrollouts/hour  %s\nmeasured       %s rollouts, from %s to %s of made-up time%s\n\n", rate, ended,
            from, to, figures->is_whole ? ", start and end included: too few are submitted for a steady state" : "");
}

static void print_part(const struct part_figures *part, enum part which, FILE *out)
{
    char has[32], can[32], p50[32] = "-", p99[32] = "-";
    print_count((double)part->has, has);
    print_count(part->per_hour, can);
    if (part->waited) {
        print_seconds(part->wait_p50_s, p50);
        print_seconds(part->wait_p99_s, p99);
    }
    fprintf(out, "%-24s %10s %6.0f %% %14s %10s %10s\n", part_words(which), has, 100 * part->busy, can, p50, p99);
}

/* How often a batch is there, how much of what was done is in none, and who waits. */
static void print_batches(const struct report *report, FILE *out)
{
    const struct figures *figures = report->figures;
    const struct sampling *sampling = &report->load->sampling;
    const double seconds = figures->to_s - figures->from_s, tokens = (double)figures->tokens / 100;
    char rate[32], each[32];
    if (!sampling->groups || !figures->batches || !figures->tokens)
        return;
    print_count((double)figures->batches / seconds * 3600, rate);
    print_seconds(seconds / (double)figures->batches, each);
    fprintf(out,
            "\nbatches        %s an hour, one each %s, of %llu groups, by %s; %.0f %% of the groups are kept; the "
            "trainer learns %.0f %% of the time\n",
            rate, each, (unsigned long long)sampling->groups, sampling_way_word(sampling->way), 100 * figures->kept,
            100 * figures->learning);
    fprintf(out,
            "groups         %.3g begun for each in a batch; begun %.2g versions before it\n"
            "tokens         %.0f %% in batches, %.0f %% filtered, %.0f %% thrown away\n",
            (double)figures->asked / (double)figures->taken, figures->age, (double)figures->tokens_taken / tokens,
            (double)figures->tokens_filtered / tokens, (double)figures->tokens_wasted / tokens);
}

void report_print(const struct report *report, FILE *out)
{
    const struct figures *figures = report->figures;
    struct verdict verdict = figures_judge(figures, report->load);
    char calls[32], pace[32], most[32], run[32], events[32];
    print_head(report, out);
    fprintf(out, "%-24s %10s %8s %14s %10s %10s\n", "part", "has", "busy", "could do /h", "wait p50", "wait p99");
    for (enum part part = 0; part < PART_COUNT; part++)
        print_part(&figures->parts[part], part, out);
    print_count(figures->calls, calls);
    print_count(figures->call_tokens_per_s, pace);
    print_count(report->fleet->speed.call_tokens_per_s, most);
    print_seconds(figures->run_s, run);
    fprintf(out,
            "\na run takes %s; %s calls sample at a time, %s tokens/s each of at most %s; %.0f %% of "
            "prompt tokens were cached\n",
            run, calls, pace, most, 100 * figures->cached);
    print_batches(report, out);
    fprintf(out, "\nbottleneck     %s\n", verdict.text);
    print_count((double)figures->events, events);
    fprintf(out, "\n%s events in %.1f s\n", events, report->took_s);
}

/* ---- as JSON ------------------------------------------------------------------------------------ */

static json_t *real_or_null(double value) { return isfinite(value) ? json_real(value) : json_null(); }

static json_t *describe_part(const struct part_figures *part)
{
    json_t *object = json_object();
    json_object_set_new(object, "has", json_integer((json_int_t)part->has));
    json_object_set_new(object, "busy", json_real(part->busy));
    json_object_set_new(object, "could_per_hour", real_or_null(part->per_hour));
    json_object_set_new(object, "wait_p50_s", part->waited ? json_real(part->wait_p50_s) : json_null());
    json_object_set_new(object, "wait_p99_s", part->waited ? json_real(part->wait_p99_s) : json_null());
    return object;
}

static void add_verdict(json_t *object, const struct verdict *verdict)
{
    json_object_set_new(object, "bottleneck", verdict->keeps_up ? json_null() : json_string(part_key(verdict->first)));
    json_object_set_new(object, "next", verdict->has_next ? json_string(part_key(verdict->next)) : json_null());
    json_object_set_new(object, "wanted", verdict->has_next ? json_integer((json_int_t)verdict->wanted) : json_null());
    json_object_set_new(object, "advice", json_string(verdict->text));
}

static json_t *count(uint64_t value) { return json_integer((json_int_t)value); }

static void add_batches(json_t *object, const struct report *report)
{
    const struct figures *figures = report->figures;
    const struct sampling *sampling = &report->load->sampling;
    if (!sampling->groups)
        return;
    json_object_set_new(object, "sampling", json_string(sampling_way_word(sampling->way)));
    json_object_set_new(object, "batches", count(figures->batches));
    json_object_set_new(object, "groups_asked", count(figures->asked));
    json_object_set_new(object, "groups_in_batches", count(figures->taken));
    json_object_set_new(object, "groups_filtered", count(figures->filtered));
    json_object_set_new(object, "groups_wasted", count(figures->wasted));
    json_object_set_new(object, "age", json_real(figures->age));
    json_object_set_new(object, "tokens", count(figures->tokens));
    json_object_set_new(object, "tokens_in_batches", count(figures->tokens_taken));
    json_object_set_new(object, "tokens_filtered", count(figures->tokens_filtered));
    json_object_set_new(object, "tokens_wasted", count(figures->tokens_wasted));
    json_object_set_new(object, "batches_per_hour",
                        json_real((double)figures->batches / (figures->to_s - figures->from_s) * 3600));
    json_object_set_new(object, "kept", json_real(figures->kept));
    json_object_set_new(object, "learning", json_real(figures->learning));
}

bool report_json(const struct report *report, FILE *out)
{
    const struct figures *figures = report->figures;
    struct verdict verdict = figures_judge(figures, report->load);
    json_t *object = json_object(), *parts = json_object();
    for (enum part part = 0; part < PART_COUNT; part++)
        json_object_set_new(parts, part_key(part), describe_part(&figures->parts[part]));
    json_object_set_new(object, "tasks", json_string(report->tasks));
    json_object_set_new(object, "rollouts_per_hour", json_real(figures->per_hour));
    json_object_set_new(object, "measured", json_integer((json_int_t)figures->ended));
    json_object_set_new(object, "from_s", json_real(figures->from_s));
    json_object_set_new(object, "to_s", json_real(figures->to_s));
    json_object_set_new(object, "start_and_end_included", json_boolean(figures->is_whole));
    json_object_set_new(object, "parts", parts);
    json_object_set_new(object, "run_s", json_real(figures->run_s));
    json_object_set_new(object, "calls", json_real(figures->calls));
    json_object_set_new(object, "call_tokens_per_s", json_real(figures->call_tokens_per_s));
    json_object_set_new(object, "cached", json_real(figures->cached));
    add_batches(object, report);
    add_verdict(object, &verdict);
    json_object_set_new(object, "events", json_integer((json_int_t)figures->events));
    json_object_set_new(object, "took_s", json_real(report->took_s));
    char *text = json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(10));
    json_decref(object);
    bool is_written = text && fprintf(out, "%s\n", text) > 0;
    free(text);
    return is_written;
}
