/* The maps of sharded buckets in the store, and who holds them, over both engines. */
#include "coord/shards.h"
#include "coord/gateways.h"
#include "coord/installation.h"
#include "unit/store/embedded_test.h"
#include "unit/store/four.h"

/* A process that tells its word, and asks. */
struct asker {
    struct four *four;
    struct installation *installation;
    const char *id;
    struct shards_memory memory;
};

static struct store *config_of(struct four *f)
{
    return f->stores[DB_CONFIG];
}

static void asker_tell(struct asker *p)
{
    struct err err = {0};

    CHECK_OK(installation_tell(p->installation, str_z(p->id), 7, &err));
    installation_memory(p->installation, &p->memory);
}

static void asker_open(struct asker *p, struct four *f, const char *id)
{
    struct installation_options o = {.config = config_of(f), .folder = test_dir()};
    struct err err = {0};

    *p = (struct asker){.four = f, .id = id};
    CHECK_OK(installation_open(&p->installation, &o, &err));
    asker_tell(p);
}

static void hold(struct four *f, const char *process, uint64_t number, const char *busy)
{
    struct shard_hold h = {STR("a:b"), STR("photos"), str_z(process), number, str_z(busy)};
    struct err err = {0};

    CHECK_OK(shard_hold_tell(config_of(f), &h, &err));
}

/* What the store answers, with the key that is waited for: "waits k", "all ", "forgotten ". */
static void expect_held(struct asker *p, uint64_t number, const char *want)
{
    static const char *const names[] = {
        [HOLD_WAITS] = "waits", [HOLD_ALL] = "all", [HOLD_FORGOTTEN] = "forgotten"};
    struct shard_hold_question q = {STR("a:b"),   STR("photos"),   number,
                                    str_z(p->id), &p->memory.word, GATEWAY_LIFE_S};
    struct arena a = {0};
    enum shard_held held = HOLD_WAITS;
    struct str busy = STR_EMPTY;
    struct err err = {0};

    CHECK_OK(shard_hold_ask(config_of(p->four), &a, &q, &held, &busy, &err));
    CHECK_STR(arena_fmt(&a, "%s " STR_FMT, names[held], STR_ARG(busy)), str_z(want));
    arena_release(&a);
}

static uint64_t publish(struct four *f, uint64_t number, const char *text)
{
    struct shard_entry e = {STR("a:b"), STR("photos"), STR("al:ice"), number, str_z(text)};
    struct err err = {0};
    uint64_t newest = 0;

    CHECK_OK(shard_entry_publish(config_of(f), &e, &newest, &err));
    return newest;
}

TEST_FOUR(coord_shards, a_map_is_held_when_the_last_process_that_lives_holds_it)
{
    struct asker one, two;
    struct err err = {0};

    asker_open(&one, f, "one");
    asker_open(&two, f, "two");
    expect_held(&one, 1700000000007, "waits ");
    hold(f, "one", 1700000000007, "");
    expect_held(&one, 1700000000007, "waits ");
    hold(f, "two", 1700000000006, "");
    expect_held(&one, 1700000000007, "waits ");
    expect_held(&one, 1700000000006, "all ");
    hold(f, "two", 1700000000008, "");
    expect_held(&one, 1700000000007, "all ");
    expect_held(&one, 1700000000008, "waits ");
    CHECK_OK(gateways_forget(config_of(f), STR("two"), &err));
    hold(f, "one", 1700000000008, "");
    expect_held(&one, 1700000000008, "all ");
    check_reply(config_of(f), "HKEYS w:shard:held:a%3Ab:photos", "[\"one\"]");
    installation_close(two.installation);
    installation_close(one.installation);
}

TEST_FOUR(coord_shards,
          a_process_with_a_busy_key_does_not_hold_the_map_and_the_smallest_key_is_told)
{
    struct asker one, two;

    asker_open(&one, f, "one");
    asker_open(&two, f, "two");
    hold(f, "one", 9, "k:2");
    hold(f, "two", 9, "k:10");
    expect_held(&one, 9, "waits k:10");
    expect_held(&one, 8, "waits k:10");
    hold(f, "two", 9, "");
    expect_held(&one, 9, "waits k:2");
    hold(f, "one", 9, "");
    expect_held(&one, 9, "all ");
    installation_close(two.installation);
    installation_close(one.installation);
}

TEST_FOUR(coord_shards, a_store_without_the_askers_last_word_cannot_tell)
{
    struct asker one;

    asker_open(&one, f, "one");
    hold(f, "one", 9, "");
    expect_held(&one, 9, "all ");
    check_reply(config_of(f), "HSET w:gateways one 6:1000", "0");
    expect_held(&one, 9, "forgotten ");
    check_reply(config_of(f), "DEL w:gateways", "1");
    expect_held(&one, 9, "forgotten "); /* and not: nobody is there, so all hold it */
    uint64_t since = one.memory.since_ns;
    asker_tell(&one);
    CHECK(one.memory.since_ns > since);
    expect_held(&one, 9, "all ");
    check_reply(config_of(f), "HSET w:gateways dead 5:1000", "1");
    expect_held(&one, 9, "all ");
    one.memory.word.run[0] = 'x'; /* the word was taken by another server */
    expect_held(&one, 9, "forgotten ");
    installation_close(one.installation);
}

