#include "workers/images/verbs.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/sanitize.h"
#include "workers/images/rootfs/copy.h"
#include "workers/images/about.h"
#include "workers/images/oci/oci.h"
#include "workers/images/rootfs/squashfs.h"

enum { OWNERS_LOOKED_AT = 2 << 20, PROGRESS_EVERY_MS = 100 };

/* ---- saying it ------------------------------------------------------------------------------------- */

static int say_json(json_t *json)
{
    if (!json || json_dumpf(json, stdout, JSON_ENSURE_ASCII) < 0)
        return IMAGE_EXIT_FAILED;
    printf("\n");
    json_decref(json);
    return IMAGE_EXIT_OK;
}

/* The sentence may hold names out of the image: fit for JSON and for a terminal. */
static struct rootfs_limits limits_of(const struct invocation *in)
{
    return (struct rootfs_limits){in->size_max_bytes, in->files_max};
}

static int complain(const struct invocation *in, struct image_trouble *trouble)
{
    trouble->fail.text[sanitize(trouble->fail.text, strlen(trouble->fail.text), false)] = '\0';
    if (in->json)
        say_json(json_pack("{s:{s:s, s:s}}", "error", "refusal", image_refusal_wire(trouble->refusal), "detail",
                           trouble->fail.text));
    fprintf(stderr, "sluice-image: %s\n", trouble->fail.text);
    if (trouble->refusal)
        return IMAGE_EXIT_REFUSED;
    return trouble->fail.code == -ECANCELED ? IMAGE_EXIT_STOPPED : IMAGE_EXIT_FAILED;
}

static const char *format_bytes(uint64_t bytes, char text[32])
{
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
    size_t unit = 0;
    double value = (double)bytes;
    for (; value >= 1024 && unit + 1 < sizeof(units) / sizeof(*units); unit++)
        value /= 1024;
    snprintf(text, 32, unit ? "%.1f %s" : "%.0f %s", value, units[unit]);
    return text;
}

