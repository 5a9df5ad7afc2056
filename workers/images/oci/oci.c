#include "workers/images/oci/oci.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "workers/images/oci/layer.h"
#include "workers/images/rootfs/sif.h"

enum { LAYERS_MAX = 1024, INDEX_DEPTH_MAX = 4, NAMES_SHOWN = 300 };

#define TAG_ANNOTATION "org.opencontainers.image.ref.name"

struct layer {
    struct oci_descriptor packed;
    char diff_id[DIGEST_SIZE];
};

struct oci {
    struct oci_layout *layout;
    struct oci_descriptor manifest;
    struct layer *layers;
    size_t layer_count;
    json_t *config; /* {"config": what the config has there} */
};

static const char *const index_types[] = {"application/vnd.oci.image.index.v1+json",
                                          "application/vnd.docker.distribution.manifest.list.v2+json", NULL};
static const char *const manifest_types[] = {"application/vnd.oci.image.manifest.v1+json",
                                             "application/vnd.docker.distribution.manifest.v2+json", NULL};
static const char *const config_types[] = {"application/vnd.oci.image.config.v1+json",
                                           "application/vnd.docker.container.image.v1+json", NULL};
static const char *const layer_types[] = {"application/vnd.oci.image.layer.v1.tar",
                                          "application/vnd.oci.image.layer.v1.tar+gzip",
                                          "application/vnd.oci.image.layer.v1.tar+zstd",
                                          "application/vnd.oci.image.layer.nondistributable.v1.tar",
                                          "application/vnd.oci.image.layer.nondistributable.v1.tar+gzip",
                                          "application/vnd.oci.image.layer.nondistributable.v1.tar+zstd",
                                          "application/vnd.docker.image.rootfs.diff.tar",
                                          "application/vnd.docker.image.rootfs.diff.tar.gzip",
                                          "application/vnd.docker.image.rootfs.diff.tar.zstd",
                                          "application/vnd.docker.image.rootfs.foreign.diff.tar.gzip",
                                          NULL};

static void drop_json(json_t **json) { json_decref(*json); }
#define AUTO_JSON __attribute__((cleanup(drop_json))) json_t

static bool is_among(const char *text, const char *const *words)
{
    for (; *words; words++)
        if (strcmp(text, *words) == 0)
            return true;
    return false;
}

static const char *text_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text ? text : "";
}

static int refuse_document(struct image_trouble *trouble, const char *what)
{
    return image_refuse(trouble, IMAGE_REFUSAL_OCI_DOCUMENT, "the OCI layout's %s", what);
}

/* ---- documents ------------------------------------------------------------------------------------------ */

static json_t *parse(const struct buffer *text, const char *what, struct image_trouble *trouble)
{
    json_t *json = json_loadb((const char *)text->data, text->len, JSON_REJECT_DUPLICATES, NULL);
    if (json_is_object(json))
        return json;
    json_decref(json);
    image_refuse(trouble, IMAGE_REFUSAL_OCI_DOCUMENT, "the OCI layout's %s is not a JSON object", what);
    return NULL;
}

static json_t *refuse_file(const char *name, int code, struct image_trouble *trouble)
{
    image_refuse(trouble, IMAGE_REFUSAL_OCI_LAYOUT, "cannot read the OCI layout's %s: %s", name, strerror(-code));
    return NULL;
}

/* All of it, or a little more than a document may be. 0 or negative errno. */
static int read_part(const struct oci_part *part, struct buffer *text)
{
    enum { CHUNK = 65536 };
    ssize_t got = 1;
    while (got > 0 && text->len <= OCI_DOCUMENT_MAX) {
        uint8_t *room = buffer_reserve(text, CHUNK);
        got = room ? oci_part_read(part, text->len, room, CHUNK) : -ENOMEM;
        text->len += got > 0 ? (size_t)got : 0;
    }
    return got < 0 ? (int)got : 0;
}

