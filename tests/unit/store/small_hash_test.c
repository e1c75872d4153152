/* Hashes that lie in their owner row, and how they get rows (docs/store.md 11). */
#include "unit/store/embedded_test.h"

#include <stdatomic.h>
#include <stdio.h>

enum { PAIR_BYTES = 4 }; /* what a pair takes beside field and value */

static void set_fields(struct store *s, int from, int to)
{
    char line[64];

    for (int i = from; i < to; i++) {
        snprintf(line, sizeof(line), "HSET h f%d %d", i, i);
        check_reply(s, line, "1");
    }
}

/* HSET h FIELD with a value of this length. */
static void set_length(struct store *s, const char *field, size_t length)
{
    char value[2 * SMALL_BYTES];
    struct arena arena = {0};
    struct reply *reply;
    struct err err = {0};

    memset(value, 'v', sizeof(value));
    CHECK_OK(store_call(s, &arena, &reply, &err, STR("HSET"), STR("h"), str_z(field),
                        str_n(value, length)));
    CHECK_INT(reply->type, REPLY_INTEGER);
    arena_release(&arena);
}

TEST(small_hash, is_one_row_up_to_the_bound_of_fields_and_then_has_one_for_each)
{
    struct fixture f = {0};

    fixture_open(&f);
    set_fields(f.s, 0, SMALL_FIELDS);
    CHECK_INT(fixture_check(&f).rows, 1);
    check_reply(f.s, "HSET h f3 again", "0");
    check_reply(f.s, "HDEL h f4 none", "1");
    check_reply(f.s, "HSET h f4 back", "1");
    CHECK_INT(fixture_check(&f).rows, 1);
    check_reply(f.s, "HSET h f32 32", "1");
    CHECK_INT(fixture_check(&f).rows, 1 + SMALL_FIELDS + 1);
    check_reply(f.s, "HLEN h", "33");
    check_reply(f.s, "HMGET h f0 f3 f4 f31 f32 none",
                "[\"0\", \"again\", \"back\", \"31\", \"32\", nil]");
    fixture_restart(&f);
    check_reply(f.s, "HMGET h f0 f3 f4 f31 f32", "[\"0\", \"again\", \"back\", \"31\", \"32\"]");
    fixture_close(&f);
}

TEST(small_hash, is_one_row_up_to_the_bound_of_bytes_and_then_has_one_for_each)
{
    struct fixture f = {0};
    const size_t most = SMALL_BYTES - PAIR_BYTES - 1;

    fixture_open(&f);
    set_length(f.s, "f", most);
    CHECK_INT(fixture_check(&f).rows, 1);
    set_length(f.s, "f", most + 1);
    CHECK_INT(fixture_check(&f).rows, 2);
    check_reply(f.s, "DEL h", "1");
    set_length(f.s, "f", most - PAIR_BYTES - 2);
    check_reply(f.s, "HSET h g 1", "1");
    check_reply(f.s, "HINCRBY h g 8", "9");
    CHECK_INT(fixture_check(&f).rows, 1);
    check_reply(f.s, "HINCRBY h g 1", "10");
    CHECK_INT(fixture_check(&f).rows, 3);
    check_reply(f.s, "HSTRLEN h f", "1013");
    check_reply(f.s, "HGET h g", "\"10\"");
    check_reply(f.s, "DEL h", "1");
    set_length(f.s, "f", most);
    check_reply(f.s, "HSETNX h f x", "0");
    CHECK_INT(fixture_check(&f).rows, 1);
    check_reply(f.s, "HSETNX h g 1", "1");
    CHECK_INT(fixture_check(&f).rows, 3);
    check_reply(f.s, "HSTRLEN h f", "1019");
    fixture_close(&f);
}

