/* Action files: what they mean, and what is refused. */
#include "lake/action_file.h"
#include "unit/test.h"

#include <stdio.h>

static const char whole[] = "name: check formats\n"
                            "description: asks the checker\n"
                            "on:\n"
                            "  pre-merge:\n"
                            "    branches: [main, \"release-*\"]\n"
                            "  post-commit:\n"
                            "hooks:\n"
                            "  - id: formats\n"
                            "    type: webhook\n"
                            "    properties:\n"
                            "      url: https://checker.example/lake\n"
                            "      timeout: 30s\n"
                            "      headers:\n"
                            "        X-Two: b\n"
                            "        X-One: \"a {{ ENV.LAKEFSACTION_TOKEN }}\"\n"
                            "      query_params: {level: strict}\n"
                            "  - id: report\n"
                            "    type: lua\n"
                            "    if: failure()\n";

TEST(lake_action_file, a_file_is_read_whole)
{
    struct arena a = {0};
    struct action act;
    struct err err = {0};

    CHECK_OK(action_read(&act, &a, STR(whole), &err));
    CHECK_STR(act.name, STR("check formats"));
    CHECK_STR(act.description, STR("asks the checker"));
    CHECK_INT(act.event_count, 2);
    CHECK_INT(act.hook_count, 2);
    CHECK_STR(act.hooks[0].id, STR("formats"));
    CHECK_STR(act.hooks[0].url, STR("https://checker.example/lake"));
    CHECK_INT(act.hooks[0].timeout_ms, 30000);
    CHECK_INT(act.hooks[0].when, ACTION_ON_SUCCESS);
    CHECK_INT(act.hooks[0].headers.count, 2);
    CHECK_STR(act.hooks[0].headers.pairs[0].key, STR("X-One"));
    CHECK_STR(act.hooks[0].query.pairs[0].value, STR("strict"));
    CHECK_STR(act.hooks[1].type, STR("lua"));
    CHECK_INT(act.hooks[1].when, ACTION_ON_FAILURE);
    CHECK(action_matches(&act, STR("pre-merge"), STR("main")));
    CHECK(action_matches(&act, STR("pre-merge"), STR("release-1")));
    CHECK(!action_matches(&act, STR("pre-merge"), STR("dev")));
    CHECK(action_matches(&act, STR("post-commit"), STR("dev")));
    CHECK(!action_matches(&act, STR("pre-commit"), STR("main")));
    arena_release(&a);
}

#define HOOK "hooks: [{id: a, type: webhook, properties: {url: \"http://x/\"}}]\n"
#define ON   "on: {pre-commit: {branches: [a]}}\n"

/* Each text, and a part of what the error says. */
static const char *const bad[][2] = {
    {"", "1 to"},
    {"# nothing\n", "empty"},
    {"- a\n", "map"},
    {"name: x\n", "'on' is missing"},
    {"name: x\n" ON, "'hooks' is missing"},
    {ON HOOK, "'name' is missing"},
    {"name: x\nname: y\n" ON HOOK, "line 2: the key is there twice"},
    {"name: x\nother: y\n" ON HOOK, "'other' is not known"},
    {"name: [x]\n" ON HOOK, "a text is expected"},
    {"name: x\non: {pre-commits: {}}\n" HOOK, "'pre-commits' is not an event"},
    {"name: x\non: {}\n" HOOK, "no event"},
    {"name: x\non: {pre-commit: {tags: [a]}}\n" HOOK, "'tags' is not known"},
    {"name: x\non: {pre-commit: {branches: main}}\n" HOOK, "a list is expected"},
    {"name: x\n" ON "hooks: []\n", "no hook"},
    {"name: x\n" ON "hooks: [{id: a, type: webhook}]\n", "'properties' is missing"},
    {"name: x\n" ON "hooks: [{id: a}]\n", "'type' is missing"},
    {"name: x\n" ON "hooks: [{id: a, type: webhook, properties: {}}]\n", "'url' is missing"},
    {"name: x\n" ON "hooks: [{id: a, type: webhook, properties: {url: \"file:///x\"}}]\n", "http"},
    {"name: x\n" ON
     "hooks: [{id: a, type: webhook, properties: {url: \"http://x\", timeout: 1d}}]\n",
     "timeout"},
    {"name: x\n" ON "hooks: [{id: a, type: webhook, properties: {url: \"http://x\", headers: {a: "
     "\"b\\r\\nc\"}}}]\n",
     "control character"},
    {"name: x\n" ON "hooks: [{id: a, type: lua, if: sometimes()}]\n", "'if' is"},
    {"name: x\n" ON "hooks: [{id: a, type: lua}, {id: a, type: lua}]\n", "same id"},
    {"name: &x y\n" ON HOOK, "anchors"},
    {"name: x\n" ON HOOK "---\nname: y\n", "one document"},
    {"name: {{{{{{{{{{{{{{{{{{{{ \n", "line 1"},
    {"name: [[[[[[[[[[[[[[[[[[[[x]]]]]]]]]]]]]]]]]]]]\n", "nested too deeply"},
};

