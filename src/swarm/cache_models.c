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

static const struct field torrent_fields[] = {
    {"id", FIELD_U64, offsetof(struct torrent, id), 0},
    {"infohash", FIELD_BYTES, offsetof(struct torrent, info_hash), INFO_HASH_LEN},
    {"active", FIELD_BOOL, offsetof(struct torrent, active), 0},
    {"snatches", FIELD_U64, offsetof(struct torrent, snatches), 0},
    {"up_multiplier", FIELD_DOUBLE, offsetof(struct torrent, up_multiplier), 0},
    {"down_multiplier", FIELD_DOUBLE, offsetof(struct torrent, down_multiplier), 0},
    {"last_action", FIELD_I64, offsetof(struct torrent, last_action), 0},
};

static const struct field user_fields[] = {
    {"id", FIELD_U64, offsetof(struct user, id), 0},
    {"passkey", FIELD_BYTES, offsetof(struct user, passkey), PASSKEY_LEN},
    {"up_multiplier", FIELD_DOUBLE, offsetof(struct user, up_multiplier), 0},
    {"down_multiplier", FIELD_DOUBLE, offsetof(struct user, down_multiplier), 0},
    {"slots", FIELD_I64, offsetof(struct user, slots), 0},
    {"slots_used", FIELD_I64, offsetof(struct user, slots_used), 0},
    {"snatches", FIELD_U64, offsetof(struct user, snatches), 0},
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
    char *at = (char *)model + f->offset;

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

/* Fields that are not of the seed are passed over. `count` is below 32. */
static int read_model(const struct reply *r, const struct field *fields, size_t count, void *model,
                      struct err *err)
{
    uint32_t seen = 0;
    int code = reply_expect(r, REPLY_ARRAY, err);

    if (code < 0)
        return code;
    for (size_t i = 0; i + 1 < r->count; i += 2)
        for (size_t f = 0; f < count; f++) {
            if (!str_eq(r->items[i].str, str_z(fields[f].name)))
                continue;
            if (read_field(&fields[f], r->items[i + 1].str, model) < 0)
                return err_set(err, ERR_CORRUPT, "the field %s in the store is damaged",
                               fields[f].name);
            seen |= 1U << f;
        }
    if (seen != (1U << count) - 1)
        return err_set(err, ERR_CORRUPT, "a hash in the store lacks fields");
    return 0;
}

int read_torrent(const struct reply *fields, struct torrent *out, struct err *err)
{
    *out = (struct torrent){0};
    return read_model(fields, torrent_fields, ARRAY_SIZE(torrent_fields), out, err);
}

int read_user(const struct reply *fields, struct user *out, struct err *err)
{
    *out = (struct user){0};
    return read_model(fields, user_fields, ARRAY_SIZE(user_fields), out, err);
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