static void say_left_out(const struct rootfs_counts *counts)
{
    const struct {
        uint64_t count;
        const char *what;
    } rows[] = {{counts->devices, "devices"},
                {counts->sockets, "FIFOs and sockets"},
                {counts->attributes, "attributes that are not user.*"},
                {counts->unreadable, "that could not be read"}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        if (rows[i].count)
            printf("left out:  %llu %s\n", (unsigned long long)rows[i].count, rows[i].what);
}

/* ---- inspect ------------------------------------------------------------------------------------------- */

struct inspection {
    const struct invocation *in;
    struct image *image;
    struct rootfs_counts counts;
    struct copy_owners owners;
    bool has_all_owners;
    char prepared[4096]; /* "" : not yet */
};

static void look_for_prepared(struct inspection *inspection)
{
    char path[sizeof(inspection->prepared) + 16];
    snprintf(path, sizeof(path), "%.3900s/images/%s", inspection->in->cache, inspection->image->key);
    struct image_about about;
    if (!image_is_packed(inspection->image) || !image_about_read(path, &about))
        return;
    image_about_finish(&about);
    snprintf(inspection->prepared, sizeof(inspection->prepared), "%.4080s/root", path);
}

static void print_owners(const struct inspection *inspection)
{
    const struct copy_owners *owners = &inspection->owners;
    printf("entries:   %llu%s\n", (unsigned long long)owners->entries, inspection->has_all_owners ? "" : " and more");
    if (!owners->foreign)
        return;
    sanitize_print(stdout,
                   "foreign:   %llu belong to other users or groups than yours (%s)\n"
                   "           In a sandbox they can be read, not changed or removed. To own them:\n"
                   "           sluice image prepare %s --to DIR\n",
                   (unsigned long long)owners->foreign, owners->first, inspection->image->path);
}

static void print_inspection(const struct inspection *inspection)
{
    const struct image *image = inspection->image;
    char text[32];
    sanitize_print(stdout, "image:     %s%s%s\nkind:      %s\n", image->path ? image->path : "host",
                   image->tag ? ":" : "", image->tag ? image->tag : "", image_kind_name(image->kind));
    if (image->kind == IMAGE_SIF)
        sanitize_print(stdout, "built for: linux/%s, %u objects, root at %llu\n", image->sif.architecture,
                       image->sif.object_count, (unsigned long long)image->sif.root_offset);
    if (image->squashfs)
        printf("packed:    SquashFS, %s\n", squashfs_compression(image->squashfs));
    if (image->oci)
        sanitize_print(stdout, "manifest:  %s\nlayers:    %zu, %s compressed\n", oci_digest(image->oci),
                       oci_layer_count(image->oci), format_bytes(oci_size(image->oci), text));
    if (image->squashfs)
        printf("unpacks:   to %s in %llu entries\n", format_bytes(inspection->counts.bytes, text),
               (unsigned long long)inspection->counts.entries);
    say_left_out(&inspection->counts);
    if (image->kind == IMAGE_DIRECTORY)
        print_owners(inspection);
    if (image_is_packed(image))
        sanitize_print(stdout, "prepared:  %s\n", inspection->prepared[0] ? inspection->prepared : "not yet");
}

static json_t *inspection_json(const struct inspection *inspection)
{
    const struct image *image = inspection->image;
    json_t *json = json_pack("{s:s, s:s, s:b}", "image", image->path ? image->path : "host", "kind",
                             image_kind_name(image->kind), "packed", image_is_packed(image));
    const struct {
        const char *name;
        uint64_t value;
        bool is_known;
    } numbers[] = {
        {"objects", image->sif.object_count, image->kind == IMAGE_SIF},
        {"root_offset", image->sif.root_offset, image->kind == IMAGE_SIF},
        {"bytes", inspection->counts.bytes, image->squashfs},
        {"entries", inspection->counts.entries + inspection->owners.entries, !image->oci},
        {"devices", inspection->counts.devices, image->squashfs},
        {"sockets", inspection->counts.sockets, image->squashfs},
        {"compressed_bytes", image->oci ? oci_size(image->oci) : 0, image->oci},
        {"layers", image->oci ? oci_layer_count(image->oci) : 0, image->oci},
        {"foreign", inspection->owners.foreign, image->kind == IMAGE_DIRECTORY},
    };
    const struct {
        const char *name, *value;
    } texts[] = {
        {"key", image_is_packed(image) ? image->key : NULL},
        {"tag", image->tag},
        {"architecture", image->sif.architecture},
        {"compression", image->squashfs ? squashfs_compression(image->squashfs) : NULL},
        {"manifest", image->oci ? oci_digest(image->oci) : NULL},
        {"prepared", inspection->prepared[0] ? inspection->prepared : NULL},
    };
    for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
        if (numbers[i].is_known)
            json_object_set_new(json, numbers[i].name, json_integer((json_int_t)numbers[i].value));
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
        if (texts[i].value)
            json_object_set_new(json, texts[i].name, json_string(texts[i].value));
    return json;
}

static int inspect(struct inspection *inspection, struct image_trouble *trouble)
{
    struct image *image = inspection->image;
    struct rootfs rootfs;
    const struct rootfs_limits limits = limits_of(inspection->in);
    rootfs_init(&rootfs, -1, &limits, inspection->in->stop, trouble);
    int code = image_count(image, &rootfs);
    inspection->counts = rootfs.counts;
    rootfs_finish(&rootfs);
    if (code < 0)
        return complain(inspection->in, trouble);
    if (image->kind == IMAGE_DIRECTORY)
        inspection->has_all_owners = copy_count_owners(image->file, OWNERS_LOOKED_AT, &inspection->owners);
    look_for_prepared(inspection);
    if (inspection->in->json)
        return say_json(inspection_json(inspection));
    print_inspection(inspection);
    return IMAGE_EXIT_OK;
}

int image_verb_inspect(const struct invocation *in)
{
    struct image_trouble trouble = {0};
    struct image image;
    if (image_open(in->image, &image, &trouble) < 0)
        return complain(in, &trouble);
    struct inspection inspection = {.in = in, .image = &image};
    int status = inspect(&inspection, &trouble);
    image_close(&image);
    return status;
}

/* ---- prepare ------------------------------------------------------------------------------------------ */

/* One line on a terminal, written over and over. */
struct bar {
    const char *name;
    bool is_shown, is_exact;
    int64_t said_ms, began_ms;
};

static void show_bar(void *arg, const struct rootfs_counts *done, const struct rootfs_counts *total)
{
    struct bar *bar = arg;
    char text[32];
    int64_t now_ms = clock_ms();
    if (!bar->is_shown || now_ms - bar->said_ms < PROGRESS_EVERY_MS)
        return;
    bar->said_ms = now_ms;
    fputs("\r", stderr);
    sanitize_print(stderr, "%.60s: ", bar->name);
    if (bar->is_exact && total->bytes)
        fprintf(stderr, "%.0f %%, ", 100.0 * (double)done->bytes / (double)total->bytes);
    fprintf(stderr, "%llu entries, %s  ", (unsigned long long)done->entries, format_bytes(done->bytes, text));
}

static void end_bar(const struct bar *bar)
{
    if (bar->is_shown && bar->said_ms)
        fprintf(stderr, "\r%79s\r", "");
}

static int say_path(const struct invocation *in, json_t *json, const char *path, bool is_new)
{
    if (!in->json) {
        json_decref(json);
        printf("%s\n", path);
        return IMAGE_EXIT_OK;
    }
    json_object_set_new(json, "path", json_string(path));
    json_object_set_new(json, "new", json_boolean(is_new));
    return say_json(json);
}

static int prepare_to(const struct invocation *in, struct image *image, const struct image_order *order,
                      struct image_trouble *trouble)
{
    struct rootfs_counts counts = {0};
    const struct bar *bar = order->progress_arg;
    int code = image->kind == IMAGE_HOST ? image_fail(trouble, -EINVAL, "the host's own root cannot be unpacked")
                                         : image_unpack_to(image, in->to, order, &counts, trouble);
    end_bar(bar);
    if (code < 0)
        return complain(in, trouble);
    AUTO_FREE char *path = realpath(in->to, NULL);
    json_t *json = json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I}", "kind", image_kind_name(image->kind), "bytes",
                             (json_int_t)counts.bytes, "entries", (json_int_t)counts.entries, "devices",
                             (json_int_t)counts.devices, "sockets", (json_int_t)counts.sockets, "attributes",
                             (json_int_t)counts.attributes, "unreadable", (json_int_t)counts.unreadable);
    if (!in->json)
        say_left_out(&counts);
    return say_path(in, json, path ? path : in->to, true);
}

