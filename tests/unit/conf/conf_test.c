/* Configuration: the table, the layers, and each thing that can be wrong, by its line. */
#include "base/log.h"
#include "conf/conf.h"
#include "conf/keys.h"
#include "conf/nearest.h"
#include "os/file.h"
#include "unit/test.h"

#include <stdio.h>

static struct conf *load_ok(const char *yaml)
{
    struct buf problems = {0};
    struct conf *c = NULL;

    if (conf_load_text(&c, "weir.yaml", str_z(yaml), &problems) < 0)
        test_fail(__FILE__, __LINE__, "problems: %s", problems.p);
    return c;
}

static void expect_problems(const char *yaml, const char *want)
{
    struct buf problems = {0};
    struct conf *c = NULL;

    CHECK_ERR(conf_load_text(&c, "weir.yaml", str_z(yaml), &problems), ERR_INVALID);
    CHECK(!c);
    CHECK_STR(buf_str(&problems), str_z(want));
    buf_release(&problems);
}

static void expect_value(const struct conf *c, const char *name, const char *value,
                         const char *source)
{
    const struct conf_key *key = conf_key_find(str_z(name));
    struct buf text = {0};

    conf_value_text(c, key, &text);
    CHECK_STR(buf_str(&text), str_z(value));
    buf_reset(&text);
    conf_source_text(c, key, &text);
    CHECK_STR(buf_str(&text), str_z(source));
    buf_release(&text);
}

TEST(conf, every_key_has_a_sentence_and_an_environment_name_of_its_own)
{
    struct buf a = {0}, b = {0};

    for (size_t i = 0; i < conf_key_count; i++) {
        CHECK(str_ends(str_z(conf_keys[i].doc), STR(".")));
        buf_reset(&a);
        conf_key_env(&conf_keys[i], &a);
        for (size_t j = 0; j < i; j++) {
            buf_reset(&b);
            conf_key_env(&conf_keys[j], &b);
            CHECK(!str_eq(buf_str(&a), buf_str(&b)));
            CHECK(conf_keys[i].offset != conf_keys[j].offset);
        }
    }
    buf_reset(&a);
    conf_key_env(conf_key_find(STR("store.redis.appDB")), &a);
    CHECK_STR(buf_str(&a), STR("WEIR_STORE_REDIS_APPDB"));
    buf_release(&a);
    buf_release(&b);
}

TEST(conf, an_empty_file_gives_the_defaults)
{
    struct conf *c = load_ok("");

    CHECK_STR(str_z(c->data), STR("./weir-data"));
    CHECK_STR(str_z(c->s3.listen), STR("127.0.0.1:9000"));
    CHECK_STR(str_z(c->store.redis.database[3]), STR("3"));
    CHECK_INT(c->store.redis.timeout_ms, 2000);
    CHECK_INT(c->db.cache, 64 << 20);
    CHECK_INT(c->log.level, LOG_INFO);
    CHECK_INT(c->log.format, LOG_TEXT);
    CHECK_INT(c->store.engine, CONF_ENGINE_EMBEDDED);
    expect_value(c, "s3.listen", "127.0.0.1:9000", "default");
    conf_unref(c);
}

TEST(conf, nested_maps_and_dotted_names_mean_the_same)
{
    struct conf *c = load_ok("s3:\n  listen: :80\n  tls: {cert: a.pem}\n"
                             "s3.tls.key: b.pem\n'log.level': debug\ndb: {cache: 64m}\n");

    CHECK_STR(str_z(c->s3.listen), STR(":80"));
    CHECK_STR(str_z(c->s3.tls.cert), STR("a.pem"));
    CHECK_STR(str_z(c->s3.tls.key), STR("b.pem"));
    CHECK_INT(c->log.level, LOG_DEBUG);
    CHECK_INT(c->db.cache, 64 << 20);
    expect_value(c, "s3.tls.key", "b.pem", "weir.yaml:4");
    conf_unref(c);
}

TEST(conf, an_address_may_be_off_and_an_optional_value_empty)
{
    struct conf *c = load_ok("tracker: {udp: off}\ns3.tls.cert: ''\ns3.tls.key: \"\"\n");

    CHECK_STR(str_z(c->tracker.udp), STR(""));
    CHECK_STR(str_z(c->s3.tls.cert), STR(""));
    conf_unref(c);
}

TEST(conf, an_unknown_key_suggests_the_nearest)
{
    expect_problems("s3:\n  listn: :80\n",
                    "weir.yaml:2: 's3.listn' is not a key; did you mean s3.listen?\n");
    expect_problems("storee.engine: redis\n",
                    "weir.yaml:1: 'storee.engine' is not a key; did you mean store.engine?\n");
    expect_problems("colour: red\n",
                    "weir.yaml:1: 'colour' is not a key; `weir config` lists them\n");
}

