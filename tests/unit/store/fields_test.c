/* Hashes of the store into structs. */
#include "store/fields.h"
#include "unit/test.h"

enum color { RED, GREEN, BLUE, COLORS };
static const char *const color_names[COLORS] = {"red", "green", "blue"};

struct thing {
    struct str name, again;
    bool on, far;
    int64_t balance, made_ms;
    uint64_t size;
    int priority;
    double share;
    enum color color;
    char code[4];
};

static const struct field_row rows[] = {
#define THING_FIELD(...) FIELD_ROW(struct thing, __VA_ARGS__)
    THING_FIELD("name", FIELD_TEXT, name, .required = true),
    THING_FIELD("name", FIELD_TEXT, again),
    THING_FIELD("on", FIELD_BOOL, on),
    THING_FIELD("where", FIELD_BOOL, far, .word = "far"),
    THING_FIELD("balance", FIELD_I64, balance),
    THING_FIELD("made", FIELD_TIME, made_ms),
    THING_FIELD("size", FIELD_U64, size),
    THING_FIELD("priority", FIELD_INT, priority, .max = 5),
    THING_FIELD("share", FIELD_DOUBLE, share),
    THING_FIELD("color", FIELD_WORD, color, .words = color_names, .max = COLORS),
    THING_FIELD("code", FIELD_BYTES, code, .max = 4),
#undef THING_FIELD
};
static const struct fields fields = FIELDS(rows);

/* Names and values in turn; NULL: nil. */
static struct reply hash_of(struct reply *items, const char *const *texts, size_t count)
{
    for (size_t i = 0; i < count; i++)
        items[i] = texts[i] ? (struct reply){.type = REPLY_BULK, .str = str_z(texts[i])}
                            : (struct reply){.type = REPLY_NIL};
    return (struct reply){.type = REPLY_ARRAY, .items = items, .count = count};
}

TEST(fields, each_kind_is_read_into_its_member)
{
    static const char *const texts[] = {
        "color",    "blue",
        "unknown",  "x",
        "name",     "apple",
        "on",       "1",
        "where",    "far",
        "balance",  "-7",
        "made",     "1970-01-01T00:00:01Z",
        "size",     "18446744073709551615",
        "priority", "5",
        "share",    "0.25",
        "code",     "abcd",
    };
    struct reply items[ARRAY_SIZE(texts)];
    struct reply hash = hash_of(items, texts, ARRAY_SIZE(texts));
    struct thing t = {0};
    struct err err = {0};

    CHECK_OK(fields_read(&t, &fields, &hash, NULL, &err));
    CHECK_STR(t.name, STR("apple"));
    CHECK(t.name.p == items[5].str.p);
    CHECK_STR(t.again, STR("apple"));
    CHECK(t.on && t.far);
    CHECK_INT(t.balance, -7);
    CHECK_INT(t.made_ms, 1000);
    CHECK(t.size == UINT64_MAX);
    CHECK_INT(t.priority, 5);
    CHECK(t.share == 0.25);
    CHECK_INT(t.color, BLUE);
    CHECK(memcmp(t.code, "abcd", 4) == 0);
}

TEST(fields, texts_are_copied_where_the_caller_says)
{
    static const char *const texts[] = {"name", "apple"};
    struct reply items[2];
    struct reply hash = hash_of(items, texts, 2);
    struct arena a = {0};
    struct thing t = {0};
    struct err err = {0};

    CHECK_OK(fields_read(&t, &fields, &hash, &a, &err));
    CHECK_STR(t.name, STR("apple"));
    CHECK(t.name.p != items[1].str.p);
    arena_release(&a);
}

TEST(fields, a_field_that_is_absent_leaves_its_member_unless_it_is_required)
{
    static const char *const texts[] = {"name", "apple"};
    struct reply items[2];
    struct reply hash = hash_of(items, texts, 2), none = hash_of(items, texts, 0);
    struct thing t = {.priority = 3};
    struct err err = {0};

    CHECK_OK(fields_read(&t, &fields, &hash, NULL, &err));
    CHECK_INT(t.priority, 3);
    CHECK_ERR(fields_read(&t, &fields, &none, NULL, &err), ERR_CORRUPT);
    CHECK(strstr(err.text, "'name'"));
}

TEST(fields, a_wrong_value_is_refused_with_the_fields_name)
{
    static const char *const wrong[][2] = {
        {"balance", "x"}, {"size", "-1"},    {"priority", "6"}, {"priority", "-1"}, {"share", ""},
        {"share", "1,5"}, {"color", "pink"}, {"code", "abc"},   {"made", "now"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
        const char *const texts[] = {"name", "apple", wrong[i][0], wrong[i][1]};
        struct reply items[4];
        struct reply hash = hash_of(items, texts, 4);
        struct thing t = {0};
        struct err err = {0};
        CHECK_ERR(fields_read(&t, &fields, &hash, NULL, &err), ERR_CORRUPT);
        CHECK(strstr(err.text, wrong[i][0]));
    }
}

TEST(fields, what_is_no_hash_is_refused)
{
    struct reply text = {.type = REPLY_BULK, .str = STR("x")};
    struct thing t = {0};
    struct err err = {0};

    CHECK_ERR(fields_read(&t, &fields, &text, NULL, &err), ERR_TYPE);
    CHECK_ERR(fields_read_values(&t, &fields, &text, NULL, &err), ERR_TYPE);
}

TEST(fields, values_are_read_in_the_order_of_the_table_and_asked_for_so)
{
    static const char *const texts[] = {"apple", "apple", NULL, "near", "12"};
    struct reply items[ARRAY_SIZE(texts)];
    struct reply values = hash_of(items, texts, ARRAY_SIZE(texts));
    struct arena a = {0};
    struct thing t = {.on = true};
    struct err err = {0};

    CHECK_OK(fields_read_values(&t, &fields, &values, NULL, &err));
    CHECK(t.on && !t.far);
    CHECK_INT(t.balance, 12);
    struct store_args command = fields_command(&fields, &a, STR("k"));
    CHECK_INT(command.argc, 2 + ARRAY_SIZE(rows));
    CHECK_STR(command.argv[0], STR("HMGET"));
    CHECK_STR(command.argv[1], STR("k"));
    CHECK_STR(command.argv[2 + 4], STR("balance"));
    arena_release(&a);
}
