/* Calls about settings of a repository: the rules of protected branches. */
#include "lake/protect.h"
#include "lake/rest/web.h"

static rest_fn protection_show, protection_set, protection_show_old, protection_add,
    protection_drop, protection_preflight;

enum { RULES_BODY_MAX = 256 * KIB };

static const struct rest_row setting_rows[] = {
    {HTTP_GET, "/api/v1/repositories/{repository}/settings/branch_protection", REST_USER,
     "The patterns of protected branches: a JSON array of {\"pattern\"}. The header ETag names "
     "this "
     "state of the rules.",
     protection_show, WEB_OP("getBranchProtectionRules"), WEB_IN_REPO, .media = "application/json"},
    {HTTP_PUT, "/api/v1/repositories/{repository}/settings/branch_protection", REST_USER,
     "Replaces the patterns of protected branches. With the header If-Match only when the rules "
     "are still those.",
     protection_set, WEB_OP("setBranchProtectionRules"), WEB_IN_REPO, .status = 204,
     .raw_body = "A JSON array of {\"pattern\"}.", .raw_max = RULES_BODY_MAX},
    {HTTP_GET, "/api/v1/repositories/{repository}/branch_protection", REST_USER,
     "The patterns of protected branches, for old clients.", protection_show_old,
     WEB_OP("internalGetBranchProtectionRules"), WEB_IN_REPO, .media = "application/json"},
    {HTTP_POST, "/api/v1/repositories/{repository}/branch_protection", REST_USER,
     "Adds a pattern of protected branches, for old clients.", protection_add,
     WEB_OP("internalCreateBranchProtectionRule"), WEB_IN_REPO, .status = 204,
     .body = REST_FIELDS({"pattern", "The pattern.", .required = true})},
    {HTTP_DELETE, "/api/v1/repositories/{repository}/branch_protection", REST_USER,
     "Removes a pattern of protected branches, for old clients.", protection_drop,
     WEB_OP("internalDeleteBranchProtectionRule"), WEB_IN_REPO, .status = 204,
     .body = REST_FIELDS({"pattern", "The pattern.", .required = true})},
    {HTTP_GET, "/api/v1/repositories/{repository}/branch_protection/set_allowed", REST_USER,
     "204 when the caller may set the rules.", protection_preflight,
     WEB_OP("createBranchProtectionRulePreflight"), WEB_IN_REPO, .status = 204},
};
const struct rest_table web_setting_rows = WEB_ROWS(setting_rows);

static const struct web_ask may_set = {S3_ACTION_PUT_BUCKET_POLICY, {0}, {0}},
                            may_show = {S3_ACTION_LIST_BUCKET, {0}, {0}};

/* --- showing --- */

static int protection_send(struct rest_call *c, bool etag, struct err *err)
{
    struct lake_protection rules = {0};
    struct buf text = BUF_INIT(RULES_BODY_MAX);
    struct lake_repo repo;
    struct json_out w;
    int code = web_repo(c, may_show, &repo, err);

    if (code == 0)
        code = lake_protection_get(web_of(c)->lake, c->arena, &repo, &rules, err);
    if (code < 0)
        return code;
    json_out_init(&w, &text);
    json_out_open(&w, '[');
    for (size_t i = 0; i < rules.count; i++) {
        json_out_open(&w, '{');
        json_out_member_str(&w, "pattern", rules.rules[i].pattern);
        json_out_close(&w, '}');
    }
    json_out_close(&w, ']');
    if (etag)
        rest_header(c, STR("ETag"), rules.checksum);
    code = buf_error(&text) < 0 ? err_code(err, buf_error(&text)) : rest_send(c, buf_str(&text));
    buf_release(&text);
    return code;
}

static int protection_show(struct rest_call *c, struct err *err)
{
    return protection_send(c, true, err);
}

static int protection_show_old(struct rest_call *c, struct err *err)
{
    return protection_send(c, false, err);
}

static int protection_preflight(struct rest_call *c, struct err *err)
{
    struct lake_repo repo;

    return web_repo(c, may_set, &repo, err);
}

/* --- setting --- */

static struct lake_protection_rule protection_rule(struct str pattern)
{
    return (struct lake_protection_rule){pattern, LAKE_PROTECT_STAGING | LAKE_PROTECT_COMMIT};
}

/* Reads a JSON array of rules. */
static int protection_read(struct rest_call *c, const json_t *list, struct lake_protection *out,
                           struct err *err)
{
    const json_t *item;
    size_t i;

    if (!json_is_array(list))
        return err_set(err, ERR_INVALID, "the body must be a JSON array of {\"pattern\"}");
    out->rules = arena_array(c->arena, json_array_size(list) + 1, sizeof(*out->rules));
    if (!out->rules)
        return err_code(err, ERR_NO_MEMORY);
    json_array_foreach(list, i, item) out->rules[out->count++] =
        protection_rule(json_get_str(item, "pattern", STR_EMPTY));
    return 0;
}

static int protection_set(struct rest_call *c, struct err *err)
{
    struct str match = http_header(http_request_head(c->req), "If-Match");
    struct lake_protection rules = {0};
    struct lake_repo repo;
    json_t *list = NULL;
    int code = web_repo(c, may_set, &repo, err);

    if (code == 0)
        code = json_read(&list, rest_raw(c), err);
    if (code == 0)
        code = protection_read(c, list, &rules, err);
    if (match.p)
        match = web_bare_etag(match);
    if (code == 0)
        code = lake_protection_set(web_of(c)->lake, c->arena, &repo, &rules,
                                   match.p ? &match : NULL, err);
    json_decref(list);
    return code;
}

/* Adds or removes the rule of one pattern. If somebody else has changed the rules meanwhile, tries
 * again. */
static int protection_change(struct rest_call *c, bool add, struct err *err)
{
    struct str pattern = rest_text(c, "pattern");
    struct lake *lake = web_of(c)->lake;
    struct lake_protection old, next;
    struct lake_repo repo;
    int code = web_repo(c, may_set, &repo, err);

    for (bool again = code == 0; again;) {
        code = lake_protection_get(lake, c->arena, &repo, &old, err);
        next = (struct lake_protection){
            .rules = arena_array(c->arena, old.count + 1, sizeof(*next.rules))};
        if (code == 0 && !next.rules)
            code = err_code(err, ERR_NO_MEMORY);
        if (code < 0)
            return code;
        for (size_t i = 0; i < old.count; i++)
            if (!str_eq(old.rules[i].pattern, pattern))
                next.rules[next.count++] = old.rules[i];
        if (add == (next.count < old.count))
            return add ? err_set(err, ERR_EXISTS, "rule already exists")
                       : err_set(err, ERR_NOT_FOUND, "rule not found");
        if (add)
            next.rules[next.count++] = protection_rule(pattern);
        code = lake_protection_set(lake, c->arena, &repo, &next, &old.checksum, err);
        again = code == ERR_PRECONDITION;
    }
    return code;
}

static int protection_add(struct rest_call *c, struct err *err)
{
    return protection_change(c, true, err);
}

static int protection_drop(struct rest_call *c, struct err *err)
{
    return protection_change(c, false, err);
}
