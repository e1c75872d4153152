/* The models as the store has them. */
#include "swarm/cache_int.h"

#include <stdlib.h>

enum field_kind { FIELD_U64, FIELD_I64, FIELD_DOUBLE, FIELD_BOOL, FIELD_BYTES };

struct field {
    const char *name;
    enum field_kind kind;
    size_t offset;
    size_t bytes; /* FIELD_BYTES: exactly so many */
};

/* In the order of swarm_find.lua. */
static const struct field torrent_fields[] = {
    {"id", FIELD_U64, offsetof(struct torrent, id), 0},
    {"active", FIELD_BOOL, offsetof(struct torrent, active), 0},
    {"snatches", FIELD_U64, offsetof(struct torrent, snatches), 0},
    {"up_multiplier", FIELD_DOUBLE, offsetof(struct torrent, up_multiplier), 0},
    {"down_multiplier", FIELD_DOUBLE, offsetof(struct torrent, down_multiplier), 0},
    {"last_action", FIELD_I64, offsetof(struct torrent, last_action), 0},
};

static const struct field user_fields[] = {
    {"id", FIELD_U64, offsetof(struct swarm_user, id), 0},
    {"passkey", FIELD_BYTES, offsetof(struct swarm_user, passkey), PASSKEY_LEN},
    {"up_multiplier", FIELD_DOUBLE, offsetof(struct swarm_user, up_multiplier), 0},
    {"down_multiplier", FIELD_DOUBLE, offsetof(struct swarm_user, down_multiplier), 0},
    {"slots", FIELD_I64, offsetof(struct swarm_user, slots), 0},
    {"slots_used", FIELD_I64, offsetof(struct swarm_user, slots_used), 0},
    {"snatches", FIELD_U64, offsetof(struct swarm_user, snatches), 0},
};

static int read_double(struct str s, double *out)
{
    enum { TEXT_MAX = 63 };
    char text[TEXT_MAX + 1], *end;

    if (s.len == 0 || s.len > TEXT_MAX)
        return ERR_PARSE;
    memcpy(text, s.p, s.len);
    text[s.len] = '\0';
    *out = strtod(text, &end);
    return *end ? ERR_PARSE : 0;
}

static int read_field(const struct field *f, struct str value, void *model)
{
    void *at = (char *)model + f->offset;

    switch (f->kind) {
    case FIELD_U64:
        return str_u64(value, (uint64_t *)at);
    case FIELD_I64:
        return str_i64(value, (int64_t *)at);
    case FIELD_DOUBLE:
        return read_double(value, (double *)at);
    case FIELD_BOOL:
        *(bool *)at = str_eq(value, STR("1"));
        return 0;
    case FIELD_BYTES:
        if (value.len != f->bytes)
            return ERR_PARSE;
        memcpy(at, value.p, value.len);
        return 0;
    }
    return ERR_PARSE;
}

static int damaged(const struct field *f, struct err *err)
{
    return err_set(err, ERR_CORRUPT, "the field %s in the store is missing or damaged", f->name);
}

int read_torrent(const struct reply *values, const uint8_t *info_hash, struct torrent *out,
                 struct err *err)
{
    int code = reply_expect(values, REPLY_ARRAY, err);

    *out = (struct torrent){0};
    if (code < 0)
        return code;
    memcpy(out->info_hash, info_hash, INFO_HASH_LEN);
    for (size_t i = 0; i < ARRAY_SIZE(torrent_fields); i++)
        if (i >= values->count || reply_is_nil(&values->items[i]) ||
            read_field(&torrent_fields[i], values->items[i].str, out) < 0)
            return damaged(&torrent_fields[i], err);
    return 0;
}

static const struct reply *value_of(const struct reply *fields, const char *name)
{
    for (size_t i = 0; i + 1 < fields->count; i += 2)
        if (str_eq(fields->items[i].str, str_z(name)))
            return &fields->items[i + 1];
    return NULL;
}

/* Fields that are not of the seed are passed over. */
int read_user(const struct reply *fields, struct swarm_user *out, struct err *err)
{
    int code = reply_expect(fields, REPLY_ARRAY, err);

    *out = (struct swarm_user){0};
    for (size_t i = 0; code == 0 && i < ARRAY_SIZE(user_fields); i++) {
        const struct reply *value = value_of(fields, user_fields[i].name);
        if (!value || read_field(&user_fields[i], value->str, out) < 0)
            code = damaged(&user_fields[i], err);
    }
    return code;
}

int read_entry(struct str packed, struct entry *out, struct err *err)
{
    enum { HEAD = 1 + COMPACT4_LEN + COMPACT6_LEN };
    uint64_t *numbers[] = {&out->last,     &out->last4,      &out->last6,
                           &out->uploaded, &out->downloaded, &out->left};
    struct str rest = str_skip(packed, HEAD), number;

    if (packed.len < HEAD)
        return err_set(err, ERR_CORRUPT, "a peer's entry in the store is too short");
    out->state = packed.p[0];
    out->at = (const uint8_t *)packed.p + 1;
    for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
        str_cut(rest, ':', &number, &rest);
        if (str_u64(number, numbers[i]) < 0)
            return err_set(err, ERR_CORRUPT, "a peer's entry in the store is damaged");
    }
    return 0;
}
