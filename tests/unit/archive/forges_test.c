/* The forges that weir knows: built in, of the configuration file, and added while weir runs. */
#include "archive/forge_int.h"
#include "archive/forges.h"
#include "conf/conf.h"
#include "unit/archive/forge_lab.h"

#include <stdio.h>
#include <string.h>

struct lab {
    struct four four;
    struct forges *forges;
    struct arena arena;
    struct err err;
    char key_file[256];
};

static struct forges *open_forges(struct lab *l, const struct conf *conf)
{
    struct forges *f;
    struct err err = {0};

    CHECK_OK(forges_open(&f,
                         &(struct forges_options){.config = l->four.stores[DB_CONFIG],
                                                  .app = l->four.stores[DB_APP],
                                                  .key_file = l->key_file,
                                                  .conf = conf},
                         &err));
    return f;
}

static void lab_start(struct lab *l)
{
    *l = (struct lab){0};
    four_open_embedded(&l->four);
    snprintf(l->key_file, sizeof(l->key_file), "%s/key", test_dir());
    l->forges = open_forges(l, NULL);
}

static void lab_stop(struct lab *l)
{
    forges_close(l->forges);
    arena_release(&l->arena);
    four_close(&l->four);
}

static struct forge find(struct lab *l, struct forges *f, const char *host)
{
    struct forge forge;
    struct err err = {0};

    CHECK_OK(forges_find(f, &l->arena, str_z(host), &forge, &err));
    return forge;
}

static int set(struct lab *l, struct forge_change c)
{
    bool was_new;

    return forges_set(l->forges, &c, &was_new, &l->err);
}

TEST(archive_forges, github_is_there_from_the_start)
{
    struct lab l;
    struct forge *list;
    size_t count;

    lab_start(&l);
    struct forge github = find(&l, l.forges, "GitHub.com");
    CHECK_STR(github.api, STR("https://api.github.com"));
    CHECK_STR(github.git, STR("https://github.com"));
    CHECK_STR(github.bucket, STR("github.com"));
    CHECK(github.source == FORGE_BUILT_IN && !github.allow_private && github.wants.zip);
    LAB_OK(forges_list(l.forges, &l.arena, &list, &count, &l.err));
    CHECK_INT(count, 1);
    CHECK_INT(forges_remove(l.forges, STR("github.com"), &l.err), ERR_INVALID);
    CHECK_INT(forges_remove(l.forges, STR("gitlab.com"), &l.err), ERR_NOT_FOUND);
    lab_stop(&l);
}

TEST(archive_forges, defaults_follow_the_kind)
{
    struct lab l;

    lab_start(&l);
    LAB_OK(set(&l, (struct forge_change){
                       .host = STR("Git.Example:8443"), .has_kind = true, .kind = FORGE_GITEA}));
    struct forge f = find(&l, l.forges, "git.example:8443");
    CHECK_STR(f.api, STR("https://git.example:8443/api/v1"));
    CHECK_STR(f.git, STR("https://git.example:8443"));
    CHECK_STR(f.bucket, STR("git.example-8443"));
    CHECK(f.allow_private && f.source == FORGE_STORED && !f.git_given);
    LAB_OK(set(&l, (struct forge_change){.host = STR("127.0.0.1"),
                                         .has_kind = true,
                                         .kind = FORGE_GITLAB,
                                         .git = STR("http://10.0.0.1/x//"),
                                         .has_wants = true,
                                         .wants = {.wikis = true}}));
    f = find(&l, l.forges, "127.0.0.1");
    CHECK_STR(f.api, STR("https://127.0.0.1/api/v4"));
    CHECK_STR(f.git, STR("http://10.0.0.1/x"));
    CHECK_STR(f.bucket, STR("127-0-0-1"));
    CHECK(f.git_given && f.wants.wikis && !f.wants.zip);
    lab_stop(&l);
}