static json_t *read_file(const struct oci *oci, const char *name, struct image_trouble *trouble)
{
    AUTO_BUFFER text = {0};
    struct oci_part part = {.file = -1};
    int code = oci_layout_find(oci->layout, name, &part);
    if (code == 0)
        code = read_part(&part, &text);
    cleanup_close(&part.file);
    if (code < 0)
        return refuse_file(name, code, trouble);
    if (text.len > OCI_DOCUMENT_MAX) {
        refuse_document(trouble, "index is longer than a document may be");
        return NULL;
    }
    return parse(&text, name, trouble);
}

static json_t *read_blob(const struct oci *oci, const struct oci_descriptor *descriptor, const char *what,
                         struct image_trouble *trouble)
{
    AUTO_BUFFER text = {0};
    if (oci_blob_read_whole(oci->layout, descriptor, &text, trouble) < 0)
        return NULL;
    return parse(&text, what, trouble);
}

static int read_descriptor(const json_t *json, struct oci_descriptor *ret, struct image_trouble *trouble)
{
    const char *digest = text_of(json, "digest"), *type = text_of(json, "mediaType");
    json_int_t size = json_integer_value(json_object_get(json, "size"));
    if (strncmp(digest, "sha256:", 7) != 0)
        return image_refuse(trouble, IMAGE_REFUSAL_OCI_DOCUMENT,
                            "the OCI layout names a blob by another digest than sha256: %.80s", digest);
    if (!digest_is_valid(digest) || size < 0 || !json_is_integer(json_object_get(json, "size")))
        return refuse_document(trouble, "descriptor has no valid digest and size");
    *ret = (struct oci_descriptor){.size = (uint64_t)size};
    snprintf(ret->digest, sizeof(ret->digest), "%s", digest);
    snprintf(ret->type, sizeof(ret->type), "%s", type);
    return 0;
}

/* ---- which image ------------------------------------------------------------------------------------------ */

/* Those that do not say are for everybody; attestations are for "unknown". */
static bool is_for_us(const json_t *descriptor)
{
    const json_t *platform = json_object_get(descriptor, "platform");
    return !json_is_object(platform) || (strcmp(text_of(platform, "os"), "linux") == 0 &&
                                         strcmp(text_of(platform, "architecture"), image_architecture()) == 0);
}

static bool is_image(const json_t *descriptor)
{
    const char *type = text_of(descriptor, "mediaType");
    return is_among(type, manifest_types) || is_among(type, index_types);
}

static const char *tag_of(const json_t *descriptor)
{
    return text_of(json_object_get(descriptor, "annotations"), TAG_ANNOTATION);
}

static int refuse_choice(const json_t *manifests, const char *tag, size_t fitting, struct image_trouble *trouble)
{
    char names[NAMES_SHOWN] = "";
    size_t i, len = 0;
    const json_t *one;
    json_array_foreach(manifests, i, one)
    {
        const char *name = tag_of(one);
        if (*name && len + strlen(name) + 3 < sizeof(names))
            len += (size_t)snprintf(names + len, sizeof(names) - len, "%s%s", len ? ", " : "", name);
    }
    if (tag)
        return image_refuse(trouble, IMAGE_REFUSAL_OCI_CHOICE, "the OCI layout holds no image \"%.64s\"; it holds: %s",
                            tag, names);
    if (fitting > 1)
        return image_refuse(trouble, IMAGE_REFUSAL_OCI_CHOICE,
                            "the OCI layout holds %zu images: say which, as DIR:NAME, of: %s", fitting, names);
    return image_refuse(trouble, IMAGE_REFUSAL_ARCHITECTURE, "the OCI layout holds no image for linux/%s",
                        image_architecture());
}

