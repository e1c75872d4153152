/* Reads action files and checks them. */
#include "lake/action_file.h"
#include "lake/action_yaml.h"
#include "lake/protect.h"

#include <stdlib.h>

static const char *const action_events[] = {
    "prepare-commit",     "pre-commit",        "post-commit",        "pre-merge",
    "post-merge",         "pre-revert",        "post-revert",        "pre-cherry-pick",
    "post-cherry-pick",   "pre-create-branch", "post-create-branch", "pre-delete-branch",
    "post-delete-branch", "pre-create-tag",    "post-create-tag",    "pre-delete-tag",
    "post-delete-tag",
};

static const struct action_condition {
    const char *text;
    enum action_when when;
} action_conditions[] = {
    {"success()", ACTION_ON_SUCCESS},  {"failure()", ACTION_ON_FAILURE},
    {"!success()", ACTION_ON_FAILURE}, {"!failure()", ACTION_ON_SUCCESS},
    {"true", ACTION_ALWAYS},           {"false", ACTION_NEVER},
};

static int action_fail(const struct action_node *n, const char *what, struct err *err)
{
    return err_set(err, ERR_INVALID, "line %zu: %s", n->line, what);
}

/* --- shapes --- */

static int action_check_kind(const struct action_node *n, enum action_kind kind, struct err *err)
{
    static const char *const wants[] = {"a text is expected here", "a map is expected here",
                                        "a list is expected here"};

    return n->kind == kind ? 0 : action_fail(n, wants[kind], err);
}

/* Checks that the map has only the keys in `keys`, an array that ends with NULL. */
static int action_check_keys(const struct action_node *map, const char *const *keys,
                             struct err *err)
{
    int code = action_check_kind(map, ACTION_MAP, err);

    for (const struct action_node *n = map->first; n && code == 0; n = n->next) {
        size_t i = 0;
        while (keys[i] && !str_eq(n->key, str_z(keys[i])))
            i++;
        if (!keys[i])
            code = err_set(err, ERR_INVALID, "line %zu: '" STR_FMT "' is not known here", n->line,
                           STR_ARG(str_head(n->key, 100)));
    }
    return code;
}

/* Reads the text of the member `key` of a map. If `is_needed` is set, a missing or empty text is an
 * error. */
static int action_take_text(const struct action_node *map, const char *key, bool is_needed,
                            struct str *out, struct err *err)
{
    const struct action_node *n = action_yaml_member(map, key);

    *out = STR_EMPTY;
    if (n && action_check_kind(n, ACTION_TEXT, err) < 0)
        return ERR_INVALID;
    if (n)
        *out = n->text;
    if (is_needed && out->len == 0)
        return err_set(err, ERR_INVALID, "line %zu: '%s' is missing", map->line, key);
    return 0;
}

static size_t action_count(const struct action_node *n)
{
    size_t count = 0;

    for (n = n->first; n; n = n->next)
        count++;
    return count;
}

/* --- events --- */

static int action_read_branches(struct action_event *out, struct arena *a,
                                const struct action_node *list, struct err *err)
{
    int code = action_check_kind(list, ACTION_LIST, err);

    out->branches = arena_array(a, action_count(list) + 1, sizeof(*out->branches));
    if (code == 0 && !out->branches)
        code = err_code(err, ERR_NO_MEMORY);
    for (const struct action_node *n = list->first; n && code == 0; n = n->next) {
        code = action_check_kind(n, ACTION_TEXT, err);
        if (code == 0 && n->text.len == 0)
            code = action_fail(n, "a pattern of branches is empty", err);
        out->branches[out->branch_count++] = n->text;
    }
    return code;
}

/* Reads the value of an event: a map with a list of branches, or no value, which means every
 * branch. */
static int action_read_event(struct action_event *out, struct arena *a, const struct action_node *n,
                             struct err *err)
{
    static const char *const keys[] = {"branches", NULL};
    size_t i = 0;

    while (i < ARRAY_SIZE(action_events) && !str_eq(n->key, str_z(action_events[i])))
        i++;
    if (i == ARRAY_SIZE(action_events))
        return err_set(err, ERR_INVALID, "line %zu: '" STR_FMT "' is not an event", n->line,
                       STR_ARG(str_head(n->key, 100)));
    *out = (struct action_event){.name = n->key};
    if (n->kind == ACTION_TEXT &&
        (n->text.len == 0 || str_eq(n->text, STR("null")) || str_eq(n->text, STR("~"))))
        return 0;
    int code = action_check_keys(n, keys, err);
    const struct action_node *branches = code == 0 ? action_yaml_member(n, "branches") : NULL;
    return branches ? action_read_branches(out, a, branches, err) : code;
}

static int action_read_events(struct action *out, struct arena *a, const struct action_node *root,
                              struct err *err)
{
    const struct action_node *on = action_yaml_member(root, "on");