TEST(lake_action_file, mistakes_are_refused_with_their_line)
{
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct arena a = {0};
        struct action act;
        struct err err = {0};
        int code = action_read(&act, &a, str_z(bad[i][0]), &err);
        if (code != ERR_INVALID || str_find(str_z(err.text), str_z(bad[i][1])) < 0)
            test_fail(__FILE__, __LINE__, "case %zu: %d, %s", i, code, err.text);
        arena_release(&a);
    }
}

TEST(lake_action_file, a_file_with_too_many_values_is_refused)
{
    struct arena a = {0};
    struct buf text = {0};
    struct action act;
    struct err err = {0};

    buf_append_z(&text, "name: x\n" HOOK "on: {pre-commit: {branches: [");
    for (int i = 0; i < ACTION_NODES_MAX; i++)
        buf_append_z(&text, "a,");
    buf_append_z(&text, "a]}}\n");
    CHECK_ERR(action_read(&act, &a, buf_str(&text), &err), ERR_INVALID);
    CHECK(str_find(str_z(err.text), STR("too many values")) >= 0);
    buf_release(&text);
    arena_release(&a);
}

/* --- names of headers --- */

/* Reads a file whose hook has this header. */
static int read_header(const char *name, struct err *err)
{
    struct arena a = {0};
    struct buf text = {0};
    struct action act;

    buf_appendf(&text,
                "name: x\n" ON "hooks: [{id: a, type: webhook, properties: {url: \"http://x\", "
                "headers: {\"%s\": b}}}]\n",
                name);
    int code = action_read(&act, &a, buf_str(&text), err);
    buf_release(&text);
    arena_release(&a);
    return code;
}

TEST(lake_action_file, headers_of_the_framing_and_the_host_are_refused_by_name)
{
    static const char *const own[] = {"Host",    "host",   "CONTENT-LENGTH", "Transfer-Encoding",
                                      "Trailer", "Expect", "Connection",     "Upgrade",
                                      "te"};

    for (size_t i = 0; i < ARRAY_SIZE(own); i++) {
        struct err err = {0};
        CHECK_ERR(read_header(own[i], &err), ERR_INVALID);
        if (str_find(str_z(err.text), STR("cannot set the header")) < 0)
            test_fail(__FILE__, __LINE__, "%s: %s", own[i], err.text);
    }
}

TEST(lake_action_file, the_name_of_a_header_is_a_token)
{
    static const char *const bad_names[] = {"Host: x", "Host ", " Host", "a b", "a;", ""};
    struct err err = {0};

    for (size_t i = 0; i < ARRAY_SIZE(bad_names); i++)
        CHECK_ERR(read_header(bad_names[i], &err), ERR_INVALID);
    CHECK_OK(read_header("X-Hosts_1", &err));
    CHECK_OK(read_header("Authorization", &err));
}

/* --- variables --- */

static const char *variable(void *ctx, const char *name)
{
    return strcmp(name, "LAKEFSACTION_TOKEN") == 0 ? ctx : NULL;
}

static struct str expanded(struct buf *out, const char *text, int want)
{
    static char token[] = "secret";
    struct err err = {0};

    buf_reset(out);
    CHECK_ERR(action_expand(out, str_z(text), variable, token, &err), want);
    return buf_str(out);
}

TEST(lake_action_file, variables_are_replaced_if_their_name_allows_it)
{
    struct buf out = {0};

    CHECK_STR(expanded(&out, "plain", 0), STR("plain"));
    CHECK_STR(expanded(&out, "a {{ ENV.LAKEFSACTION_TOKEN }} b{{ENV.LAKEFSACTION_TOKEN}}", 0),
              STR("a secret bsecret"));
    CHECK_STR(expanded(&out, "{{ not closed", 0), STR("{{ not closed"));
    expanded(&out, "{{ ENV.PATH }}", ERR_INVALID);
    expanded(&out, "{{ LAKEFSACTION_TOKEN }}", ERR_INVALID);
    expanded(&out, "{{ ENV.LAKEFSACTION_OTHER }}", ERR_INVALID);
    expanded(&out, "{{}}", ERR_INVALID);
    buf_release(&out);
}