/* The file whose change means another image: for the worker, which looks at it again and again. */
static json_t *watched(const struct image *image)
{
    char path[4096 + 16];
    snprintf(path, sizeof(path), "%.4096s%s", image->path,
             image->oci && S_ISDIR(image->stat.st_mode) ? "/index.json" : "");
    return json_string(path);
}

static int prepare_in_cache(const struct invocation *in, struct image *image, const struct image_order *order,
                            struct image_trouble *trouble)
{
    struct image_cache cache;
    struct image_prepared prepared;
    int code = image_cache_open(in->cache, in->images_max_bytes, &cache, trouble);
    if (code < 0)
        return complain(in, trouble);
    code = image_cache_prepare(&cache, image, order, &prepared, trouble);
    image_cache_close(&cache);
    end_bar(order->progress_arg);
    if (code < 0)
        return complain(in, trouble);
    json_t *json = image_about_json(&prepared.about);
    json_object_set_new(json, "watch", watched(image));
    int status = say_path(in, json, prepared.path, prepared.is_new);
    image_prepared_finish(&prepared);
    return status;
}

int image_verb_prepare(const struct invocation *in)
{
    struct image_trouble trouble = {0};
    struct image image;
    if (image_open(in->image, &image, &trouble) < 0)
        return complain(in, &trouble);
    struct bar bar = {.name = in->image,
                      .is_shown = isatty(STDERR_FILENO) && !in->json,
                      .is_exact = image.squashfs != NULL,
                      .began_ms = clock_ms()};
    const struct image_order order = {
        .limits = limits_of(in), .stop = in->stop, .progress = show_bar, .progress_arg = &bar};
    int status = in->to                    ? prepare_to(in, &image, &order, &trouble)
                 : image_is_packed(&image) ? prepare_in_cache(in, &image, &order, &trouble)
                                           : say_path(in, json_pack("{s:s}", "kind", image_kind_name(image.kind)),
                                                      image.path ? image.path : "host", false);
    image_close(&image);
    return status;
}