TEST(small_hash, never_comes_back_from_rows_until_it_is_gone)
{
    struct fixture f = {0};

    fixture_open(&f);
    set_length(f.s, "long", 2000);
    check_reply(f.s, "HSET h f v", "1");
    check_reply(f.s, "HDEL h long", "1");
    CHECK_INT(fixture_check(&f).rows, 2);
    check_reply(f.s, "HDEL h f", "1");
    fixture_check_empty(&f);
    check_reply(f.s, "HSET h f v g w", "2");
    CHECK_INT(fixture_check(&f).rows, 1);
    check_reply(f.s, "HDEL h f g", "2");
    fixture_check_empty(&f);
    fixture_close(&f);
}

TEST(small_hash, keeps_its_fields_in_the_order_in_which_they_came)
{
    struct fixture f = {0};

    fixture_open(&f);
    check_reply(f.s, "HSET h z 1 a 2 m 3 z 4", "3");
    check_reply(f.s, "HSET h a longer", "0");
    check_reply(f.s, "HGETALL h", "[\"z\", \"4\", \"a\", \"longer\", \"m\", \"3\"]");
    check_reply(f.s, "HDEL h z", "1");
    check_reply(f.s, "HSET h z 5", "1");
    check_reply(f.s, "HKEYS h", "[\"a\", \"m\", \"z\"]");
    fixture_close(&f);
}

TEST(small_hash, has_one_expiry_row_and_keeps_it_when_it_gets_rows)
{
    struct fixture f = {0};

    fixture_open(&f);
    check_reply(f.s, "HSET h f v", "1");
    check_reply(f.s, "PEXPIREAT h 99999999999999", "1");
    CHECK_INT(fixture_check(&f).rows, 2);
    check_reply(f.s, "HSET h f w", "0");
    check_reply(f.s, "PEXPIRETIME h", "99999999999999");
    set_length(f.s, "long", 2000);
    check_reply(f.s, "PEXPIRETIME h", "99999999999999");
    CHECK_INT(fixture_check(&f).expiry, 1);
    check_reply(f.s, "DEL h", "1");
    check_reply(f.s, "HSET h f v", "1");
    check_reply(f.s, "PEXPIRE h 600000", "1");
    embedded_shift_clock(f.s, 700000);
    check_reply(f.s, "HGET h f", "nil");
    check_reply(f.s, "HGETALL h", "[]");
    embedded_collect(f.s);
    fixture_check_empty(&f);
    fixture_close(&f);
}

TEST(small_hash, moves_with_its_key_and_over_any_other)
{
    struct fixture f = {0};

    fixture_open(&f);
    check_reply(f.s, "HSET small f v", "1");
    check_reply(f.s, "PEXPIRE small 600000", "1");
    set_length(f.s, "long", 2000);
    check_reply(f.s, "RENAME small h", "OK");
    check_reply(f.s, "HGETALL h", "[\"f\", \"v\"]");
    CHECK_INT(fixture_check(&f).rows, 2);
    check_reply(f.s, "RENAMENX h small", "1");
    check_reply(f.s, "RENAME small small", "OK");
    check_script(f.s,
                 "redis.call('HSET', 'small', 'g', 'w') redis.call('RENAME', 'small', 'h') "
                 "return redis.call('HMGET', 'h', 'f', 'g')",
                 "[\"v\", \"w\"]");
    check_reply(f.s, "PERSIST h", "1");
    CHECK_INT(fixture_check(&f).rows, 1);
    fixture_close(&f);
}

TEST(small_hash, is_flushed_with_the_others)
{
    struct fixture f = {0};

    fixture_open(&f);
    check_reply(f.s, "HSET small f v", "1");
    check_reply(f.s, "EXPIRE small 1000", "1");
    set_fields(f.s, 0, 100);
    check_reply(f.s, "FLUSHDB", "OK");
    embedded_collect(f.s);
    fixture_check_empty(&f);
    fixture_close(&f);
}