TEST(conf, all_problems_are_told_at_once)
{
    expect_problems("log.level: loud\n\nstore:\n  engine: memcached\n  redis.timeout: 5\n",
                    "weir.yaml:1: log.level must be one of debug, info, warn or error; "
                    "it is 'loud'\n"
                    "weir.yaml:4: store.engine must be one of embedded or redis; it is "
                    "'memcached'\n"
                    "weir.yaml:5: store.redis.timeout must be a duration such as 500ms, 30s or "
                    "5m, from 50ms to 1m; it is '5'\n");
}

TEST(conf, each_type_says_what_is_allowed)
{
    expect_problems("s3.listen: 9000\n",
                    "weir.yaml:1: s3.listen must be an address such as 127.0.0.1:9000, "
                    "[::1]:9000, :9000 or unix:/path, or off; it is '9000'\n");
    expect_problems("db.cache: 1\n",
                    "weir.yaml:1: db.cache must be a size such as 64KiB or 16MiB, from 1MiB to "
                    "1TiB; it is '1'\n");
    expect_problems("http.threads: -1\n",
                    "weir.yaml:1: http.threads must be a whole number from 4 to 16384; it is "
                    "'-1'\n");
    expect_problems("store.redis.tls.insecure: yes\n",
                    "weir.yaml:1: store.redis.tls.insecure must be true or false; it is 'yes'\n");
    expect_problems("store.redis.url: http://x\n",
                    "weir.yaml:1: store.redis.url must be a URL that begins with redis://, "
                    "rediss://, redis+sentinel://, rediss+sentinel:// or unix://; it is "
                    "'http://x'\n");
    expect_problems("store.redis.appDB: x\n",
                    "weir.yaml:1: store.redis.appDB must be a number from 0 to 65535, or a URL "
                    "that begins with redis://, rediss://, redis+sentinel://, rediss+sentinel:// "
                    "or unix://; it is 'x'\n");
    expect_problems("data: ''\n", "weir.yaml:1: data must be a path; it is ''\n");
    expect_problems("data: \"a\\nb\"\n", "weir.yaml:1: data must be a path; it is 'a\\x0ab'\n");
}

TEST(conf, a_group_is_not_a_value_and_a_value_not_a_group)
{
    expect_problems("s3: here\n",
                    "weir.yaml:1: 's3' is a group of keys (s3.listen, ...), not a key\n");
    expect_problems("log.level:\n  of: detail\n", "weir.yaml:2: 'log.level.of': log.level takes a "
                                                  "value, not a group of keys\n");
    expect_problems("log.level:\n", "weir.yaml:1: 'log.level' has no value; leave the line out "
                                    "for the default\n");
}

TEST(conf, what_two_readers_could_read_in_two_ways_is_refused)
{
    expect_problems("log.level: info\nlog:\n  level: warn\n",
                    "weir.yaml:3: log.level is given twice; first on line 1\n");
    expect_problems("log: {level: info}\nlog: {format: json}\n",
                    "weir.yaml:2: the same group of keys is given twice\n");
    expect_problems("log: &a {level: info}\n", "weir.yaml:1: anchors (&name) are not allowed\n");
    expect_problems("log: *a\n", "weir.yaml:1: aliases (*name) are not allowed\n");
    expect_problems("log.level: !!str info\n", "weir.yaml:1: tags (!name) are not allowed\n");
    expect_problems("log.level: [info]\n",
                    "weir.yaml:1: lists are not allowed; no key takes one\n");
    expect_problems("log.level: info\n---\nlog.level: warn\n",
                    "weir.yaml:2: a second document; only one is allowed\n");
    expect_problems("{a: b}: c\n", "weir.yaml:1: a map cannot be a key\n");
    expect_problems("a: {b: {c: {d: {e: {f: {g: {h: {i: j}}}}}}}}\n",
                    "weir.yaml:1: nested too deep\n");
    expect_problems("just words\n", "weir.yaml:1: expected keys with values (key: value)\n");
    expect_problems("data: {\n",
                    "weir.yaml:2: not valid YAML: did not find expected node content\n");
}

TEST(conf, keys_that_belong_together_come_together)
{
    expect_problems("s3.tls.cert: a.pem\n", "weir.yaml:1: s3.tls.cert is set but s3.tls.key is "
                                            "not; set both or none\n");
    expect_problems("secret_key: 0123456789\n",
                    "weir.yaml:1: secret_key is set but access_key is not; set both or none\n");
}