/* ---- list, prune ---------------------------------------------------------------------------------------- */

static void print_row(const struct image_about *about)
{
    char bytes[32], used[32];
    time_t at = (time_t)about->used_s;
    struct tm utc;
    gmtime_r(&at, &utc);
    strftime(used, sizeof(used), "%Y-%m-%d %H:%M", &utc);
    sanitize_print(stdout, "%-12.12s  %-8s  %10s  %-16s  %-4s  %s\n", about->key, about->kind,
                   format_bytes(about->bytes, bytes), used, about->is_held ? "yes" : "", about->name);
}

static json_t *row_json(const struct image_about *about)
{
    json_t *json = image_about_json(about);
    json_object_set_new(json, "used_s", json_integer(about->used_s));
    json_object_set_new(json, "held", json_boolean(about->is_held));
    return json;
}

int image_verb_list(const struct invocation *in)
{
    struct image_trouble trouble = {0};
    struct image_cache cache;
    struct image_about *items;
    size_t count;
    int code = image_cache_open(in->cache, 0, &cache, &trouble);
    if (code == 0) {
        code = image_cache_list(&cache, &items, &count, &trouble);
        image_cache_close(&cache);
    }
    if (code < 0)
        return complain(in, &trouble);
    json_t *rows = json_array();
    if (!in->json && count)
        printf("%-12s  %-8s  %10s  %-16s  %-4s  %s\n", "key", "kind", "size", "used (UTC)", "held", "image");
    for (size_t i = 0; i < count; i++) {
        if (in->json)
            json_array_append_new(rows, row_json(&items[i]));
        else
            print_row(&items[i]);
        image_about_finish(&items[i]);
    }
    free(items);
    if (in->json)
        return say_json(rows);
    json_decref(rows);
    return IMAGE_EXIT_OK;
}

int image_verb_prune(const struct invocation *in)
{
    struct image_trouble trouble = {0};
    struct image_cache cache;
    uint64_t bytes = 0;
    char text[32];
    if (image_cache_open(in->cache, 0, &cache, &trouble) < 0)
        return complain(in, &trouble);
    int64_t idle_s = in->all ? INT64_MIN : in->idle_ms == OPTION_NOT_GIVEN ? INT64_MAX : (int64_t)(in->idle_ms / 1000);
    uint64_t keep = in->images_max_bytes ? in->images_max_bytes : UINT64_MAX;
    size_t removed = image_cache_prune(&cache, idle_s, keep, &bytes);
    image_cache_close(&cache);
    if (in->json)
        return say_json(json_pack("{s:I, s:I}", "removed", (json_int_t)removed, "bytes", (json_int_t)bytes));
    printf("removed %zu images, %s\n", removed, format_bytes(bytes, text));
    return IMAGE_EXIT_OK;
}
