/* Fields: JSON is checked and read into a struct, and a struct is written as JSON. */
#include "rest/field.h"
#include "unit/test.h"

enum color { RED, GREEN };

struct part {
    struct str name;
    uint64_t bytes;
};

struct thing {
    struct str name;
    const char *path;
    char short_name[8];
    bool big;
    int count;
    enum color color;
    int64_t at_ms, plain;
    uint64_t wait_ms;
    double factor;
    struct rest_known size;
    struct str *words;
    size_t word_count;
    const struct part *parts;
    size_t part_count;
    struct part whole;
    const struct part *spare;
};

static const struct rest_field part_fields[] = {
    {"name", "A name.", .required = true, REST_AT(struct part, name)},
    {"bytes", "Its size.", REST_INTEGER, .max = 99, REST_AT(struct part, bytes)},
    {0},
};

static const struct rest_field thing_fields[] = {
    {"name", "A name.", .min = 1, .max = 8, REST_AT(struct thing, name)},
    {"path", "A path.", .sometimes = true, REST_AT(struct thing, path)},
    {"big", "Is it big?", REST_BOOLEAN, REST_AT(struct thing, big)},
    {"count", "A count.", REST_INTEGER, .min = -5, .max = INT64_MAX, .usual = 3,
     REST_AT(struct thing, count)},
    {"color", "A color.", .choices = REST_CHOICES("red", "green"), REST_AT(struct thing, color)},
    {"at", "A time.", REST_TIME, REST_AT(struct thing, at_ms)},
    {"plain", "A number.", REST_INTEGER, REST_AT(struct thing, plain)},
    {"wait", "A duration.", REST_DURATION, .min = 1, .max = 3600000,
     REST_AT(struct thing, wait_ms)},
    {"factor", "A factor.", REST_NUMBER, REST_AT(struct thing, factor)},
    {"size", "A size.", REST_INTEGER, .nullable = true, REST_AT(struct thing, size)},
    {"words", "Words.", REST_STRINGS, .max = 2, REST_ITEMS(struct thing, words, word_count)},
    {"parts", "Parts.", REST_OBJECTS, .members = part_fields,
     REST_ITEMS(struct thing, parts, part_count)},
    {"whole", "A part.", REST_OBJECT, .members = part_fields, REST_INSIDE(struct thing, whole)},
    {"spare", "A part.", REST_OBJECT, .nullable = true, .members = part_fields,
     REST_POINTER(struct thing, spare)},
    {0},
};

struct reading {
    struct arena arena;
    json_t *json;
    struct thing thing;
    struct err err;
    int code;
};

static void reading_do(struct reading *r, const char *text)
{
    *r = (struct reading){.arena = ARENA_INIT(MIB)};
    CHECK_INT(json_read(&r->json, str_z(text), &r->err), 0);
    r->code = rest_fields_read(&r->thing, thing_fields, r->json, &r->arena, &r->err);
}

static void reading_end(struct reading *r)
{
    json_decref(r->json);
    arena_release(&r->arena);
}

static void check_written(const struct thing *t, const char *want)
{
    struct buf text = {0};
    struct json_out w;

    json_out_init(&w, &text);
    json_out_open(&w, '{');
    rest_fields_write(&w, thing_fields, t);
    json_out_close(&w, '}');
    CHECK_STR(buf_str(&text), str_z(want));
    buf_release(&text);
}

static const char full[] =
    "{\"name\":\"a\",\"path\":\"/b\",\"big\":true,\"count\":-5,\"color\":\"green\","
    "\"at\":\"2026-01-31T03:00:00.000Z\",\"plain\":7,\"wait\":\"1500ms\",\"factor\":0.5,"
    "\"size\":0,\"words\":[\"x\",\"y\"],\"parts\":[{\"name\":\"p\",\"bytes\":9}],"
    "\"whole\":{\"name\":\"w\",\"bytes\":0},\"spare\":{\"name\":\"s\",\"bytes\":1}}";