    if (!on)
        return action_fail(root, "'on' is missing", err);
    int code = action_check_kind(on, ACTION_MAP, err);
    size_t count = code == 0 ? action_count(on) : 0;
    if (code == 0 && (count == 0 || count > ACTION_EVENTS_MAX))
        code = action_fail(on, "'on' names no event, or too many", err);
    if (code == 0 && !(out->events = arena_array(a, count, sizeof(*out->events))))
        code = err_code(err, ERR_NO_MEMORY);
    for (const struct action_node *n = on->first; n && code == 0; n = n->next)
        code = action_read_event(&out->events[out->event_count++], a, n, err);
    return code;
}

/* --- hooks --- */

static int action_pair_order(const void *a, const void *b)
{
    const struct str_pair *l = a, *r = b;

    return str_cmp(l->key, r->key);
}

static int action_read_pairs(struct str_pairs *out, struct arena *a, const struct action_node *map,
                             struct err *err)
{
    int code = action_check_kind(map, ACTION_MAP, err);

    out->pairs = arena_array(a, action_count(map) + 1, sizeof(*out->pairs));
    if (code == 0 && !out->pairs)
        code = err_code(err, ERR_NO_MEMORY);
    for (const struct action_node *n = map->first; n && code == 0; n = n->next) {
        code = action_check_kind(n, ACTION_TEXT, err);
        for (size_t i = 0; code == 0 && i < n->key.len + n->text.len; i++) {
            char c = i < n->key.len ? n->key.p[i] : n->text.p[i - n->key.len];
            if ((unsigned char)c < ' ' || c == 0x7f)
                code = action_fail(n, "a control character", err);
        }
        out->pairs[out->count++] = (struct str_pair){n->key, n->text};
    }
    if (code == 0)
        qsort(out->pairs, out->count, sizeof(*out->pairs), action_pair_order);
    return code;
}

/* Whether the name is a token by RFC 9110, as the name of a header must be. */
static bool action_is_token(struct str name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.p[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              (c && strchr("!#$%&'*+-.^_`|~", c))))
            return false;
    }
    return name.len > 0;
}

/* Checks the names of headers. A file must not set the headers that weir sets itself: those that
 * delimit the body of the request or name its host. */
static int action_check_headers(const struct action_node *map, struct err *err)
{
    static const char *const own[] = {"Host",       "Content-Length", "Transfer-Encoding",
                                      "Connection", "Expect",         "TE",
                                      "Upgrade",    "Trailer"};

    for (const struct action_node *n = map->first; n; n = n->next) {
        for (size_t i = 0; i < ARRAY_SIZE(own); i++)
            if (str_ieq(n->key, str_z(own[i])))
                return err_set(err, ERR_INVALID, "line %zu: a hook cannot set the header %s",
                               n->line, own[i]);
        if (!action_is_token(n->key))
            return action_fail(n, "the name of a header has letters, digits and !#$%&'*+-.^_`|~",
                               err);
    }
    return 0;
}

static int action_read_timeout(struct action_hook *out, const struct action_node *p,
                               struct err *err)
{
    struct str text;
    int code = action_take_text(p, "timeout", false, &text, err);

    out->timeout_ms = ACTION_TIMEOUT_MS;
    if (code < 0 || text.len == 0)
        return code;
    if (str_duration_ms(text, &out->timeout_ms) < 0 || out->timeout_ms == 0 ||
        out->timeout_ms > ACTION_TIMEOUT_MAX_MS)
        return action_fail(p, "'timeout' is a time such as 30s, at most 10m", err);
    return 0;
}

static int action_read_webhook(struct action_hook *out, struct arena *a,
                               const struct action_node *p, struct err *err)
{
    static const char *const keys[] = {"url", "timeout", "headers", "query_params", NULL};
    int code = action_check_keys(p, keys, err);

    if (code == 0)
        code = action_take_text(p, "url", true, &out->url, err);
    if (code == 0 && !str_starts(out->url, STR("http://")) &&
        !str_starts(out->url, STR("https://")))
        code = action_fail(p, "'url' begins with http:// or https://", err);
    if (code == 0)
        code = action_read_timeout(out, p, err);
    const struct action_node *headers = code == 0 ? action_yaml_member(p, "headers") : NULL;
    const struct action_node *query = code == 0 ? action_yaml_member(p, "query_params") : NULL;
    if (headers)
        code = action_read_pairs(&out->headers, a, headers, err);
    if (code == 0 && headers)
        code = action_check_headers(headers, err);
    if (code == 0 && query)
        code = action_read_pairs(&out->query, a, query, err);
    return code;
}

static int action_read_condition(struct action_hook *out, const struct action_node *hook,
                                 struct err *err)
{
    struct str text;
    int code = action_take_text(hook, "if", false, &text, err);
    size_t i = 0;

    text = str_trim(text);
    if (code < 0 || text.len == 0)
        return code;
    while (i < ARRAY_SIZE(action_conditions) && !str_eq(text, str_z(action_conditions[i].text)))
        i++;
    if (i == ARRAY_SIZE(action_conditions))
        return action_fail(hook, "'if' is success(), failure(), true or false", err);
    out->when = action_conditions[i].when;
    return 0;
}