TEST(archive_forges, wrong_values_are_refused)
{
    struct lab l;
    const struct str bad[] = {STR("has blank")};

    lab_start(&l);
    CHECK_INT(set(&l, (struct forge_change){.host = STR("a.example")}), ERR_INVALID); /* kind */
    CHECK_INT(set(&l, (struct forge_change){.host = STR("../x"), .has_kind = true}), ERR_INVALID);
    CHECK_INT(set(&l, (struct forge_change){.host = STR("a.example"),
                                            .has_kind = true,
                                            .api = STR("ftp://a/")}),
              ERR_INVALID);
    CHECK_INT(set(&l, (struct forge_change){.host = STR("a.example"),
                                            .has_kind = true,
                                            .api = STR("https://u:p@a/")}),
              ERR_INVALID);
    CHECK_INT(
        set(&l,
            (struct forge_change){.host = STR("a.example"), .has_kind = true, .bucket = STR("NO")}),
        ERR_INVALID);
    CHECK_INT(set(&l,
                  (struct forge_change){
                      .host = STR("a.example"), .has_kind = true, .tokens = bad, .token_count = 1}),
              ERR_INVALID);
    lab_stop(&l);
}

TEST(archive_forges, tokens_are_sealed_and_seen_by_other_processes)
{
    struct lab l;
    const struct str tokens[] = {STR("ghp_first-secret"), STR("ghp_second-secret")};
    struct reply *reply;
    struct buf text = {0};

    lab_start(&l);
    struct forges *other = open_forges(&l, NULL);
    LAB_OK(set(
        &l, (struct forge_change){.host = STR("github.com"), .tokens = tokens, .token_count = 2}));
    CHECK_SOON(find(&l, other, "github.com").tokens == 2); /* by a message */
    CHECK(!find(&l, other, "github.com").allow_private);
    struct forge_entry *mine = forges_get(l.forges, STR("github.com"));
    struct forge_entry *theirs = forges_get(other, STR("github.com"));
    for (size_t i = 0; i < 2; i++)
        for (size_t k = 0; k < 2; k++)
            if (str_eq(mine->tokens.items[i].id, theirs->tokens.items[k].id))
                CHECK_STR(mine->tokens.items[i].secret, theirs->tokens.items[k].secret);
    LAB_OK(store_call(l.four.stores[DB_CONFIG], &l.arena, &reply, &l.err, STR("HGETALL"),
                      STR("forge_tokens:github.com")));
    reply_print(&text, reply);
    CHECK(reply->count == 4 && str_find(buf_str(&text), STR("secret")) < 0);
    struct str id = arena_str(&l.arena, mine->tokens.items[0].id);
    forge_entry_unref(mine);
    forge_entry_unref(theirs);
    LAB_OK(forges_remove_token(l.forges, STR("github.com"), id, &l.err));
    CHECK_INT(forges_remove_token(l.forges, STR("github.com"), id, &l.err), ERR_NOT_FOUND);
    CHECK_INT(find(&l, l.forges, "github.com").tokens, 1);
    LAB_OK(forges_remove(l.forges, STR("github.com"), &l.err));
    CHECK_INT(find(&l, l.forges, "github.com").tokens, 0);
    CHECK_SOON(find(&l, other, "github.com").source == FORGE_BUILT_IN);
    buf_release(&text);
    forges_close(other);
    lab_stop(&l);
}

TEST(archive_forges, a_session_keeps_its_forge_while_that_changes)
{
    struct lab l;
    const struct str tokens[] = {STR("token-one")};
    struct forge_session *s;
    struct str user, token;

    lab_start(&l);
    LAB_OK(set(&l, (struct forge_change){.host = STR("a.example"),
                                         .has_kind = true,
                                         .kind = FORGE_GITLAB,
                                         .tokens = tokens,
                                         .token_count = 1}));
    LAB_OK(forge_session_open(&s, l.forges, STR("a.example"), NULL, &l.err));
    LAB_OK(forges_remove(l.forges, STR("a.example"), &l.err));
    forge_git_auth(s, &user, &token);
    CHECK_STR(user, STR("oauth2"));
    CHECK_STR(token, STR("token-one"));
    forge_session_close(s);
    CHECK_INT(forge_session_open(&s, l.forges, STR("a.example"), NULL, &l.err), ERR_NOT_FOUND);
    lab_stop(&l);
}

