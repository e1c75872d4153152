/* The embedded engine's own: rows, expiry, garbage, restarts. */
#include "unit/store/embedded_test.h"

#include "base/ids.h"

#include <stdio.h>

static void add_members(struct store *s, const char *key, int n)
{
    char line[128];

    for (int i = 0; i < n; i++) {
        snprintf(line, sizeof(line), "SADD %s member%d", key, i);
        check_reply(s, line, "1");
    }
}

/* One of each type, `n` members each. */
static void fill(struct store *s, int n)
{
    char line[128];
    const char *got;

    check_reply(s, "SET string value", "OK");
    for (int i = 0; i < n; i++) {
        snprintf(line, sizeof(line), "HSET hash field%d %d", i, i);
        check_reply(s, line, "1");
        snprintf(line, sizeof(line), "SADD set member%d", i);
        check_reply(s, line, "1");
        snprintf(line, sizeof(line), "ZADD zset %d.5 member%d", i % 7, i);
        check_reply(s, line, "1");
        snprintf(line, sizeof(line), "RPUSH list item%d", i % 5);
        CHECK_INT(ask(s, line, &got), 0);
    }
}

TEST(embedded, each_member_is_one_row_and_one_more_in_a_sorted_set_but_small_hashes_are_one)
{
    struct fixture f = {0};

    fixture_open(&f);
    fixture_check_empty(&f);
    fill(f.s, 3);
    CHECK_INT(fixture_check(&f).rows, 1 + 1 + 4 + 7 + 4);
    check_reply(f.s, "HDEL hash field0 field1 field2", "3");
    check_reply(f.s, "SREM set member0", "1");
    check_reply(f.s, "ZPOPMIN zset", "[\"member0\", \"0.5\"]");
    check_reply(f.s, "LPOP list", "\"item0\"");
    CHECK_INT(fixture_check(&f).rows, 1 + 0 + 3 + 5 + 3);
    fixture_close(&f);
}

TEST(embedded, a_small_collection_is_dropped_in_its_change_and_a_large_one_by_the_collector)
{
    struct fixture f = {0};

    fixture_open(&f);
    fill(f.s, 10);
    check_reply(f.s, "DEL string hash set zset list", "5");
    fixture_check_empty(&f);
    fill(f.s, 100);
    check_reply(f.s, "DEL string hash set", "3");
    check_reply(f.s, "SET zset now-a-string", "OK");
    check_reply(f.s, "RPUSH list more", "101");
    check_reply(f.s, "LTRIM list 3 4", "OK");
    embedded_collect(f.s);
    CHECK_INT(fixture_check(&f).rows, 1 + 3);
    check_reply(f.s, "LRANGE list 0 -1", "[\"item3\", \"item4\"]");
    check_reply(f.s, "FLUSHDB", "OK");
    embedded_collect(f.s);
    fixture_check_empty(&f);
    fixture_close(&f);
}

TEST(embedded, garbage_left_by_a_crash_is_collected_by_the_next_start)
{
    struct fixture f = {0};
    struct err err = {0};
    struct row row;
    char type = TYPE_ZSET;

    fixture_open(&f);
    store_close(f.s);
    row_prefix(&row, ROW_GARBAGE, 77);
    CHECK_OK(db_put(f.db, db_cf(f.db, "store0"), row.key, str_n(&type, 1), DB_DURABLE, &err));
    row_hashed(&row, NULL, ROW_SCORE, 77, 1, STR("member"));
    CHECK_OK(db_put(f.db, db_cf(f.db, "store0"), row.key, STR("12345678"), DB_DURABLE, &err));
    row_hashed(&row, NULL, ROW_ORDER, 77, 1, STR("member"));
    CHECK_OK(db_put(f.db, db_cf(f.db, "store0"), row.key, STR(""), DB_DURABLE, &err));
    CHECK_INT(fixture_check(&f).dead, 2);
    CHECK_OK(store_open_embedded(&f.s, f.db, 0, STORE_DURABLE, NULL, &err));
    embedded_collect(f.s);
    fixture_check_empty(&f);
    fixture_close(&f);
}

