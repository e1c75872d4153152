/* Stores sorted sets: each member has a member row and an order row (docs/store.md, invariant
 * 5). */
#include "store/embedded_int.h"
#include "base/bytes.h"

static void order_row(struct call *c, const struct object *o, double score, struct str member,
                      struct row *row)
{
    row_hashed(row, c->arena, ROW_ORDER, o->m.version, score_encode(score), member);
}

bool zset_score(struct call *c, const struct object *o, struct str member, double *score)
{
    struct str value;

    if (!member_get(c, o, member, &value))
        return false;
    if (value.len != 8) {
        run_fail(c->run, err_set(c->run->err, ERR_CORRUPT, "a score is damaged"));
        return false;
    }
    *score = score_decode(be64_read(value.p));
    return true;
}

void zset_put(struct call *c, struct object *o, struct str member, const double *old, double score)
{
    struct row row;
    char bits[8];

    be64_write(bits, score_encode(score));
    if (old) {
        order_row(c, o, *old, member, &row);
        run_delete(c->run, row.key);
    }
    order_row(c, o, score, member, &row);
    run_put(c->run, row.key, STR_EMPTY);
    member_write(c, o, member, str_n(bits, sizeof(bits)), !old);
}

bool zset_remove(struct call *c, struct object *o, struct str member)
{
    struct row row;
    double score;

    if (!zset_score(c, o, member, &score))
        return false;
    order_row(c, o, score, member, &row);
    run_delete(c->run, row.key);
    return member_delete(c, o, member);
}

double zset_row_score(struct str row_key)
{
    return score_decode(be64_read(row_key.p + ROW_PREFIX));
}