/* Reads a hook. Hooks of other types than webhooks are read too, so that the code that runs hooks
 * can name the unknown type in its error. */
static int action_read_hook(struct action_hook *out, struct arena *a,
                            const struct action_node *hook, struct err *err)
{
    static const char *const keys[] = {"id", "type", "if", "description", "properties", NULL};
    int code = action_check_keys(hook, keys, err);

    if (code == 0)
        code = action_take_text(hook, "id", true, &out->id, err);
    if (code == 0)
        code = action_take_text(hook, "type", true, &out->type, err);
    if (code == 0)
        code = action_read_condition(out, hook, err);
    const struct action_node *p = code == 0 ? action_yaml_member(hook, "properties") : NULL;
    if (code < 0 || !str_eq(out->type, STR("webhook")))
        return code;
    return p ? action_read_webhook(out, a, p, err)
             : action_fail(hook, "'properties' is missing", err);
}

static int action_read_hooks(struct action *out, struct arena *a, const struct action_node *root,
                             struct err *err)
{
    const struct action_node *hooks = action_yaml_member(root, "hooks");

    if (!hooks)
        return action_fail(root, "'hooks' is missing", err);
    int code = action_check_kind(hooks, ACTION_LIST, err);
    size_t count = code == 0 ? action_count(hooks) : 0;
    if (code == 0 && (count == 0 || count > ACTION_HOOKS_MAX))
        code = action_fail(hooks, "'hooks' has no hook, or too many", err);
    if (code == 0 && !(out->hooks = arena_array(a, count, sizeof(*out->hooks))))
        code = err_code(err, ERR_NO_MEMORY);
    for (const struct action_node *n = hooks->first; n && code == 0; n = n->next) {
        code = action_read_hook(&out->hooks[out->hook_count], a, n, err);
        for (size_t i = 0; i < out->hook_count && code == 0; i++)
            if (str_eq(out->hooks[i].id, out->hooks[out->hook_count].id))
                code = action_fail(n, "two hooks have the same id", err);
        out->hook_count++;
    }
    return code;
}

int action_read(struct action *out, struct arena *a, struct str text, struct err *err)
{
    static const char *const keys[] = {"name", "description", "on", "hooks", NULL};
    struct action_node *root = NULL;
    int code = action_yaml_read(&root, a, text, err);

    *out = (struct action){0};
    if (code == 0)
        code = action_check_keys(root, keys, err);
    if (code == 0)
        code = action_take_text(root, "name", true, &out->name, err);
    if (code == 0)
        code = action_take_text(root, "description", false, &out->description, err);
    if (code == 0)
        code = action_read_events(out, a, root, err);
    return code < 0 ? code : action_read_hooks(out, a, root, err);
}

/* --- use --- */

static bool action_event_matches(const struct action_event *e, struct str branch)
{
    bool matches = e->branch_count == 0 || branch.len == 0;

    for (size_t i = 0; i < e->branch_count && !matches; i++)
        matches = lake_pattern_matches(e->branches[i], branch);
    return matches;
}

bool action_matches(const struct action *act, struct str event, struct str branch)
{
    for (size_t i = 0; i < act->event_count; i++)
        if (str_eq(act->events[i].name, event))
            return action_event_matches(&act->events[i], branch);
    return false;
}

static int action_expand_name(struct buf *out, struct str name, action_lookup_fn *lookup, void *ctx,
                              struct err *err)
{
    char text[256];
    const char *value = NULL;

    if (!str_starts(name, STR("ENV.LAKEFSACTION_")) || name.len >= sizeof(text))
        return err_set(err, ERR_INVALID,
                       "'" STR_FMT "' is not a variable that begins with LAKEFSACTION_",
                       STR_ARG(str_head(name, 100)));
    name = str_skip(name, sizeof("ENV.") - 1);
    memcpy(text, name.p, name.len);
    text[name.len] = 0;
    value = lookup(ctx, text);
    if (!value)
        return err_set(
            err, ERR_INVALID,
            "the variable %s is not set, or lake.hooks.variables does not name it for this host",
            text);
    buf_append_z(out, value);
    return 0;
}

int action_expand(struct buf *out, struct str text, action_lookup_fn *lookup, void *ctx,
                  struct err *err)
{
    int code = 0;

    while (code == 0 && text.len) {
        ptrdiff_t open = str_find(text, STR("{{"));
        ptrdiff_t close = open < 0 ? -1 : str_find(str_skip(text, (size_t)open), STR("}}"));
        if (close < 0) {
            buf_append_str(out, text);
            break;
        }
        struct str name = str_head(str_skip(text, (size_t)open + 2), (size_t)close - 2);
        buf_append_str(out, str_head(text, (size_t)open));
        code = action_expand_name(out, str_trim(name), lookup, ctx, err);
        text = str_skip(text, (size_t)(open + close) + 2);
    }
    return code < 0 ? code : buf_error(out);
}