TEST(embedded, a_key_past_its_time_is_absent_to_every_reader_and_then_collected)
{
    struct fixture f = {0};

    fixture_open(&f);
    fill(f.s, 100);
    check_reply(f.s, "SET other 1", "OK");
    check_reply(f.s, "PEXPIRE string 600000", "1");
    check_reply(f.s, "PEXPIRE hash 600000", "1");
    check_reply(f.s, "PEXPIRE set 600000", "1");
    check_reply(f.s, "PEXPIRE zset 600000", "1");
    check_reply(f.s, "PEXPIRE list 600000", "1");
    CHECK_INT(fixture_check(&f).expiry, 4);
    embedded_shift_clock(f.s, 700000);
    check_reply(f.s, "GET string", "nil");
    check_reply(f.s, "HGET hash field1", "nil");
    check_reply(f.s, "SISMEMBER set member1", "0");
    check_reply(f.s, "ZRANGE zset 0 -1", "[]");
    check_reply(f.s, "LLEN list", "0");
    check_reply(f.s, "EXISTS string hash set zset list", "0");
    check_reply(f.s, "KEYS *", "[\"other\"]");
    check_reply(f.s, "DBSIZE", "1");
    check_reply(f.s, "EVAL return{redis.call('TTL','list'),redis.call('TYPE','hash')} 0",
                "[-2, none]");
    embedded_collect(f.s);
    CHECK_INT(fixture_check(&f).rows, 2); /* the string waits for a compaction */
    check_reply(f.s, "SADD hash other-type", "1");
    fixture_check(&f);
    fixture_close(&f);
}

TEST(embedded, a_write_to_a_key_past_its_time_starts_anew)
{
    struct fixture f = {0};

    fixture_open(&f);
    check_reply(f.s, "RPUSH k a b c", "3");
    check_reply(f.s, "PEXPIRE k 1000", "1");
    check_reply(f.s, "SET n 41 PX 1000", "OK");
    embedded_shift_clock(f.s, 5000);
    check_reply(f.s, "SADD k member", "1");
    check_reply(f.s, "TTL k", "-1");
    check_reply(f.s, "INCR n", "1");
    check_reply(f.s, "TTL n", "-1");
    CHECK_INT(fixture_check(&f).rows, 3);
    fixture_close(&f);
}

TEST(embedded, expiry_rows_follow_their_keys)
{
    struct fixture f = {0};

    fixture_open(&f);
    check_reply(f.s, "HSET h f v", "1");
    check_reply(f.s, "EXPIRE h 1000", "1");
    check_reply(f.s, "EXPIRE h 2000", "1");
    CHECK_INT(fixture_check(&f).expiry, 1);
    check_reply(f.s, "RENAME h g", "OK");
    CHECK_INT(fixture_check(&f).expiry, 1);
    check_reply(f.s, "HDEL g f", "1");
    CHECK_INT(fixture_check(&f).expiry, 0);
    check_reply(f.s, "RPUSH l a", "1");
    check_reply(f.s, "EXPIRE l 1000", "1");
    check_reply(f.s, "PERSIST l", "1");
    CHECK_INT(fixture_check(&f).expiry, 0);
    check_reply(f.s, "EXPIRE l 1000", "1");
    check_reply(f.s, "SET l string", "OK");
    CHECK_INT(fixture_check(&f).expiry, 0);
    check_reply(f.s, "TTL l", "-1");
    fixture_close(&f);
}