/* Of an index of indexes the first that fits; of the layout's own there may be one only. */
static const json_t *choose(const json_t *index, const char *tag, bool is_outermost, struct image_trouble *trouble)
{
    const json_t *manifests = json_object_get(index, "manifests"), *one, *found = NULL;
    size_t i, fitting = 0;
    json_array_foreach(manifests, i, one)
    {
        bool is_named = !tag || strcmp(tag_of(one), tag) == 0;
        bool is_other = !found || strcmp(text_of(one, "digest"), text_of(found, "digest")) != 0;
        if (!is_named || !is_image(one) || !is_for_us(one) || !is_other)
            continue;
        fitting++;
        found = found ? found : one;
    }
    if (fitting == 1 || (fitting > 1 && !is_outermost))
        return found;
    refuse_choice(manifests, tag, fitting, trouble);
    return NULL;
}

static int find_manifest(struct oci *oci, const char *tag, struct image_trouble *trouble)
{
    AUTO_JSON *index = read_file(oci, "index.json", trouble);
    for (int depth = 0; index && depth < INDEX_DEPTH_MAX; depth++) {
        const json_t *chosen = choose(index, depth ? NULL : tag, depth == 0, trouble);
        int code = chosen ? read_descriptor(chosen, &oci->manifest, trouble) : trouble->fail.code;
        if (code < 0 || is_among(oci->manifest.type, manifest_types))
            return code;
        json_t *inner = read_blob(oci, &oci->manifest, "index", trouble);
        json_decref(index);
        index = inner;
    }
    return index ? refuse_document(trouble, "indexes lead to indexes and no manifest") : trouble->fail.code;
}

/* ---- the image ------------------------------------------------------------------------------------------------ */

static int read_diff_ids(struct oci *oci, const json_t *ids, struct image_trouble *trouble)
{
    if (json_array_size(ids) != oci->layer_count)
        return refuse_document(trouble, "config lists other layers than its manifest");
    for (size_t i = 0; i < oci->layer_count; i++) {
        const char *id = json_string_value(json_array_get(ids, i));
        if (!id || !digest_is_valid(id))
            return refuse_document(trouble, "config names a layer by something other than a sha256 digest");
        snprintf(oci->layers[i].diff_id, DIGEST_SIZE, "%s", id);
    }
    return 0;
}

static int check_config(struct oci *oci, const json_t *manifest, struct image_trouble *trouble)
{
    struct oci_descriptor descriptor;
    int code = read_descriptor(json_object_get(manifest, "config"), &descriptor, trouble);
    if (code < 0)
        return code;
    if (!is_among(descriptor.type, config_types))
        return image_refuse(trouble, IMAGE_REFUSAL_OCI_DOCUMENT,
                            "the OCI layout holds no image but an artifact: %.120s", descriptor.type);
    AUTO_JSON *config = read_blob(oci, &descriptor, "config", trouble);
    if (!config)
        return trouble->fail.code;
    const char *architecture = text_of(config, "architecture"), *os = text_of(config, "os");
    if (strcmp(os, "linux") != 0 || strcmp(architecture, image_architecture()) != 0)
        return image_refuse(trouble, IMAGE_REFUSAL_ARCHITECTURE, "the image is for %.32s/%.32s, this node is linux/%s",
                            os, architecture, image_architecture());
    oci->config = json_pack("{s:O?}", "config", json_object_get(config, "config"));
    if (!oci->config)
        return image_fail(trouble, -ENOMEM, "out of memory");
    return read_diff_ids(oci, json_object_get(json_object_get(config, "rootfs"), "diff_ids"), trouble);
}

static int read_layer(struct oci *oci, const json_t *json, struct image_trouble *trouble)
{
    struct oci_descriptor *layer = &oci->layers[oci->layer_count].packed;
    int code = read_descriptor(json, layer, trouble);
    if (code < 0)
        return code;
    if (strstr(layer->type, "+encrypted"))
        return image_refuse(trouble, IMAGE_REFUSAL_ENCRYPTED, "a layer of the image is encrypted");
    if (!is_among(layer->type, layer_types))
        return image_refuse(trouble, IMAGE_REFUSAL_COMPRESSION, "a layer of the image is of an unknown type: %.120s",
                            layer->type);
    struct oci_blob *blob = oci_blob_open(oci->layout, layer, trouble); /* it is there, so long */
    code = blob ? 0 : trouble->fail.code;
    oci_blob_close(&blob);
    oci->layer_count++;
    return code;
}

