/* Judges the conditions of requests. */
#include "object/condition.h"

#include "base/clock.h"

/* Whether a list of ETags names this ETag. Quotes may be missing, because some clients leave them
 * out. A weak tag never matches where the comparison is strong (RFC 9110 section 8.8.3.2). */
static bool etag_listed(struct str list, struct str etag, bool strong)
{
    struct str one;

    while (str_token(&list, ",", &one)) {
        one = str_trim(one);
        bool weak = str_starts(one, STR("W/"));
        if (weak)
            one = str_skip(one, 2);
        if (one.len >= 2 && one.p[0] == '"' && one.p[one.len - 1] == '"')
            one = str_n(one.p + 1, one.len - 2);
        if (str_eq(one, STR("*")) || (str_eq(one, etag) && !(weak && strong)))
            return true;
    }
    return false;
}

/* Whether the object is newer than `since_ms`, compared in whole seconds, as HTTP dates have no
 * finer unit. */
static bool modified_after(const struct condition_state *s, int64_t since_ms)
{
    return s->modified_ms / MS_PER_S > since_ms / MS_PER_S;
}

int conditions_judge_read(const struct object_conditions *c, const struct condition_state *s,
                          struct err *err)
{
    if (!c)
        return 0;
    if (c->if_match.len) {
        if (!etag_listed(c->if_match, s->etag, true))
            return err_code(err, ERR_PRECONDITION);
    } else if (c->if_unmodified_since_ms && modified_after(s, c->if_unmodified_since_ms)) {
        return err_code(err, ERR_PRECONDITION);
    }
    if (c->if_none_match.len) {
        if (etag_listed(c->if_none_match, s->etag, false))
            return err_code(err, ERR_NOT_MODIFIED);
    } else if (c->if_modified_since_ms && !modified_after(s, c->if_modified_since_ms)) {
        return err_code(err, ERR_NOT_MODIFIED);
    }
    return 0;
}

int conditions_judge_write(const struct object_conditions *c, const struct condition_state *s,
                           struct err *err)
{
    if (c->if_match.len && !s->there)
        return err_set(err, ERR_NOT_FOUND, "there is nothing that could match");
    if (c->if_match.len && !etag_listed(c->if_match, s->etag, true))
        return err_code(err, ERR_PRECONDITION);
    if (!c->if_match.len && s->there && c->if_unmodified_since_ms &&
        modified_after(s, c->if_unmodified_since_ms))
        return err_code(err, ERR_PRECONDITION);
    if (c->if_none_match.len && s->there && etag_listed(c->if_none_match, s->etag, false))
        return err_code(err, ERR_PRECONDITION);
    return 0;
}

bool conditions_given(const struct object_conditions *c)
{
    return c->if_match.len || c->if_none_match.len || c->if_unmodified_since_ms ||
           c->if_modified_at_ms || c->has_if_size;
}

int conditions_judge_removal(const struct object_conditions *c, const struct condition_state *s,
                             struct err *err)
{
    if ((c->has_if_size && c->if_size != s->size) ||
        (c->if_modified_at_ms && c->if_modified_at_ms / MS_PER_S != s->modified_ms / MS_PER_S))
        return err_code(err, ERR_PRECONDITION);
    return conditions_judge_write(c, s, err);
}