TEST(small_hash, is_one_page_of_a_scan_also_one_that_began_when_it_had_rows)
{
    struct fixture f = {0};
    const char *all = "[\"0\", [\"a\", \"1\", \"b\", \"2\", \"c\", \"3\"]]";

    fixture_open(&f);
    check_reply(f.s, "HSET h a 1 b 2 c 3", "3");
    check_reply(f.s, "HSCAN h 0 COUNT 1", all);
    check_reply(f.s, "HSCAN h 18446744073709551615 COUNT 1", all);
    check_reply(f.s, "HSCAN h 0 COUNT 1 MATCH [bc]", "[\"0\", [\"b\", \"2\", \"c\", \"3\"]]");
    fixture_close(&f);
}

/* --- scripts --- */

TEST(small_hash, is_what_a_script_left_it_however_many_it_meets)
{
    struct fixture f = {0};

    fixture_open(&f);
    check_script(f.s,
                 "for round = 1, 3 do for i = 1, 100 do "
                 "redis.call('HSET', 'h' .. i, 'f' .. round, i, 'n', round) end end "
                 "redis.call('DEL', 'h7') redis.call('HDEL', 'h8', 'f1', 'f2', 'f3', 'n') "
                 "redis.call('SET', 'h9', 'string') redis.call('EXPIRE', 'h10', 100) "
                 "local sum, keys = 0, 0 for i = 1, 100 do "
                 "if redis.call('TYPE', 'h' .. i).ok == 'hash' then keys = keys + 1 "
                 "for _, v in ipairs(redis.call('HMGET', 'h' .. i, 'f1', 'f2', 'f3')) do "
                 "sum = sum + v end end end return {keys, sum, redis.call('HLEN', 'h10')}",
                 "[97, 15078, 4]");
    fixture_check(&f);
    check_reply(f.s, "HGETALL h100",
                "[\"f1\", \"100\", \"n\", \"3\", \"f2\", \"100\", \"f3\", \"100\"]");
    fixture_close(&f);
}

TEST(small_hash, gets_rows_in_the_middle_of_a_script)
{
    struct fixture f = {0};

    fixture_open(&f);
    check_script(f.s,
                 "local seen = 0 for i = 1, 60 do redis.call('HSET', 'h', 'f' .. i, i) "
                 "seen = seen + redis.call('HLEN', 'h') + redis.call('HGET', 'h', 'f1') end "
                 "redis.call('HDEL', 'h', 'f1') redis.call('RENAME', 'h', 'g') "
                 "return {seen, redis.call('EXISTS', 'h'), redis.call('HLEN', 'g')}",
                 "[1890, 0, 59]");
    CHECK_INT(fixture_check(&f).rows, 60);
    fixture_close(&f);
}

/* --- rows from before, and damaged ones --- */

static void put_row(struct fixture *f, struct str key, struct str value)
{
    struct err err = {0};
    CHECK_OK(db_put(f->db, db_cf(f->db, "store0"), key, value, DB_DURABLE, &err));
}

static void get_setting(struct fixture *f, const char *name, struct buf *out)
{
    struct err err = {0};
    CHECK_OK(db_get(db_latest(f->db), db_cf(f->db, "store0"), str_z(name), out, &err));
}

static uint64_t seed_of(struct fixture *f)
{
    struct buf seed = {0};
    uint64_t n;

    get_setting(f, "cseed", &seed);
    CHECK_INT(seed.len, sizeof(n));
    memcpy(&n, seed.p, sizeof(n));
    buf_release(&seed);
    return n;
}

static void put_meta(struct fixture *f, const char *key, struct str value)
{
    struct row row;
    row_meta(&row, NULL, hash_xxh3(str_z(key), seed_of(f)), str_z(key));
    put_row(f, row.key, value);
}

static void put_field(struct fixture *f, uint64_t version, const char *field, const char *value)
{
    struct row row;
    row_hashed(&row, NULL, ROW_FIELD, version, hash_xxh3(str_z(field), seed_of(f)), str_z(field));
    put_row(f, row.key, str_z(value));
}

