/* The table of slots (docs/archive.md, "Slots"). */
#include "archive/slots.h"

#include "base/json.h"

/* --- names --- */

bool satellite_name_ok(struct str name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.p[i];
        bool is_word = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
        if (!is_word && (c != '-' || i == 0 || i + 1 == name.len))
            return false;
    }
    return name.len > 0 && name.len <= SATELLITE_NAME_MAX;
}

int slots_find(const struct slots *t, struct str name)
{
    for (size_t i = 0; i < t->count; i++)
        if (str_eq(str_z(t->names[i]), name))
            return (int)i;
    return -1;
}

static int slots_name(struct slots *t, struct str name, struct err *err)
{
    if (!satellite_name_ok(name))
        return err_set(err, ERR_INVALID,
                       "'" STR_FMT "' cannot be a satellite: a name has 1 to %d small letters, "
                       "digits and '-' between them",
                       STR_ARG(str_head(name, SATELLITE_NAME_MAX)), SATELLITE_NAME_MAX);
    if (slots_find(t, name) >= 0)
        return err_set(err, ERR_EXISTS, "'" STR_FMT "' is a satellite already", STR_ARG(name));
    if (t->count == SATELLITES_MAX)
        return err_set(err, ERR_INVALID, "there are %d satellites already, which is the most",
                       SATELLITES_MAX);
    memcpy(t->names[t->count], name.p, name.len);
    t->names[t->count++][name.len] = '\0';
    return 0;
}

/* --- tables --- */

int slots_first(struct slots *out, const struct str *names, size_t count, struct err *err)
{
    struct slots t = {.epoch = 1};
    int code = count ? 0 : err_set(err, ERR_INVALID, "an archive needs at least one satellite");

    for (size_t i = 0; i < count && code == 0; i++)
        code = slots_name(&t, names[i], err);
    if (code < 0)
        return code;
    for (unsigned s = 0; s < SLOT_COUNT; s++)
        t.of[s] = t.leaves[s] = (unsigned char)(s * count / SLOT_COUNT);
    *out = t;
    return 0;
}

bool slots_moves(const struct slots *t, unsigned slot)
{
    return t->of[slot] != t->leaves[slot];
}

size_t slots_moving(const struct slots *t)
{
    size_t n = 0;

    for (unsigned s = 0; s < SLOT_COUNT; s++)
        n += slots_moves(t, s);
    return n;
}

size_t slots_held(const struct slots *t, size_t satellite)
{
    size_t n = 0;

    for (unsigned s = 0; s < SLOT_COUNT; s++)
        n += t->of[s] == satellite;
    return n;
}

/* The satellite with the most (or the fewest) slots, except `but`. If several have the same number,
 * it is the first of them. */
static size_t slots_extreme(const struct slots *t, size_t but, bool most)
{
    size_t best = SATELLITES_MAX, held = 0;

    for (size_t i = 0; i < t->count; i++) {
        size_t n = slots_held(t, i);
        if (i == but || (best < SATELLITES_MAX && (most ? n <= held : n >= held)))
            continue;
        best = i;
        held = n;
    }
    return best;
}

/* Makes a copy of the table with the next epoch. */
static int slots_next(struct slots *next, const struct slots *now, struct err *err)
{
    if (slots_moving(now))
        return err_set(err, ERR_BUSY, "%zu slots are still moving", slots_moving(now));
    *next = *now;
    next->epoch++;
    return 0;
}

/* Picks a slot of the satellite `from` for another satellite. Successive turns pick slots that are
 * spread over the slots of `from`. */
static unsigned slots_pick(const struct slots *t, size_t from, size_t turn)
{
    size_t skip = turn * 37 % slots_held(t, from);

    for (unsigned s = 0; s < SLOT_COUNT; s++)
        if (t->of[s] == from && skip-- == 0)
            return s;
    return 0;
}

int slots_add(struct slots *next, const struct slots *now, struct str name, struct err *err)
{
    int code = slots_next(next, now, err);

    if (code == 0)
        code = slots_name(next, name, err);
    if (code < 0)
        return code;
    size_t newcomer = next->count - 1;
    for (size_t n = 0; n < SLOT_COUNT / next->count; n++) {
        unsigned slot = slots_pick(next, slots_extreme(next, newcomer, true), n);
        next->of[slot] = (unsigned char)newcomer;
    }
    return 0;
}

int slots_split(struct slots *next, const struct slots *now, const struct str *names, size_t count,
                struct err *err)
{
    int code = slots_next(next, now, err);

    for (size_t i = 0; i < count && code == 0; i++)
        code = slots_name(next, names[i], err);
    for (unsigned s = 0; s < SLOT_COUNT && code == 0; s++)
        next->of[s] = (unsigned char)(s * next->count / SLOT_COUNT);
    return code;
}

static int slots_known(const struct slots *t, struct str name, struct err *err)
{
    int i = slots_find(t, name);

    return i >= 0 ? i
                  : err_set(err, ERR_NOT_FOUND, "'" STR_FMT "' is not a satellite",
                            STR_ARG(str_head(name, SATELLITE_NAME_MAX)));
}

int slots_drain(struct slots *next, const struct slots *now, struct str name, struct err *err)
{
    int leaving = slots_known(now, name, err);

    if (leaving < 0)
        return leaving;
    if (now->count == 1)
        return err_set(err, ERR_INVALID, "'" STR_FMT "' is the only satellite", STR_ARG(name));
    int code = slots_next(next, now, err);
    for (unsigned s = 0; s < SLOT_COUNT && code == 0; s++)
        if (next->of[s] == leaving)
            next->of[s] = (unsigned char)slots_extreme(next, (size_t)leaving, false);
    return code;
}