TEST(conf, the_url_of_redis_names_no_database)
{
    static const char want[] = "weir.yaml:1: store.redis.url must not name a database; "
                               "store.redis.appDB, queueDB, lockDB, configDB and swarmDB do\n";

    expect_problems("store.redis.url: redis://host/0\n", want);
    expect_problems("store.redis.url: rediss://u:p@host:1/3\n", want);
    expect_problems("store.redis.url: unix:///run/redis.sock?db=2\n", want);
    expect_problems("store.redis.url: redis+sentinel://a:1,b:2/main/3\n", want);
    expect_problems("store.redis.url: redis+sentinel://:x/y@a,b/main?sentinel_user=u&db=3\n", want);
    conf_unref(load_ok("store.redis.url: rediss+sentinel://:x/y@a:1,[::1]:2/main\n"));
    conf_unref(load_ok("store.redis.url: redis+sentinel://a/main/?sentinel_password=db=1\n"));
    conf_unref(load_ok("store.redis.url: unix:///run/redis.sock\n"));
    conf_unref(load_ok("store.redis.url: redis://u:a/b@host:1/\n"));
}

TEST(conf, the_number_of_problems_is_bounded)
{
    struct buf yaml = {0}, problems = {0};
    struct conf *c = NULL;
    size_t lines = 0;

    for (int i = 0; i < 1000; i++)
        buf_appendf(&yaml, "key%d: x\n", i);
    CHECK_ERR(conf_load_text(&c, "weir.yaml", buf_str(&yaml), &problems), ERR_INVALID);
    for (size_t i = 0; i < problems.len; i++)
        lines += problems.p[i] == '\n';
    CHECK_INT(lines, CONF_MAX_PROBLEMS);
    buf_release(&yaml);
    buf_release(&problems);
}

TEST(conf, secrets_are_masked_and_never_in_a_problem)
{
    struct conf *c = load_ok("access_key: AKEXAMPLE\nsecret_key: correct-horse\n"
                             "store.redis.url: redis://me:pass@wo/rd@host:1\n"
                             "store.redis.appDB: rediss://:other@host/7\n"
                             "store.redis.lockDB: redis+sentinel://u:other@a:1,b:2/main/2?"
                             "sentinel_user=s&sentinel_password=more&sentinel_password=most\n"
                             "store.redis.queueDB: redis+sentinel://a:1/m?sentinel_password=o@n\n");

    CHECK_STR(str_z(c->secret_key), STR("correct-horse"));
    expect_value(c, "access_key", "***", "weir.yaml:1");
    expect_value(c, "secret_key", "***", "weir.yaml:2");
    expect_value(c, "store.redis.url", "redis://me:***@host:1", "weir.yaml:3");
    expect_value(c, "store.redis.appDB", "rediss://:***@host/7", "weir.yaml:4");
    expect_value(c, "store.redis.lockDB",
                 "redis+sentinel://u:***@a:1,b:2/main/2?sentinel_user=s&"
                 "sentinel_password=***&sentinel_password=***",
                 "weir.yaml:5");
    expect_value(c, "store.redis.queueDB", "***", "weir.yaml:6");
    conf_unref(c);
    expect_problems("secret_key: short\n",
                    "weir.yaml:1: secret_key must be text of 8 to 128 characters\n");
    expect_problems("store.redis.url: reddis://me:password@host\n",
                    "weir.yaml:1: store.redis.url must be a URL that begins with redis://, "
                    "rediss://, redis+sentinel://, rediss+sentinel:// or unix://; it is "
                    "'reddis://me:***@host'\n");
}

static void write_file(char *path, size_t size, const char *text)
{
    struct err err = {0};
    snprintf(path, size, "%s/weir.yaml", test_dir());
    CHECK_OK(file_write_durable(path, str_z(text), 0600, &err));
}

TEST(conf, flags_win_over_environment_over_file_over_defaults)
{
    char path[256], source[300];
    const char *environ[] = {"HOME=/", "WEIR_LOG_LEVEL=warn", "WEIR_API_LISTEN=:2", NULL};
    struct conf_flag flags[] = {{STR("api.listen"), STR(":3")}};
    struct conf_input in = {path, environ, flags, 1};
    struct buf problems = {0};
    struct conf *c = NULL;

    write_file(path, sizeof(path), "log: {level: debug, format: json}\napi.listen: :1\n");
    CHECK_INT(conf_load(&c, &in, &problems), 0);
    snprintf(source, sizeof(source), "%s:1", path);
    expect_value(c, "log.format", "json", source);
    expect_value(c, "log.level", "warn", "environment WEIR_LOG_LEVEL");
    expect_value(c, "api.listen", ":3", "flag --api.listen");
    expect_value(c, "s3.listen", "127.0.0.1:9000", "default");
    CHECK_STR(str_z(conf_file(c)), str_z(path));
    conf_unref(c);
    buf_release(&problems);
}