TEST(small_hash, a_store_from_before_keeps_its_rows_and_is_of_the_new_format)
{
    struct fixture f = {0};
    struct buf format = {0};
    struct meta m = {.type = TYPE_HASH, .version = 7, .count = 2};
    char head[META_MAX];

    fixture_open(&f);
    put_row(&f, STR("cformat"), STR("\x01"));
    put_row(&f, STR("cversion"), STR("\0\0\0\0\0\0\0\x08"));
    put_meta(&f, "h", str_n(head, meta_encode(&m, head)));
    put_field(&f, 7, "a", "1");
    put_field(&f, 7, "b", "2");
    fixture_restart(&f);
    get_setting(&f, "cformat", &format);
    CHECK_STR(buf_str(&format), STR("\x02"));
    buf_release(&format);
    check_reply(f.s, "HMGET h a b c", "[\"1\", \"2\", nil]");
    check_reply(f.s, "HSET h a 3 c 4", "1");
    check_reply(f.s, "HINCRBY h b 5", "7");
    CHECK_INT(fixture_check(&f).rows, 4);
    check_reply(f.s, "HSET new a 1", "1");
    CHECK_INT(fixture_check(&f).rows, 5);
    check_reply(f.s, "HDEL h a b c", "3");
    CHECK_INT(fixture_check(&f).rows, 1);
    fixture_close(&f);
}

TEST(small_hash, a_damaged_row_is_an_error_and_never_read_past_its_end)
{
    /* type, flags, then pairs */
    static const struct str rows[] = {
        STR("\x05\x02"),          /* none */
        STR("\x05\x02\0\1\0"),    /* half a head */
        STR("\x05\x02\0\1\0\1f"), /* a value too short */
        STR("\x05\x02\xff\xff\xff\xff"
            "fv"),                                       /* lengths far too large */
        STR("\x05\x02\0\1\0\1fvx"),                      /* something behind */
        STR("\x05\x02\0\1\0\1fv\0\1\0\2gw"),             /* the second too short */
        STR("\x05\x03\0\0\0\0\0\0\0"),                   /* half a time */
        STR("\x04\x02\0\1\0\1fv"),                       /* a small sorted set */
        STR("\x05\x04\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\1"), /* an unknown flag */
    };
    struct fixture f = {0};

    fixture_open(&f);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        put_meta(&f, "h", rows[i]);
        check_code(f.s, "HGET h f", ERR_CORRUPT);
        check_code(f.s, "HSET h f v", ERR_CORRUPT);
        check_code(f.s, "HGETALL h", ERR_CORRUPT);
        check_code(f.s, "DEL h", ERR_CORRUPT);
        check_code(f.s, "KEYS *", ERR_CORRUPT);
    }
    put_meta(&f, "h", STR("\x05\x02\0\1\0\1fv\0\0\0\0"));
    check_reply(f.s, "HGETALL h", "[\"f\", \"v\", \"\", \"\"]");
    fixture_close(&f);
}

TEST(small_hash, a_row_past_the_bounds_is_damaged)
{
    struct fixture f = {0};
    struct buf value = {0};

    fixture_open(&f);
    buf_append(&value, "\x05\x02", 2);
    for (int i = 0; i <= SMALL_FIELDS; i++)
        buf_appendf(&value, "%c%c%c%c%02d", 0, 2, 0, 0, i);
    put_meta(&f, "h", buf_str(&value));
    check_code(f.s, "HLEN h", ERR_CORRUPT);
    put_meta(&f, "h", str_head(buf_str(&value), value.len - 6));
    check_reply(f.s, "HLEN h", "32");
    buf_reset(&value);
    buf_append(&value, "\x05\x02\0\1\x04\0", 6);
    for (int i = 0; i <= 1024; i++)
        buf_append_char(&value, 'f');
    put_meta(&f, "h", buf_str(&value));
    check_code(f.s, "HLEN h", ERR_CORRUPT);
    buf_release(&value);
    fixture_close(&f);
}

/* --- races --- */

enum { GENERATIONS = 150, GROWN = 40, READERS = 3 };

struct reader {
    struct thread thread;
    struct store *s;
    _Atomic(bool) *stop;
    int wrong;
};

