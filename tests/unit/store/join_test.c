/* Scripts over several databases of one server. */
#include "unit/store/embedded_test.h"
#include "unit/store/four.h"

#include <stdio.h>

TEST_FOUR(store_join, scripts_reach_the_other_databases)
{
    check_script(f->stores[0],
                 "redis.call('SET','k','zero') redis.call('SELECT',2) redis.call('SET','k','two') "
                 "redis.call('HSET','h','a',1) redis.call('SELECT','3') "
                 "redis.call('HSET','h','b',1,'c',2) redis.call('SELECT',0) "
                 "return redis.call('GET','k')",
                 "\"zero\"");
    check_reply(f->stores[2], "GET k", "\"two\"");
    check_reply(f->stores[2], "HLEN h", "1");
    check_reply(f->stores[3], "HLEN h", "2");
    check_reply(f->stores[0], "EXISTS h", "0");
}

/* The cache of owner rows must not confuse keys of one name. */
TEST_FOUR(store_join, keys_of_one_name_stay_apart)
{
    check_script(f->stores[1],
                 "for i = 0, 3 do redis.call('SELECT', i) "
                 "for n = 1, i + 1 do redis.call('RPUSH', 'l', n) end end "
                 "local out = {} for i = 3, 0, -1 do redis.call('SELECT', i) "
                 "out[#out + 1] = redis.call('LLEN', 'l') redis.call('LPUSH', 'l', 'x') "
                 "out[#out + 1] = redis.call('LLEN', 'l') end return out",
                 "[4, 5, 3, 4, 2, 3, 1, 2]");
}

TEST_FOUR(store_join, what_a_script_selects_ends_with_it)
{
    check_script(f->stores[0], "redis.call('SELECT',3) return 1", "1");
    check_script(f->stores[0], "redis.call('SET','here','1') return 1", "1");
    check_reply(f->stores[0], "GET here", "\"1\"");
    check_reply(f->stores[3], "GET here", "nil");
    check_script(f->stores[0], "redis.call('SELECT',3) return {err='ERR no'}", "(error) ERR no");
    check_script(f->stores[0], "redis.call('SET','here','2') return 1", "1");
    check_reply(f->stores[0], "GET here", "\"2\"");
}

TEST_FOUR(store_join, numbers_that_are_none_are_refused)
{
    check_script(f->stores[0], "return redis.pcall('SELECT',99)['err']",
                 "\"ERR DB index is out of range\"");
    check_script(f->stores[0], "return redis.pcall('SELECT',-1)['err']",
                 "\"ERR DB index is out of range\"");
    check_script(f->stores[0], "return redis.pcall('SELECT','x')['err']",
                 f->db ? "\"ERR invalid DB index\""
                       : "\"ERR value is not an integer or out of range\"");
}

/* Large collections that are dropped become garbage of their own database. */
TEST(store_join, garbage_is_collected_where_it_was_made)
{
    struct four f = {0};

    four_open_embedded(&f);
    check_script(f.stores[0],
                 "redis.call('SELECT',3) for i = 1, 200 do redis.call('SADD','s',i) end return 1",
                 "1");
    check_script(f.stores[0], "redis.call('SELECT',3) return redis.call('DEL','s')", "1");
    embedded_collect(f.stores[3]);
    check_reply(f.stores[3], "DBSIZE", "0");
    four_close(&f);
}

TEST_FOUR(store_join, a_relaxed_script_is_visible_at_once)
{
    struct script script = {.source = STR("return redis.call('INCR', KEYS[1])")};
    struct str key = STR("n");
    struct arena arena = {0};
    struct reply *reply;
    struct err err = {0};

    script_init(&script);
    struct script_run run = {.script = &script, .keys = {&key, 1}, .relaxed = true};
    CHECK_OK(store_eval(f->stores[0], &arena, &reply, &run, &err));
    CHECK_INT(reply->integer, 1);
    check_reply(f->stores[0], "GET n", "\"1\"");
    arena_release(&arena);
}

TEST(store_join, databases_of_two_servers_are_refused)
{
    struct store *stores[2];
    struct err err = {0};

    stores[0] = store_at("redis://127.0.0.1:1/0");
    stores[1] = store_at("redis://127.0.0.1:2/1");
    CHECK_ERR(store_join(stores, 2, &err), ERR_INVALID);
    CHECK_INT(store_number(stores[1]), 1);
    store_close(stores[0]);
    store_close(stores[1]);
}