TEST_FOUR(coord_shards, an_older_map_is_not_published_over_a_newer_one)
{
    struct arena a = {0};
    struct shard_entry e = {0}, *all = NULL;
    struct err err = {0};
    size_t count = 0;

    CHECK_ERR(shard_entry_read(config_of(f), &a, STR("a:b"), STR("photos"), &e, &err),
              ERR_NOT_FOUND);
    CHECK_INT(publish(f, 1700000000007, "{:}"), 1700000000007);
    CHECK_INT(publish(f, 1700000000006, "old"), 1700000000007);
    CHECK_OK(shard_entry_read(config_of(f), &a, STR("a:b"), STR("photos"), &e, &err));
    CHECK_INT(e.number, 1700000000007);
    CHECK_STR(e.text, STR("{:}"));
    CHECK_INT(publish(f, 1700000000008, ""), 1700000000008);
    CHECK_OK(shard_entry_read(config_of(f), &a, STR("a:b"), STR("photos"), &e, &err));
    CHECK_INT(e.text.len, 0);
    CHECK_OK(shard_entry_numbers(config_of(f), &a, &all, &count, &err));
    CHECK_INT(count, 1);
    CHECK_STR(all[0].storage, STR("a:b"));
    CHECK_STR(all[0].bucket, STR("photos"));
    CHECK_STR(all[0].owner, STR("al:ice"));
    CHECK_INT(all[0].number, 1700000000008);
    arena_release(&a);
}

TEST_FOUR(coord_shards, a_bucket_that_is_plain_again_is_forgotten_unless_it_was_sharded_anew)
{
    struct store *config = config_of(f);
    struct err err = {0};

    publish(f, 8, "x");
    hold(f, "one", 8, "");
    CHECK_OK(shard_entry_forget(config, STR("a:b"), STR("photos"), 7, &err));
    check_reply(config, "HLEN w:shards", "1");
    CHECK_OK(shard_entry_forget(config, STR("a:b"), STR("photos"), 8, &err));
    check_reply(config, "EXISTS w:shards w:shard:a%3Ab:photos w:shard:held:a%3Ab:photos", "0");
}

TEST_FOUR(coord_shards, a_storage_is_known_when_it_was_said)
{
    bool known = true;
    struct err err = {0};

    CHECK_OK(shards_known(config_of(f), STR("a:b"), &known, &err));
    CHECK(!known);
    CHECK_OK(shards_known_set(config_of(f), STR("a:b"), &err));
    CHECK_OK(shards_known(config_of(f), STR("a:b"), &known, &err));
    CHECK(known);
}

struct news {
    _Atomic(int) count;
    struct shard_entry last;
    struct arena arena;
};

static void news_take(void *ctx, struct str channel, struct str message)
{
    struct news *n = ctx;

    if (!channel.p)
        return;
    CHECK_INT(shard_entry_parse(&n->last, &n->arena, message), 0);
    n->count++;
}

TEST_FOUR(coord_shards, each_map_is_told_on_the_channel)
{
    struct store_subscription *sub = NULL;
    struct news n = {0};
    struct err err = {0};

    CHECK_OK(store_subscribe(&sub, config_of(f), SHARDS_CHANNEL, news_take, &n, &err));
    publish(f, 1700000000007, "x");
    CHECK_SOON(n.count == 1);
    store_unsubscribe(sub);
    CHECK_STR(n.last.storage, STR("a:b"));
    CHECK_STR(n.last.bucket, STR("photos"));
    CHECK_INT(n.last.number, 1700000000007);
    arena_release(&n.arena);
}

TEST(coord_shards, a_malformed_message_is_refused)
{
    static const char *const texts[] = {"", "a", "a:b", "a:b:", "a:b:x", "a:7", "%4:b:7"};
    struct arena a = {0};
    struct shard_entry e;

    for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
        CHECK_INT(shard_entry_parse(&e, &a, str_z(texts[i])), ERR_PARSE);
    arena_release(&a);
}

TEST(coord_shards, the_store_has_remembered_a_process_ten_seconds_after_the_last_loss)
{
    struct shards_memory m = {0};
    uint64_t s = NS_PER_S;

    CHECK(!shards_memory_holds(&m, 100 * s));
    shards_memory_took(&m, STR_EMPTY, STR("1:5"), STR("r"), 100 * s);
    CHECK(!shards_memory_holds(&m, 109 * s));
    CHECK(shards_memory_holds(&m, 110 * s));
    shards_memory_took(&m, STR("1:5"), STR("1:6"), STR("r"), 111 * s);
    CHECK(shards_memory_holds(&m, 111 * s));
    shards_memory_took(&m, STR("1:5"), STR("1:7"), STR("r"), 112 * s); /* 1:6 was lost */
    CHECK(!shards_memory_holds(&m, 121 * s));
    CHECK(shards_memory_holds(&m, 122 * s));
    shards_memory_took(&m, STR("1:7"), STR("1:8"), STR("q"), 123 * s); /* another server */
    CHECK(!shards_memory_holds(&m, 132 * s));
    shards_memory_took(&m, STR_EMPTY, STR("1:9"), STR("q"), 140 * s); /* emptied */
    CHECK(!shards_memory_holds(&m, 149 * s));
    CHECK(shards_memory_holds(&m, 150 * s));
}
