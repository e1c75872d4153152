/* Reads the models (torrents, users, entries of peers) from the form in which the store keeps them.
 */
#include "store/fields.h"
#include "swarm/cache_int.h"

/* The fields of a torrent, in the order in which swarm_find.lua returns them. */
static const struct field_row torrent_rows[] = {
#define TORRENT_FIELD(...) FIELD_ROW(struct torrent, __VA_ARGS__, .required = true)
    TORRENT_FIELD("id", FIELD_U64, id),
    TORRENT_FIELD("active", FIELD_BOOL, active),
    TORRENT_FIELD("snatches", FIELD_U64, snatches),
    TORRENT_FIELD("up_multiplier", FIELD_DOUBLE, up_multiplier),
    TORRENT_FIELD("down_multiplier", FIELD_DOUBLE, down_multiplier),
    TORRENT_FIELD("last_action", FIELD_I64, last_action),
#undef TORRENT_FIELD
};
static const struct fields torrent_fields = FIELDS(torrent_rows);

static const struct field_row user_rows[] = {
#define USER_FIELD(...) FIELD_ROW(struct swarm_user, __VA_ARGS__, .required = true)
    USER_FIELD("id", FIELD_U64, id),
    USER_FIELD("passkey", FIELD_BYTES, passkey, .max = PASSKEY_LEN),
    USER_FIELD("up_multiplier", FIELD_DOUBLE, up_multiplier),
    USER_FIELD("down_multiplier", FIELD_DOUBLE, down_multiplier),
    USER_FIELD("slots", FIELD_I64, slots),
    USER_FIELD("slots_used", FIELD_I64, slots_used),
    USER_FIELD("snatches", FIELD_U64, snatches),
#undef USER_FIELD
};
static const struct fields user_fields = FIELDS(user_rows);

int torrent_model_read(struct torrent *out, const struct reply *values, const uint8_t *info_hash,
                       struct err *err)
{
    *out = (struct torrent){0};
    memcpy(out->info_hash, info_hash, INFO_HASH_LEN);
    return fields_read_values(out, &torrent_fields, values, NULL, err);
}

/* Reads a user. Fields that are not in the table are ignored. */
int swarm_user_read(struct swarm_user *out, const struct reply *hash, struct err *err)
{
    *out = (struct swarm_user){0};
    return fields_read(out, &user_fields, hash, NULL, err);
}

int peer_entry_read(struct peer_entry *out, struct str packed, struct err *err)
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