TEST(archive_forges, the_file_wins_over_the_store)
{
    static const char yaml[] = "forges:\n"
                               "  github.com: {token: 'tok-a, tok-b', wikis: true}\n"
                               "  \"Git.Example:8443\":\n"
                               "    kind: gitea\n"
                               "    api: http://127.0.0.1:3000/api/v1\n"
                               "    bucket: gitea-mirror\n"
                               "    zip: false\n";
    struct lab l;
    struct conf *conf;
    struct buf problems = {0};

    lab_start(&l);
    LAB_OK(
        set(&l, (struct forge_change){.host = STR("github.com"), .bucket = STR("stored-bucket")}));
    LAB_OK(conf_load_text(&conf, "weir.yaml", str_z(yaml), &problems));
    struct forges *f = open_forges(&l, conf);
    struct forge github = find(&l, f, "github.com"), gitea = find(&l, f, "git.example:8443");
    CHECK(github.source == FORGE_FIXED && github.tokens == 2 && github.wants.wikis);
    CHECK_STR(github.bucket, STR("github.com"));
    CHECK_STR(gitea.bucket, STR("gitea-mirror"));
    CHECK(gitea.kind == FORGE_GITEA && gitea.allow_private && !gitea.wants.zip);
    CHECK_INT(forges_remove(f, STR("git.example:8443"), &l.err), ERR_INVALID);
    bool was_new;
    CHECK_INT(
        forges_set(f, &(struct forge_change){.host = STR("git.example:8443")}, &was_new, &l.err),
        ERR_INVALID);
    forges_close(f);
    conf_unref(conf);
    buf_release(&problems);
    lab_stop(&l);
}

TEST(archive_forges, options_are_a_list_of_words)
{
    struct forge_wants w;
    struct buf text = {0};
    struct err err = {0};

    CHECK_OK(forge_wants_read(&w, STR("wikis, lfs,zip"), &err));
    forge_wants_write(&text, &w);
    CHECK_STR(buf_str(&text), STR("zip,wikis,lfs"));
    CHECK_INT(forge_wants_read(&w, STR("wikis,stars"), &err), ERR_INVALID);
    CHECK(w.lfs);
    buf_release(&text);
}

/* --- buckets --- */

static int set_gitea(struct lab *l, const char *host, const char *bucket)
{
    return set(l, (struct forge_change){.host = str_z(host),
                                        .bucket = str_z(bucket),
                                        .has_kind = true,
                                        .kind = FORGE_GITEA});
}

TEST(archive_forges, no_forge_gets_the_bucket_of_another_one)
{
    struct lab l;

    lab_start(&l);
    CHECK_INT(set_gitea(&l, "a.example", "github.com"), ERR_CONFLICT);
    CHECK(strstr(l.err.text, "github.com") != NULL);
    LAB_OK(set_gitea(&l, "a:3000", ""));
    CHECK_INT(set_gitea(&l, "a-3000", ""), ERR_CONFLICT); /* both defaults are `a-3000` */
    CHECK(strstr(l.err.text, "a:3000") != NULL);
    LAB_OK(set_gitea(&l, "a-3000", "other"));
    CHECK_INT(set_gitea(&l, "a-3000", "a-3000"), ERR_CONFLICT);
    CHECK_STR(find(&l, l.forges, "a-3000").bucket, STR("other"));
    LAB_OK(set_gitea(&l, "a:3000", "a-3000")); /* its own */
    LAB_OK(forges_remove(l.forges, STR("a:3000"), &l.err));
    LAB_OK(set_gitea(&l, "a-3000", "a-3000"));
    lab_stop(&l);
}

/* What an earlier version of weir, or two processes at once, may have stored. */
static void store_forge(struct lab *l, const char *host, const char *bucket)
{
    struct reply *reply;
    struct err err = {0};

    CHECK_OK(store_call(l->four.stores[DB_CONFIG], &l->arena, &reply, &err, STR("HSET"),
                        arena_fmt(&l->arena, "forge:%s", host), STR("kind"), STR("gitea"),
                        STR("bucket"), str_z(bucket)));
    CHECK_OK(store_call(l->four.stores[DB_CONFIG], &l->arena, &reply, &err, STR("SADD"),
                        STR("forges"), str_z(host)));
}

