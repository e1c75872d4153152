/* The common steps of all calls that write an object: the checks before any bytes are read, and
 * staging under the conditions of the request. */
#include "lake/lake_int.h"
#include "lake/names.h"
#include "lake/protect.h"
#include "lake/rest/web.h"
#include "object/condition.h"

int web_writable(struct rest_call *c, struct str path, bool force, struct lake_repo *out,
                 struct err *err)
{
    struct lake *lake = web_of(c)->lake;
    struct str branch = rest_text(c, "branch");
    struct lake_branch found;
    int code = web_repo(c, (struct web_ask){S3_ACTION_PUT_OBJECT, branch, path}, out, err);

    if (code == 0)
        code = lake_check_path(path, err);
    if (code == 0)
        code = lake_check_writable(out, force, err);
    if (code == 0)
        code = lake_branch_get(lake, c->arena, out, branch, &found, err);
    if (code == 0)
        code = lake_check_protection(lake, c->arena, out, branch, LAKE_PROTECT_STAGING, err);
    return code;
}

int web_check_value(const char *name, struct str value, struct err *err)
{
    enum { VALUE_MAX = 1024 };

    return value.len <= VALUE_MAX && str_is_utf8(value) && http_field_is_valid(STR("x"), value)
               ? 0
               : err_set(err, ERR_INVALID,
                         "%s must have at most %d bytes of UTF-8 without control characters", name,
                         VALUE_MAX);
}

struct object_conditions web_conditions(struct rest_call *c)
{
    const struct http_head *head = http_request_head(c->req);

    return (struct object_conditions){.if_match = http_header(head, "If-Match"),
                                      .if_none_match = http_header(head, "If-None-Match")};
}

int web_judge_write(void *ctx, struct str path, const struct lake_object *present, struct err *err)
{
    struct condition_state state = {.there = present != NULL};

    (void)path;
    if (present) {
        state.etag = present->entry.etag;
        state.modified_ms = present->entry.modified_ms;
        state.size = present->entry.size;
    }
    int code = conditions_judge_write(ctx, &state, err);
    return code == ERR_NOT_FOUND || code == ERR_PRECONDITION
               ? err_set(err, ERR_PRECONDITION, "precondition failed")
               : code;
}

int web_stage(struct rest_call *c, const struct lake_repo *r, const struct lake_object *o,
              struct lake_stage_options how, struct err *err)
{
    struct object_conditions conditions = web_conditions(c);
    struct lake_put put = {o->path, &o->entry};

    how.judge = conditions_given(&conditions) ? web_judge_write : NULL;
    how.ctx = &conditions;
    return lake_stage(web_of(c)->lake, c->arena, r, rest_text(c, "branch"), &put, 1, &how, err);
}

struct str web_bare_etag(struct str etag)
{
    bool quoted = etag.len >= 2 && str_starts(etag, STR("\"")) && str_ends(etag, STR("\""));

    return quoted ? str_n(etag.p + 1, etag.len - 2) : etag;
}