TEST(rest_field, a_struct_that_was_read_is_written_as_it_came)
{
    struct reading r;

    reading_do(&r, full);
    CHECK_INT(r.code, 0);
    CHECK_STR(str_z(r.thing.path), STR("/b"));
    CHECK_INT(r.thing.color, GREEN);
    CHECK_INT(r.thing.wait_ms, 1500);
    CHECK_INT(r.thing.at_ms, 1769828400000);
    CHECK(r.thing.size.known);
    CHECK_INT(r.thing.part_count, 1);
    CHECK_INT(r.thing.parts[0].bytes, 9);
    check_written(&r.thing, full);
    reading_end(&r);
}

TEST(rest_field, absent_members_stay_empty_or_become_the_usual_value)
{
    struct reading r;

    reading_do(&r, "{}");
    CHECK_INT(r.code, 0);
    CHECK_INT(r.thing.count, 3);
    CHECK(!r.thing.size.known && !r.thing.path && !r.thing.spare);
    check_written(&r.thing,
                  "{\"name\":\"\",\"big\":false,\"count\":3,\"color\":\"red\",\"at\":\"\","
                  "\"plain\":0,\"wait\":\"0s\",\"factor\":0.0,\"size\":null,\"words\":[],"
                  "\"parts\":[],\"whole\":{\"name\":\"\",\"bytes\":0},\"spare\":null}");
    reading_end(&r);
}

TEST(rest_field, what_the_fields_do_not_describe_is_refused_by_name)
{
    static const struct {
        const char *json, *message;
    } cases[] = {
        {"{\"nane\":\"a\"}", "the object takes no member \"nane\"; did you mean \"name\"?"},
        {"{\"frobnicate\":1}", "the object takes no member \"frobnicate\""},
        {"{\"big\":\"yes\"}", "big must be true or false"},
        {"{\"name\":\"123456789\"}", "name must be 1 to 8 bytes long"},
        {"{\"name\":null}", "name must be a string"},
        {"{\"count\":3000000000}", "count is too large"},
        {"{\"count\":1.5}", "count must be a whole number"},
        {"{\"color\":\"blue\"}", "color must be red or green, not 'blue'"},
        {"{\"at\":\"yesterday\"}", "at must be a time such as \"2026-01-31T03:00:00Z\""},
        {"{\"wait\":\"soon\"}", "wait must be a duration such as 500ms, 30s or 5m"},
        {"{\"wait\":\"2h\"}", "wait must be 1 to 3600000 ms"},
        {"{\"words\":[\"a\",\"b\",\"c\"]}", "words must have 0 to 2 items"},
        {"{\"words\":[\"a\\u0000\"]}", "words must not have a NUL"},
        {"{\"whole\":{\"bytes\":1}}", "whole.name is required"},
        {"{\"whole\":{\"name\":\"a\",\"bytes\":-1}}", "bytes must be 0 to 99"},
        {"{\"parts\":[{\"name\":\"a\",\"byte\":1}]}",
         "parts takes no member \"byte\"; did you mean \"bytes\"?"},
        {"{\"parts\":[\"a\"]}", "parts must be a list of objects"},
        {"{\"spare\":null}", "spare must be an object"},
        {"[]", "the object must be an object"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct reading r;
        reading_do(&r, cases[i].json);
        CHECK_INT(r.code, ERR_INVALID);
        CHECK_STR(str_z(r.err.text), str_z(cases[i].message));
        reading_end(&r);
    }
}

TEST(rest_field, texts_and_lists_without_limits_of_their_own_have_the_common_limits)
{
    struct buf text = {0};
    struct reading r;

    buf_append_z(&text, "{\"path\":\"");
    for (int i = 0; i <= REST_TEXT_MAX; i++)
        buf_append_z(&text, "a");
    buf_append_z(&text, "\"}");
    reading_do(&r, text.p);
    CHECK_STR(str_z(r.err.text), STR("path must be 0 to 4096 bytes long"));
    reading_end(&r);
    buf_reset(&text);
    buf_append_z(&text, "{\"parts\":[");
    for (int i = 0; i <= REST_ITEMS_MAX; i++)
        buf_append_z(&text, i ? ",1" : "1");
    buf_append_z(&text, "]}");
    reading_do(&r, text.p);
    CHECK_STR(str_z(r.err.text), STR("parts must have 0 to 10000 items"));
    reading_end(&r);
    buf_release(&text);
}