static struct reply *call_words(struct store *s, struct arena *arena, const char *line)
{
    struct str words[8], rest = str_z(line);
    struct reply *reply;
    struct err err = {0};
    size_t count = 0;

    while (str_token(&rest, " ", &words[count]))
        count++;
    CHECK_OK(store_command(s, arena, &reply, words, count, &err));
    return reply;
}

/* Fields f0 to f(n-1), in any order, all of one generation. */
static bool is_a_state(const struct reply *all)
{
    bool seen[GROWN] = {0};
    uint64_t n;

    for (size_t i = 0; i < all->count; i += 2) {
        if (str_u64(str_skip(all->items[i].str, 1), &n) < 0 || n >= all->count / 2 || seen[n] ||
            !str_eq(all->items[i + 1].str, all->items[1].str))
            return false;
        seen[n] = true;
    }
    return all->count >= 2;
}

/* f0 is there in every state, and fields come in their order; f0 never goes back. */
static bool is_part_of_a_state(const struct reply *some, uint64_t *last)
{
    const struct reply *first = &some->items[0], *middle = &some->items[1], *end = &some->items[2];
    uint64_t generation;

    if (first->type != REPLY_BULK || str_u64(first->str, &generation) < 0 || generation < *last)
        return false;
    *last = generation;
    if (middle->type == REPLY_NIL)
        return end->type == REPLY_NIL;
    return str_eq(middle->str, first->str) &&
           (end->type == REPLY_NIL || str_eq(end->str, first->str));
}

static void read_states(void *ctx)
{
    struct reader *r = ctx;
    struct arena arena = {0};
    uint64_t last = 0, generation;
    struct reply *one;

    while (!atomic_load(r->stop) && !r->wrong) {
        r->wrong += !is_a_state(call_words(r->s, &arena, "HGETALL h"));
        r->wrong += !is_part_of_a_state(call_words(r->s, &arena, "HMGET h f0 f20 f39"), &last);
        one = call_words(r->s, &arena, "HGET h f0");
        r->wrong +=
            one->type != REPLY_BULK || str_u64(one->str, &generation) < 0 || generation < last;
        last = r->wrong ? 0 : generation;
        arena_reset(&arena);
    }
    arena_release(&arena);
}

/* Each generation replaces the one before by one field and grows into rows, one by one or at once.
 */
static void grow(struct store *s, int generation)
{
    static const char begin[] = "redis.call('DEL', 'h') return redis.call('HSET', 'h', 'f0', %d)",
                      rest[] = "for i = 1, 39 do redis.call('HSET', 'h', 'f' .. i, %d) end "
                               "return redis.call('HLEN', 'h')";
    char text[160];
    const char *got;

    snprintf(text, sizeof(text), begin, generation);
    check_script(s, text, "1");
    for (int i = 1; i < GROWN && generation % 2; i++) {
        snprintf(text, sizeof(text), "HSET h f%d %d", i, generation);
        CHECK_INT(ask(s, text, &got), 0);
    }
    snprintf(text, sizeof(text), rest, generation);
    check_script(s, text, "40");
}

TEST(small_hash, a_reader_beside_one_that_grows_and_is_dropped_sees_only_states_that_were)
{
    struct fixture f = {.durability = STORE_VOLATILE};
    struct reader readers[READERS];
    _Atomic(bool) stop = false;
    struct err err = {0};

    fixture_open(&f);
    grow(f.s, 0);
    for (int i = 0; i < READERS; i++) {
        readers[i] = (struct reader){.s = f.s, .stop = &stop};
        CHECK_OK(thread_start(&readers[i].thread, "reader", 0, read_states, &readers[i], &err));
    }
    for (int i = 1; i <= GENERATIONS; i++)
        grow(f.s, i);
    atomic_store(&stop, true);
    for (int i = 0; i < READERS; i++) {
        thread_join(&readers[i].thread);
        CHECK_INT(readers[i].wrong, 0);
    }
    fixture_check(&f);
    fixture_close(&f);
}