TEST(conf, wrong_variables_and_flags_are_named)
{
    const char *environ[] = {"WEIR_LOG_LEVEL=x", "WEIR_LOG_LEVELS=warn",
                             "WEIR_SERVICE_HOST=10.0.0.1", "WEIR_CONFIG=/dev/null", NULL};
    struct conf_flag flags[] = {{STR("log.formt"), STR("json")},
                                {STR("secret_key"), STR("correct-horse")},
                                {STR("log.format"), STR("xml")}};
    struct conf_input in = {NULL, environ, flags, 3};
    struct buf problems = {0};
    struct conf *c = NULL;

    CHECK_ERR(conf_load(&c, &in, &problems), ERR_INVALID);
    CHECK_STR(
        buf_str(&problems),
        STR("environment WEIR_LOG_LEVEL: log.level must be one of debug, info, warn or error; it "
            "is 'x'\n"
            "environment WEIR_LOG_LEVELS: not a key; did you mean WEIR_LOG_LEVEL?\n"
            "flag: 'log.formt' is not a key; did you mean log.format?\n"
            "flag --secret_key: secrets are not taken from flags, which everybody can see with "
            "ps; use the file or the environment\n"
            "flag --log.format: log.format must be one of text or json; it is 'xml'\n"));
    buf_release(&problems);
}

TEST(conf, a_file_that_cannot_be_read_is_named)
{
    char path[256];
    struct conf_input in = {.file = path};
    struct buf problems = {0}, large = {0};
    struct conf *c = NULL;
    struct err err = {0};

    snprintf(path, sizeof(path), "%s/none.yaml", test_dir());
    CHECK_ERR(conf_load(&c, &in, &problems), ERR_INVALID);
    CHECK(str_find(buf_str(&problems), str_z(path)) >= 0);
    for (int i = 0; i <= CONF_MAX_FILE / 4; i++)
        buf_append_z(&large, "# x\n");
    CHECK_OK(file_write_durable(path, buf_str(&large), 0600, &err));
    buf_reset(&problems);
    CHECK_ERR(conf_load(&c, &in, &problems), ERR_INVALID);
    CHECK(str_find(buf_str(&problems), STR("larger than 256 KiB")) >= 0);
    buf_release(&problems);
    buf_release(&large);
}

TEST(conf, a_reload_keeps_what_cannot_change_and_names_it)
{
    struct conf *old = load_ok("s3.listen: :1\nhttp.threads: 8\nlog.level: info\n");
    struct conf *next = load_ok("s3.listen: :2\nhttp.threads: 9\nlog.level: debug\n");
    struct buf kept = {0};

    conf_keep_fixed(next, old, &kept);
    CHECK_STR(buf_str(&kept), STR("s3.listen, http.threads"));
    conf_unref(old);
    CHECK_STR(str_z(next->s3.listen), STR(":1"));
    CHECK_INT(next->http.threads, 8);
    CHECK_INT(next->log.level, LOG_DEBUG);
    expect_value(next, "s3.listen", ":1", "weir.yaml:1");
    conf_unref(next);
    buf_release(&kept);
}

TEST(conf, distance_counts_letters_wrong)
{
    CHECK_INT(nearest_distance(STR(""), STR("")), 0);
    CHECK_INT(nearest_distance(STR("serve"), STR("serve")), 0);
    CHECK_INT(nearest_distance(STR("serve"), STR("SERVE")), 0);
    CHECK_INT(nearest_distance(STR("sevre"), STR("serve")), 1);
    CHECK_INT(nearest_distance(STR("srve"), STR("serve")), 1);
    CHECK_INT(nearest_distance(STR(""), STR("serve")), 5);
    CHECK_INT(nearest_distance(STR("kitten"), STR("sitting")), 3);
}

TEST(conf, forges_are_named_by_their_hosts)
{
    struct conf *c = load_ok("forges:\n  github.com: {token: abcd}\n"
                             "  \"git.example:8443\": {kind: gitea, zip: false, lfs: true}\n");

    CHECK_INT(c->forges.len, 2);
    CHECK_STR(str_z(c->forges.items[0].token), STR("abcd"));
    CHECK(c->forges.items[0].zip && !c->forges.items[0].lfs);
    CHECK_STR(str_z(c->forges.items[1].host), STR("git.example:8443"));
    CHECK(!c->forges.items[1].zip && c->forges.items[1].lfs);
    conf_unref(c);
    expect_problems("forges:\n  git.example: {token_file: here}\n",
                    "weir.yaml:2: forges.git.example.kind must be github, gitlab or gitea\n"
                    "weir.yaml:2: forges.git.example.token_file must be an absolute path\n");
    expect_problems("forges:\n  github.com: {tokn: very-secret}\n",
                    "weir.yaml:2: 'forges.github.com.tokn' is not a key; did you mean token?\n");
    expect_problems("forges:\n  github.com: {api: ftp://x}\n",
                    "weir.yaml:2: forges.github.com: api and git must begin with http:// or "
                    "https://\n");
}
