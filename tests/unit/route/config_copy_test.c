/* Sealed copies of the configuration, over both engines: what is read back makes the same again. */
#include "route/config_copy.h"
#include "os/file.h"
#include "unit/store/embedded_test.h"
#include "unit/store/four.h"

#include <stdio.h>

static const struct seal_key key = {{1, 2, 3}};

static const char *path(void)
{
    static char text[200];

    snprintf(text, sizeof(text), "%s/config.sealed", test_dir());
    return text;
}

static void fill(struct store *s)
{
    check_reply(s, "SADD users alice bob", "2");
    check_reply(s, "HSET user:alice id 7 name x", "2");
    check_reply(s, "SET storages:main far", "OK");
    check_reply(s, "ZADD p:repl:u:box 3 a:b 1 a:c", "2");
    check_reply(s, "RPUSH p:switch-hist:u:box one two", "2");
    check_reply(s, "HSET w:storages local id", "1");
    check_reply(s, "SET w:epoch 5", "OK");
}

static void check_filled(struct store *s)
{
    check_reply(s, "SCARD users", "2");
    check_reply(s, "HGET user:alice id", "\"7\"");
    check_reply(s, "GET storages:main", "\"far\"");
    check_reply(s, "ZSCORE p:repl:u:box a:b", "\"3\"");
    check_reply(s, "ZCARD p:repl:u:box", "2");
    check_reply(s, "LRANGE p:switch-hist:u:box 0 -1", "[\"one\", \"two\"]");
    check_reply(s, "HGET w:storages local", "\"id\"");
    check_reply(s, "EXISTS w:epoch", "0"); /* what processes tell of themselves is not in it */
}

TEST_FOUR(config_copy, what_is_read_back_makes_the_same)
{
    struct store *s = f->stores[DB_CONFIG];
    struct config_copy head = {.installation = STR("0123"), .count = 7}, found;
    struct arena a = {0};
    struct reply *reply;
    struct err err = {0};

    fill(s);
    for (int i = 0; i < 500; i++) { /* more than one page, and than one command takes */
        struct str field = arena_fmt(&a, "k%d", i);
        CHECK_OK(store_call(s, &a, &reply, &err, STR("HSET"), STR("webhooks"), field, field));
        CHECK_OK(
            store_call(s, &a, &reply, &err, STR("SET"), arena_fmt(&a, "p:route:u:%d", i), field));
    }
    CHECK_OK(config_copy_write(s, &key, path(), &head, &err));
    check_reply(s, "FLUSHDB", "OK");
    CHECK_OK(config_copy_read(&found, &a, &key, path(), &err));
    CHECK_STR(found.installation, STR("0123"));
    CHECK_INT(found.count, 7);
    CHECK_INT(found.time_ms, head.time_ms);
    for (size_t i = 0; i < found.command_count; i++)
        CHECK_OK(
            store_command(s, &a, &reply, found.commands[i].argv, found.commands[i].argc, &err));
    check_filled(s);
    check_reply(s, "HLEN webhooks", "500");
    check_reply(s, "HGET webhooks k499", "\"k499\"");
    check_reply(s, "GET p:route:u:499", "\"k499\"");
    arena_release(&a);
}

TEST_FOUR(config_copy, one_that_was_changed_or_sealed_by_another_does_not_open)
{
    struct store *s = f->stores[DB_CONFIG];
    struct config_copy head = {.installation = STR("0123")}, found;
    struct seal_key other = {{9}};
    struct buf file = BUF_INIT(MIB);
    struct arena a = {0};
    struct err err = {0};

    CHECK_ERR(config_copy_read(&found, &a, &key, path(), &err), ERR_NOT_FOUND);
    fill(s);
    CHECK_OK(config_copy_write(s, &key, path(), &head, &err));
    CHECK_ERR(config_copy_read(&found, &a, &other, path(), &err), ERR_CORRUPT);
    CHECK_OK(file_read(path(), &file, &err));
    CHECK(str_find(buf_str(&file), STR("alice")) < 0);
    file.p[file.len / 2] ^= 1;
    CHECK_OK(file_write_durable(path(), buf_str(&file), 0600, &err));
    CHECK_ERR(config_copy_read(&found, &a, &key, path(), &err), ERR_CORRUPT);
    CHECK_OK(file_write_durable(path(), STR("weir sealed configuration 1\n"), 0600, &err));
    CHECK_ERR(config_copy_read(&found, &a, &key, path(), &err), ERR_CORRUPT);
    buf_release(&file);
    arena_release(&a);
}