static void check_restart(enum store_durability durability)
{
    struct fixture f = {.durability = durability};

    fixture_open(&f);
    fill(f.s, 20);
    check_reply(f.s, "EXPIREAT set 9999999999", "1");
    fixture_restart(&f);
    check_reply(f.s, "GET string", "\"value\"");
    check_reply(f.s, "HGET hash field19", "\"19\"");
    check_reply(f.s, "HLEN hash", "20");
    check_reply(f.s, "SCARD set", "20");
    check_reply(f.s, "EXPIRETIME set", "9999999999");
    check_reply(f.s, "ZSCORE zset member8", "\"1.5\"");
    check_reply(f.s, "LRANGE list 0 2", "[\"item0\", \"item1\", \"item2\"]");
    check_reply(f.s, "SADD new a", "1");
    fixture_check(&f);
    fixture_close(&f);
}

TEST(embedded, a_restart_keeps_everything)
{
    check_restart(STORE_DURABLE);
}

TEST(embedded, a_volatile_store_survives_an_orderly_restart)
{
    check_restart(STORE_VOLATILE);
}

TEST(embedded, four_databases_do_not_see_each_other)
{
    struct fixture f = {0};
    struct err err = {0};
    struct store *other;

    fixture_open(&f);
    CHECK_OK(store_open_embedded(&other, f.db, 3, STORE_VOLATILE, NULL, &err));
    check_reply(f.s, "SET k 0", "OK");
    check_reply(other, "GET k", "nil");
    check_reply(other, "RPUSH k a", "1");
    check_reply(f.s, "GET k", "\"0\"");
    check_reply(other, "FLUSHDB", "OK");
    check_reply(f.s, "DBSIZE", "1");
    store_close(other);
    fixture_close(&f);
}

TEST(embedded, a_store_of_a_newer_format_is_refused)
{
    struct fixture f = {0};
    struct err err = {0};

    fixture_open(&f);
    store_close(f.s);
    CHECK_OK(db_put(f.db, db_cf(f.db, "store0"), STR("cformat"), STR("\x03"), DB_DURABLE, &err));
    CHECK_ERR(store_open_embedded(&f.s, f.db, 0, STORE_DURABLE, NULL, &err), ERR_VERSION);
    db_close(f.db);
}

/* Returns how many elements one whole scan gave; each must be "keyN" and is counted in `seen`. */
static size_t scan_all(struct store *s, int *seen, int (*between)(struct store *s))
{
    struct str cursor = STR("0");
    struct arena arena = {0};
    struct err err = {0};
    size_t total = 0;
    uint64_t n;

    do {
        struct reply *r;
        CHECK_OK(store_call(s, &arena, &r, &err, STR("SCAN"), cursor, STR("COUNT"), STR("7")));
        CHECK_INT(r->count, 2);
        cursor = r->items[0].str;
        for (size_t i = 0; i < r->items[1].count; i++)
            if (str_u64(str_skip(r->items[1].items[i].str, 3), &n) == 0)
                seen[n]++;
        total += r->items[1].count;
        if (between)
            between(s);
    } while (!str_eq(cursor, STR("0")));
    arena_release(&arena);
    return total;
}

static int disturb(struct store *s)
{
    static int n = 1000;
    char line[64];
    const char *got;

    snprintf(line, sizeof(line), "SET key%d x", n);
    CHECK_INT(ask(s, line, &got), 0);
    snprintf(line, sizeof(line), "DEL key%d", n - 2);
    n++;
    return ask(s, line, &got);
}

TEST(embedded, a_scan_returns_each_key_that_stays_exactly_once_while_others_come_and_go)
{
    struct fixture f = {.durability = STORE_VOLATILE};
    int seen[2000] = {0};
    char line[64];

    fixture_open(&f);
    for (int i = 0; i < 200; i++) {
        snprintf(line, sizeof(line), "SET key%d x", i);
        check_reply(f.s, line, "OK");
    }
    CHECK_INT(scan_all(f.s, seen, NULL), 200);
    scan_all(f.s, seen, disturb);
    for (int i = 0; i < 200; i++)
        CHECK_INT(seen[i], 2);
    fixture_close(&f);
}