int slots_drop(struct slots *next, const struct slots *now, struct str name, struct err *err)
{
    int i = slots_known(now, name, err);
    int code = i < 0 ? i : slots_next(next, now, err);

    if (code < 0)
        return code;
    if (slots_held(now, (size_t)i))
        return err_set(err, ERR_BUSY, "'" STR_FMT "' still has %zu slots; drain it first",
                       STR_ARG(name), slots_held(now, (size_t)i));
    next->count--;
    memmove(next->names[i], next->names[i + 1], (next->count - (size_t)i) * sizeof(next->names[0]));
    memset(next->names[next->count], 0, sizeof(next->names[0]));
    for (unsigned s = 0; s < SLOT_COUNT; s++) {
        next->of[s] -= next->of[s] > i;
        next->leaves[s] = next->of[s];
    }
    return 0;
}

bool slots_arrive(struct slots *next, const struct slots *now, const bool arrived[SLOT_COUNT])
{
    bool any = false;

    *next = *now;
    next->epoch++;
    for (unsigned s = 0; s < SLOT_COUNT; s++)
        if (arrived[s] && slots_moves(now, s)) {
            next->leaves[s] = next->of[s];
            any = true;
        }
    return any;
}

/* --- JSON ---
 *
 * {"epoch":2,"satellites":["a","b"],"slots":[0,0,1,…],"moving":{"7":0}}: `slots` has the index of a
 * satellite for each slot, `moving` the index of the satellite that a slot leaves. */

void slots_write(struct buf *out, const struct slots *t)
{
    struct json_out w;

    json_out_init(&w, out);
    json_out_open(&w, '{');
    json_out_member_u64(&w, "epoch", t->epoch);
    json_out_key(&w, "satellites");
    json_out_open(&w, '[');
    for (size_t i = 0; i < t->count; i++)
        json_out_str(&w, str_z(t->names[i]));
    json_out_close(&w, ']');
    json_out_key(&w, "slots");
    json_out_open(&w, '[');
    for (unsigned s = 0; s < SLOT_COUNT; s++)
        json_out_u64(&w, t->of[s]);
    json_out_close(&w, ']');
    json_out_key(&w, "moving");
    json_out_open(&w, '{');
    for (unsigned s = 0; s < SLOT_COUNT; s++)
        if (slots_moves(t, s)) {
            char slot[4];
            int len = snprintf(slot, sizeof(slot), "%u", s);
            json_out_key_str(&w, str_n(slot, (size_t)len));
            json_out_u64(&w, t->leaves[s]);
        }
    json_out_close(&w, '}');
    json_out_close(&w, '}');
}

static int slots_bad(struct err *err, const char *what)
{
    return err_set(err, ERR_CORRUPT, "the table of slots is damaged: %s", what);
}

static bool json_is_index(const json_t *v, size_t count)
{
    return json_is_integer(v) && json_integer_value(v) >= 0 &&
           json_integer_value(v) < (json_int_t)count;
}

static int slots_read_names(struct slots *t, const json_t *names, struct err *err)
{
    const json_t *name;
    size_t i;
    int code = json_array_size(names) ? 0 : slots_bad(err, "it has no satellites");

    json_array_foreach(names, i, name)
    {
        if (code == 0 && !json_is_string(name))
            code = slots_bad(err, "the name of a satellite is not a string");
        if (code == 0 &&
            slots_name(t, str_n(json_string_value(name), json_string_length(name)), err) < 0)
            code = err_wrap(err, ERR_CORRUPT, "the table of slots is damaged");
    }
    return code;
}

static int slots_read_slots(struct slots *t, const json_t *list, struct err *err)
{
    const json_t *v;
    size_t s;

    if (json_array_size(list) != SLOT_COUNT)
        return slots_bad(err, "it does not have 256 slots");
    json_array_foreach(list, s, v)
    {
        if (!json_is_index(v, t->count))
            return slots_bad(err, "a slot belongs to no satellite");
        t->of[s] = t->leaves[s] = (unsigned char)json_integer_value(v);
    }
    return 0;
}

static int slots_read_moving(struct slots *t, json_t *moving, struct err *err)
{
    const char *key;
    json_t *v;

    if (!json_is_object(moving))
        return slots_bad(err, "\"moving\" is not an object");
    json_object_foreach(moving, key, v)
    {
        uint64_t slot;
        if (str_u64(str_z(key), &slot) < 0 || slot >= SLOT_COUNT || !json_is_index(v, t->count) ||
            json_integer_value(v) == t->of[slot])
            return slots_bad(err, "a slot that moves does not exist, or stays where it is");
        t->leaves[slot] = (unsigned char)json_integer_value(v);
    }
    return 0;
}

int slots_read(struct slots *out, struct str text, struct err *err)
{
    struct slots t = {0};
    json_t *doc = NULL;

    if (text.len > SLOTS_TEXT_MAX)
        return slots_bad(err, "it is too large");
    if (json_read(&doc, text, err) < 0)
        return err_wrap(err, ERR_CORRUPT, "the table of slots is damaged");
    int64_t epoch = json_get_i64(doc, "epoch", 0);
    int code = epoch > 0 && epoch < UINT32_MAX ? 0 : slots_bad(err, "it has no epoch");
    if (code == 0)
        code = slots_read_names(&t, json_object_get(doc, "satellites"), err);
    if (code == 0)
        code = slots_read_slots(&t, json_object_get(doc, "slots"), err);
    if (code == 0)
        code = slots_read_moving(&t, json_object_get(doc, "moving"), err);
    json_decref(doc);
    if (code < 0)
        return code;
    t.epoch = (uint32_t)epoch;
    *out = t;
    return 0;
}