static int read_manifest(struct oci *oci, struct image_trouble *trouble)
{
    AUTO_JSON *manifest = read_blob(oci, &oci->manifest, "manifest", trouble);
    if (!manifest)
        return trouble->fail.code;
    const json_t *layers = json_object_get(manifest, "layers"), *one;
    size_t i, count = json_array_size(layers);
    if (json_integer_value(json_object_get(manifest, "schemaVersion")) != 2 || count < 1 || count > LAYERS_MAX)
        return refuse_document(trouble, "manifest is not of schema 2, or has no layers");
    oci->layers = calloc(count, sizeof(*oci->layers));
    int code = oci->layers ? 0 : image_fail(trouble, -ENOMEM, "out of memory");
    json_array_foreach(layers, i, one) code = code < 0 ? code : read_layer(oci, one, trouble);
    return code < 0 ? code : check_config(oci, manifest, trouble);
}

static int check_layout(const struct oci *oci, struct image_trouble *trouble)
{
    AUTO_JSON *layout = read_file(oci, "oci-layout", trouble);
    if (!layout)
        return trouble->fail.code;
    const char *version = text_of(layout, "imageLayoutVersion");
    return strcmp(version, "1.0.0") == 0 ? 0
                                         : image_refuse(trouble, IMAGE_REFUSAL_OCI_LAYOUT,
                                                        "an OCI layout of version \"%.16s\", not 1.0.0", version);
}

struct oci *oci_open(int file, const char *tag, struct image_trouble *trouble)
{
    struct oci *oci = calloc(1, sizeof(*oci));
    if (!oci) {
        image_fail(trouble, -ENOMEM, "out of memory");
        return NULL;
    }
    oci->layout = oci_layout_open(file, trouble);
    int code = oci->layout ? check_layout(oci, trouble) : trouble->fail.code;
    if (code == 0)
        code = find_manifest(oci, tag, trouble);
    if (code == 0)
        code = read_manifest(oci, trouble);
    if (code < 0)
        oci_close(&oci);
    return oci;
}

void oci_close(struct oci **oci)
{
    struct oci *gone = take_ptr(oci);
    if (!gone)
        return;
    oci_layout_close(&gone->layout);
    json_decref(gone->config);
    free(gone->layers);
    free(gone);
}

const char *oci_digest(const struct oci *oci) { return oci->manifest.digest; }

const json_t *oci_config(const struct oci *oci) { return oci->config; }

size_t oci_layer_count(const struct oci *oci) { return oci->layer_count; }

uint64_t oci_size(const struct oci *oci)
{
    uint64_t size = 0;
    for (size_t i = 0; i < oci->layer_count; i++)
        size += oci->layers[i].packed.size; /* each a file's, so the sum is far from wrapping */
    return size;
}

static int unpack_layer(const struct oci *oci, const struct layer *layer, struct rootfs *rootfs)
{
    struct oci_blob *blob = oci_blob_open(oci->layout, &layer->packed, rootfs->trouble);
    struct oci_unpacked *unpacked = blob ? oci_unpacked_open(blob, layer->diff_id, rootfs) : NULL;
    int code = unpacked ? oci_layer_apply(unpacked, rootfs) : rootfs->trouble->fail.code;
    oci_unpacked_close(&unpacked);
    oci_blob_close(&blob);
    return code;
}

int oci_unpack(struct oci *oci, struct rootfs *rootfs)
{
    int code = 0;
    for (size_t i = 0; i < oci->layer_count && code == 0; i++)
        code = unpack_layer(oci, &oci->layers[i], rootfs);
    return code < 0 ? code : rootfs_complete(rootfs);
}
