/* The front of the store: key parts, digests, reply helpers. */
#include "store/store_int.h"
#include "unit/test.h"

static void check_key_part(struct str part, struct str want)
{
    struct buf escaped = {0}, back = {0};

    store_key_part(&escaped, part);
    CHECK_STR(buf_str(&escaped), want);
    CHECK_INT(store_key_unescape(&back, buf_str(&escaped)), 0);
    CHECK_STR(buf_str(&back), part);
    buf_release(&escaped);
    buf_release(&back);
}

TEST(store_front, key_parts_escape_only_the_separator_and_the_escape)
{
    check_key_part(STR("plain/name.txt"), STR("plain/name.txt"));
    check_key_part(STR("a:b%c"), STR("a%3Ab%25c"));
    check_key_part(STR("%3A"), STR("%253A"));
    check_key_part(STR("\0\xff"), STR("\0\xff"));
    check_key_part(STR(""), STR(""));
}

TEST(store_front, key_parts_that_were_never_written_are_refused)
{
    struct buf out = {0};

    CHECK_ERR(store_key_unescape(&out, STR("a:b")), ERR_PARSE);
    CHECK_ERR(store_key_unescape(&out, STR("a%")), ERR_PARSE);
    CHECK_ERR(store_key_unescape(&out, STR("a%2")), ERR_PARSE);
    CHECK_ERR(store_key_unescape(&out, STR("a%3a")), ERR_PARSE);
    buf_release(&out);
}

TEST(store_front, a_script_is_known_by_the_sha1_of_its_source)
{
    struct script script = {.name = "test/one", .source = STR("return 1")};

    script_init(&script);
    CHECK_STR(str_z(script.sha1), STR("e0e1f9fabfc9d4800c877a703b823ac0578ff8db"));
}

TEST(store_front, replies_print_on_one_line)
{
    struct reply items[] = {
        {.type = REPLY_INTEGER, .integer = -7},
        {.type = REPLY_BULK, .str = STR("a\"\\\n")},
        {.type = REPLY_NIL},
        {.type = REPLY_ARRAY},
        {.type = REPLY_STATUS, .str = STR("OK")},
        {.type = REPLY_ERROR, .str = STR("ERR no")},
    };
    struct reply all = {.type = REPLY_ARRAY, .items = items, .count = ARRAY_SIZE(items)};
    struct buf out = {0};

    reply_print(&out, &all);
    CHECK_STR(buf_str(&out), STR("[-7, \"a\\\"\\\\\\x0a\", nil, [], OK, (error) ERR no]"));
    buf_release(&out);
}

TEST(store_front, an_unexpected_reply_is_a_typed_error)
{
    struct reply wrong = {.type = REPLY_ERROR, .str = STR("WRONGTYPE Operation against a key")};
    struct reply error = {.type = REPLY_ERROR, .str = STR("ERR value is not an integer")};
    struct reply number = {.type = REPLY_INTEGER};
    struct err err = {0};

    CHECK(reply_is_error(&wrong, "WRONGTYPE"));
    CHECK(!reply_is_error(&wrong, "WRONG"));
    CHECK(!reply_is_error(&number, "ERR"));
    CHECK_OK(reply_expect(&number, REPLY_INTEGER, &err));
    CHECK_ERR(reply_expect(&wrong, REPLY_BULK, &err), ERR_TYPE);
    CHECK_ERR(reply_expect(&error, REPLY_BULK, &err), ERR_INVALID);
    CHECK_STR(str_z(err.text), STR("ERR value is not an integer"));
    CHECK_ERR(reply_expect(&number, REPLY_BULK, &err), ERR_TYPE);
    CHECK_STR(str_z(err.text), STR("the store answered an integer, not a string"));
}

TEST(store_front, a_batch_of_nothing_answers_an_empty_array)
{
    static const struct store_engine none = {.name = "none"};
    struct store store = {.engine = &none};
    struct arena arena = {0};
    struct reply *reply;
    struct err err = {0};

    CHECK_OK(store_atomic(&store, &arena, &reply, NULL, 0, &err));
    CHECK_INT(reply->type, REPLY_ARRAY);
    CHECK_INT(reply->count, 0);
    CHECK_ERR(store_command(&store, &arena, &reply, NULL, 0, &err), ERR_INVALID);
    CHECK_ERR(store_pipeline(&store, &arena, &reply, (struct store_args[]){{0}}, 1, &err),
              ERR_INVALID);
    arena_release(&arena);
}