TEST(embedded, random_choices_reach_every_member_and_popping_empties_the_set)
{
    struct fixture f = {.durability = STORE_VOLATILE};
    int drawn[4] = {0};
    const char *got;

    fixture_open(&f);
    add_members(f.s, "s", 4);
    for (int i = 0; i < 2000; i++) {
        CHECK_INT(ask(f.s, "SRANDMEMBER s", &got), 0);
        drawn[got[strlen("\"member")] - '0']++;
    }
    for (int i = 0; i < 4; i++)
        CHECK(drawn[i] > 350); /* 500 expected; seven standard deviations */
    add_members(f.s, "big", 600);
    check_script(f.s, "return #redis.call('SPOP', 'big', 500)", "500");
    check_reply(f.s, "SCARD big", "100");
    for (int i = 0; i < 50; i++)
        CHECK_INT(ask(f.s, "SPOP big 2", &got), 0);
    check_reply(f.s, "EXISTS big", "0");
    embedded_collect(f.s);
    CHECK_INT(fixture_check(&f).rows, 5);
    fixture_close(&f);
}

static const char *const soup[] = {
    "HSET h%d f%d v",
    "HDEL h%d f%d",
    "SADD s%d m%d",
    "SREM s%d m%d",
    "ZADD z%d %d m",
    "ZADD z%d %d other",
    "ZREM z%d m",
    "ZPOPMAX z%d %d",
    "RPUSH l%d %d",
    "LPUSH l%d %d a b c",
    "LREM l%d 0 %d",
    "LTRIM l%d 1 %d",
    "LINSERT l%d BEFORE a %d",
    "LPOP l%d %d",
    "RENAME h%d h%d",
    "SPOP s%d",
    "EXPIRE h%d 10%d",
    "EXPIRE z%d 10%d",
    "PERSIST h%d",
    "DEL l%d",
    "SUNIONSTORE s%d s%d s1",
    "SMOVE s%d s1 m%d",
    "RPOPLPUSH l%d l%d",
    "SET h%d string%d",
    "ZREMRANGEBYRANK z%d 0 %d",
    "HINCRBY h%d n%d 1",
    "DEL h%d",
    "SDIFFSTORE s%d s2 s%d",
};

TEST(embedded, invariants_hold_after_thousands_of_random_commands)
{
    struct fixture f = {.durability = STORE_VOLATILE};
    char line[128];
    const char *got;

    fixture_open(&f);
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < 200; i++) {
            int a = (int)random_below(4), b = (int)random_below(6);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
            snprintf(line, sizeof(line), soup[random_below(ARRAY_SIZE(soup))], a, b);
#pragma GCC diagnostic pop
            CHECK_INT(ask(f.s, line, &got), 0);
        }
        embedded_collect(f.s);
        CHECK_INT(fixture_check(&f).garbage, 0);
    }
    fixture_close(&f);
}

TEST(embedded, a_full_arena_undoes_the_step)
{
    struct fixture f = {0};
    struct arena small = ARENA_INIT(2000);
    struct reply *reply;
    struct err err = {0};

    fixture_open(&f);
    check_reply(f.s,
                "SET k " /* 100 bytes */
                "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
                "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
                "OK");
    const struct str set[] = {STR("SET"), STR("k"), STR("changed")};
    const struct str get[] = {STR("GETRANGE"), STR("k"), STR("0"), STR("-1")};
    const struct str mget[] = {STR("MGET"), STR("k"), STR("k"), STR("k"), STR("k"), STR("k"),
                               STR("k"),    STR("k"), STR("k"), STR("k"), STR("k"), STR("k"),
                               STR("k"),    STR("k"), STR("k"), STR("k"), STR("k"), STR("k")};
    const struct store_args batch[] = {{mget, ARRAY_SIZE(mget)}, {set, 3}, {get, 4}};
    CHECK_ERR(store_atomic(f.s, &small, &reply, batch, 3, &err), ERR_NO_MEMORY);
    arena_release(&small);
    check_reply(f.s, "STRLEN k", "100");
    fixture_close(&f);
}