TEST(archive_forges, a_stored_forge_with_the_bucket_of_another_one_is_not_used)
{
    struct lab l;
    struct forge forge;
    struct forge *list;
    struct str bucket;
    size_t count;

    lab_start(&l);
    store_forge(&l, "a.example", "one");
    store_forge(&l, "b.example", "one");
    store_forge(&l, "c.example", "github.com");
    LAB_OK(forges_reload(l.forges, &l.err));
    CHECK_STR(find(&l, l.forges, "a.example").bucket, STR("one"));
    CHECK_INT(forges_find(l.forges, &l.arena, STR("b.example"), &forge, &l.err), ERR_NOT_FOUND);
    CHECK_INT(forges_find(l.forges, &l.arena, STR("c.example"), &forge, &l.err), ERR_NOT_FOUND);
    LAB_OK(forges_list(l.forges, &l.arena, &list, &count, &l.err));
    CHECK_INT(count, 2);
    /* Objects of a host that weir does not know never go into the bucket of a forge. */
    LAB_OK(forges_bucket(l.forges, &l.arena, STR("d:1"), &bucket, &l.err));
    CHECK_STR(bucket, STR("d-1"));
    LAB_OK(set_gitea(&l, "d-1", ""));
    CHECK_INT(forges_bucket(l.forges, &l.arena, STR("d:1"), &bucket, &l.err), ERR_CONFLICT);
    /* A bucket of its own repairs it. */
    LAB_OK(set_gitea(&l, "b.example", "two"));
    CHECK_STR(find(&l, l.forges, "b.example").bucket, STR("two"));
    LAB_OK(forges_remove(l.forges, STR("c.example"), &l.err));
    lab_stop(&l);
}

static void expect_conf(struct lab *l, const char *yaml, int wanted)
{
    struct conf *conf;
    struct forges *f = NULL;
    struct buf problems = {0};
    struct err err = {0};

    CHECK_OK(conf_load_text(&conf, "weir.yaml", str_z(yaml), &problems));
    CHECK_INT(forges_open(&f,
                          &(struct forges_options){.config = l->four.stores[DB_CONFIG],
                                                   .app = l->four.stores[DB_APP],
                                                   .key_file = l->key_file,
                                                   .conf = conf},
                          &l->err),
              wanted);
    forges_close(f);
    conf_unref(conf);
    buf_release(&problems);
}

TEST(archive_forges, a_file_with_two_forges_of_one_bucket_is_refused)
{
    struct lab l;

    lab_start(&l);
    expect_conf(&l,
                "forges:\n"
                "  'a:3000': {kind: gitea}\n"
                "  'a-3000': {kind: gitea}\n",
                ERR_CONFLICT);
    CHECK(strstr(l.err.text, "a:3000") && strstr(l.err.text, "a-3000"));
    expect_conf(&l, "forges:\n  a.example: {kind: gitea, bucket: github.com}\n", ERR_CONFLICT);
    expect_conf(&l,
                "forges:\n"
                "  github.com: {bucket: hub}\n"
                "  a.example: {kind: gitea, bucket: github.com}\n",
                0);
    lab_stop(&l);
}

static int keep_bucket(void *ctx, struct str host, struct str bucket, struct err *err)
{
    CHECK(ctx != NULL);
    CHECK_STR(host, STR("a.example"));
    CHECK_STR(bucket, STR("one"));
    return err_set(err, ERR_CONFLICT, "it has objects");
}

TEST(archive_forges, a_bucket_with_objects_is_kept)
{
    struct lab l;
    struct forge_change c = {.host = STR("a.example"), .leaves = keep_bucket, .ctx = &l};

    lab_start(&l);
    LAB_OK(set_gitea(&l, "a.example", "one"));
    LAB_OK(set(&l, c));
    c.bucket = STR("one");
    LAB_OK(set(&l, c));
    c.bucket = STR("two");
    CHECK_INT(set(&l, c), ERR_CONFLICT);
    CHECK_STR(find(&l, l.forges, "a.example").bucket, STR("one"));
    lab_stop(&l);
}
