/* A JSON text in: it is refused, or it fills a struct that is written, read and written again with
 * the same result. */
#include "rest/field.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum color { RED, GREEN };

struct part {
    struct str name;
    uint64_t bytes;
};

struct thing {
    struct str name;
    const char *path;
    bool big;
    int count;
    enum color color;
    int64_t at_ms;
    uint64_t wait_ms;
    double factor;
    struct rest_known size;
    struct str *words;
    size_t word_count;
    struct part *parts;
    size_t part_count;
    struct part *spare;
};

static const struct rest_field part_fields[] = {
    {"name", "A name.", .required = true, REST_AT(struct part, name)},
    {"bytes", "Its size.", REST_INTEGER, .max = 99, REST_AT(struct part, bytes)},
    {0},
};

static const struct rest_field thing_fields[] = {
    {"name", "A name.", .max = 8, REST_AT(struct thing, name)},
    {"path", "A path.", .sometimes = true, REST_AT(struct thing, path)},
    {"big", "Is it big?", REST_BOOLEAN, REST_AT(struct thing, big)},
    {"count", "A count.", REST_INTEGER, REST_AT(struct thing, count)},
    {"color", "A color.", .choices = REST_CHOICES("red", "green"), REST_AT(struct thing, color)},
    {"at", "A time.", REST_TIME, REST_AT(struct thing, at_ms)},
    {"wait", "A duration.", REST_DURATION, REST_AT(struct thing, wait_ms)},
    {"factor", "A factor.", REST_NUMBER, REST_AT(struct thing, factor)},
    {"size", "A size.", REST_INTEGER, .sometimes = true, REST_AT(struct thing, size)},
    {"words", "Words.", REST_STRINGS, REST_ITEMS(struct thing, words, word_count)},
    {"parts", "Parts.", REST_OBJECTS, .members = part_fields,
     REST_ITEMS(struct thing, parts, part_count)},
    {"spare", "A part.", REST_OBJECT, .sometimes = true, .members = part_fields,
     REST_POINTER(struct thing, spare)},
    {0},
};

/* Reads the text and writes the struct. Returns whether the text was accepted. */
static bool thing_round(struct buf *out, struct str text)
{
    struct arena a = ARENA_INIT(64 * MIB);
    struct thing thing = {0};
    struct err err = {0};
    json_t *json = NULL;
    struct json_out w;
    int code = json_read(&json, text, NULL);

    if (code == 0) {
        code = rest_fields_read(&thing, thing_fields, json, &a, &err);
        BUG_ON(code < 0 && !*err.text);
    }
    if (code == 0) {
        BUG_ON(thing.name.len > 8 || thing.color > GREEN);
        json_out_init(&w, out);
        json_out_open(&w, '{');
        rest_fields_write(&w, thing_fields, &thing);
        json_out_close(&w, '}');
    }
    json_decref(json);
    arena_release(&a);
    return code == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf once = BUF_INIT(16 * MIB), twice = BUF_INIT(16 * MIB);

    if (thing_round(&once, str_n(data, size)) && !once.failed)
        BUG_ON(!thing_round(&twice, buf_str(&once)) || !str_eq(buf_str(&once), buf_str(&twice)));
    buf_release(&once);
    buf_release(&twice);
    return 0;
}
