#include "workers/doctor/print.h"

#include <jansson.h>
#include <string.h>

/* ---- for people ----------------------------------------------------------------------- */

static void print_remedy(const char *remedy, FILE *out)
{
    if (*remedy)
        fprintf(out, "       %-24s cure: %s\n", "", remedy);
}

static const char *mark(bool is_ok, bool is_needed) { return is_ok ? "ok" : is_needed ? "no" : "-"; }

static void print_checks(const struct doctor_report *report, FILE *out)
{
    for (int i = 0; i < CHECK_COUNT; i++) {
        const struct probe_result *it = &report->probe.results[i];
        bool best = tier_needs((enum tier)0) & (1u << i);
        const char *note = it->is_ok ? it->text : "", *why = it->is_ok ? "" : it->text;
        fprintf(out, "  %-4s %-24s %s%s%s%s%s\n", mark(it->is_ok, best), probe_title((enum probe_check)i), why,
                *why ? " - " : "", probe_use((enum probe_check)i), *note ? ": " : "", note);
        print_remedy(it->remedy, out);
    }
}

static void print_limits(const struct doctor_report *report, FILE *out)
{
    for (size_t i = 0; i < report->limit_count; i++) {
        const struct doctor_limit *it = &report->limits[i];
        if (!it->is_known)
            continue;
        fprintf(out, "  %-4s %-28s ", it->is_ok ? "ok" : "low", it->name);
        if (it->value > UINT64_MAX / 2)
            fprintf(out, "unlimited; %s\n", it->use);
        else
            fprintf(out, "%llu%s; %s\n", (unsigned long long)it->value, it->unit, it->use);
        if (!it->is_ok) {
            fprintf(out, "       %-24s at least %llu%s is better\n", "", (unsigned long long)it->wanted, it->unit);
            print_remedy(it->remedy, out);
        }
    }
}

static void print_tiers(const struct doctor_report *report, FILE *out)
{
    for (int i = 0; i < TIER_COUNT; i++) {
        uint32_t missing = probe_missing(&report->probe, (enum tier)i);
        fprintf(out, "  %-4s %s", missing ? "no" : "ok", tier_word((enum tier)i));
        const char *before = ": lacks ";
        for (int c = 0; c < CHECK_COUNT; c++)
            if (missing & (1u << c)) {
                fprintf(out, "%s%s", before, probe_title((enum probe_check)c));
                before = ", ";
            }
        fputs("\n", out);
    }
}

void doctor_print(const struct doctor_report *report, FILE *out)
{
    fputs("What this machine allows:\n", out);
    print_checks(report, out);
    fputs("\nTiers of sandbox, best first:\n", out);
    print_tiers(report, out);
    fprintf(out, "\nThe tier: %s%s\n", tier_word(report->tier), report->is_forced ? " (as told)" : "");
    fprintf(out, "  %-4s %s\n", report->sandbox_code == 0 ? "ok" : "no", report->sandbox_text);
    fprintf(out, "\nLimits (the cache is looked for in %s):\n", report->cache);
    print_limits(report, out);
}

/* ---- for programs --------------------------------------------------------------------- */

static json_t *text_or_null(const char *text) { return *text ? json_string(text) : json_null(); }

static json_t *make_checks(const struct doctor_report *report)
{
    json_t *list = json_array();
    for (int i = 0; i < CHECK_COUNT; i++) {
        const struct probe_result *it = &report->probe.results[i];
        json_array_append_new(list, json_pack("{s:s, s:b, s:b, s:i, s:o, s:o}", "name", probe_word((enum probe_check)i),
                                              "ok", it->is_ok, "tried", it->is_tried, "errno", -it->code, "text",
                                              text_or_null(it->text), "cure", text_or_null(it->remedy)));
    }
    return list;
}

static json_t *make_tiers(const struct doctor_report *report)
{
    json_t *list = json_array();
    for (int i = 0; i < TIER_COUNT; i++) {
        uint32_t missing = probe_missing(&report->probe, (enum tier)i);
        json_t *lacks = json_array();
        for (int c = 0; c < CHECK_COUNT; c++)
            if (missing & (1u << c))
                json_array_append_new(lacks, json_string(probe_word((enum probe_check)c)));
        json_array_append_new(
            list, json_pack("{s:s, s:b, s:o}", "name", tier_word((enum tier)i), "ok", missing == 0, "lacks", lacks));
    }
    return list;
}

static json_t *make_limits(const struct doctor_report *report)
{
    json_t *list = json_array();
    for (size_t i = 0; i < report->limit_count; i++) {
        const struct doctor_limit *it = &report->limits[i];
        bool counts = it->is_known && it->value <= INT64_MAX;
        json_array_append_new(list, json_pack("{s:s, s:b, s:o, s:I, s:s}", "name", it->name, "ok", it->is_ok, "value",
                                              counts ? json_integer((json_int_t)it->value) : json_null(), "wanted",
                                              (json_int_t)it->wanted, "cure", it->remedy));
    }
    return list;
}

void doctor_print_json(const struct doctor_report *report, FILE *out)
{
    json_t *all = json_pack("{s:s, s:b, s:i, s:{s:b, s:f, s:s}, s:o, s:o, s:o}", "tier", tier_word(report->tier),
                            "forced", report->is_forced, "status", report->status, "sandbox", "ok",
                            report->sandbox_code == 0, "ms", report->sandbox_ms, "text", report->sandbox_text, "checks",
                            make_checks(report), "tiers", make_tiers(report), "limits", make_limits(report));
    json_dumpf(all, out, JSON_INDENT(2));
    fputs("\n", out);
    json_decref(all);
}
