/* The stored form of a map: a JSON object (map.h says how strings are written). */
#include "base/hex.h"
#include "base/json.h"
#include "shard/map_int.h"

enum { MAP_FORMAT = 1 };

static const char *const state_names[] = {"active", "deleting", "plain"};
static const char *const closed_names[] = {"", "copy", "adopt", "none", "documents", "all"};
static const char *const move_names[] = {"split", "merge", "move", "disable"};

/* --- writing --- */

static bool text_is_plain(char c)
{
    return c >= ' ' && c <= '~' && c != '%' && c != '"' && c != '\\';
}

struct map_writer {
    struct json_out json;
    struct buf escaped; /* scratch */
};

static void text_write(struct map_writer *w, const char *name, struct str s)
{
    static const char digits[] = "0123456789ABCDEF";

    buf_reset(&w->escaped);
    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.p[i];
        if (text_is_plain(s.p[i])) {
            buf_append_char(&w->escaped, s.p[i]);
            continue;
        }
        buf_append(&w->escaped, (char[3]){'%', digits[c >> 4], digits[c & 15]}, 3);
    }
    json_out_member_str(&w->json, name, buf_str(&w->escaped));
}

static void text_write_window(struct map_writer *w, const struct shard_window *window)
{
    text_write(w, "after", window->after);
    text_write(w, "upto", window->upto);
}

static void text_write_place(struct map_writer *w, const struct shard_place *p)
{
    json_out_open(&w->json, '{');
    json_out_member_u64(&w->json, "number", p->number);
    text_write(w, "storage", p->storage);
    text_write(w, "bucket", p->bucket);
    json_out_member_bool(&w->json, "uploads", p->uploads);
    json_out_member_bool(&w->json, "times", p->times);
    json_out_key(&w->json, "unclean");
    json_out_open(&w->json, '[');
    for (size_t i = 0; i < p->unclean_count; i++) {
        json_out_open(&w->json, '{');
        text_write_window(w, &p->unclean[i]);
        json_out_close(&w->json, '}');
    }
    json_out_close(&w->json, ']');
    json_out_close(&w->json, '}');
}

static void text_write_id(struct map_writer *w, uint64_t id)
{
    char text[24];

    snprintf(text, sizeof(text), "%ju", (uintmax_t)id);
    text_write(w, "id", str_z(text));
}

static void text_write_head(struct map_writer *w, const struct shard_map *m)
{
    json_out_member_u64(&w->json, "format", MAP_FORMAT);
    json_out_member_u64(&w->json, "number", m->number);
    text_write(w, "home", m->home);
    text_write(w, "bucket", m->bucket);
    text_write(w, "owner", m->owner);
    text_write_id(w, m->id);
    text_write(w, "by", m->by);
    text_write(w, "house", m->house);
    text_write(w, "mark", m->mark);
    text_write(w, "state", str_z(state_names[m->state]));
    json_out_member_u64(&w->json, "threshold", m->threshold);
    json_out_member_u64(&w->json, "last_number", m->last_number);
}

static void text_write_move(struct map_writer *w, const struct shard_move *move)
{
    json_out_key(&w->json, "move");
    json_out_open(&w->json, '{');
    text_write(w, "id", move->id);
    text_write(w, "kind", str_z(move_names[move->kind]));
    json_out_member_u64(&w->json, "from", move->from);
    json_out_member_u64(&w->json, "to", move->to);
    text_write_window(w, &move->window);
    json_out_close(&w->json, '}');
}

void map_write(const struct shard_map *m, struct buf *out)
{
    struct map_writer w = {0};

    json_out_init(&w.json, out);
    json_out_open(&w.json, '{');
    text_write_head(&w, m);
    if (m->move.id.len)
        text_write_move(&w, &m->move);
    if (m->closed != SHARD_OPEN) {
        json_out_key(&w.json, "closed");
        json_out_open(&w.json, '{');
        text_write(&w, "how", str_z(closed_names[m->closed]));
        text_write_window(&w, &m->closed_window);
        json_out_close(&w.json, '}');
    }
    json_out_key(&w.json, "places");
    json_out_open(&w.json, '[');
    for (size_t i = 0; i < m->place_count; i++)
        text_write_place(&w, &m->places[i]);
    json_out_close(&w.json, ']');
    json_out_key(&w.json, "segments");
    json_out_open(&w.json, '[');
    for (size_t i = 0; i < m->segment_count; i++) {
        json_out_open(&w.json, '{');
        text_write(&w, "after", m->segments[i].after);
        json_out_member_u64(&w.json, "place", map_place_at(m, i)->number);
        json_out_close(&w.json, '}');
    }
    json_out_close(&w.json, ']');
    json_out_close(&w.json, '}');
    buf_release(&w.escaped);
}

/* --- reading --- */

/* Reads one JSON object. All its members must be read: a member that was not read is an error. */
struct map_reader {
    struct shard_map *map;
    struct err *err;
    const json_t *object;
    size_t read; /* number of members read */
    int code;    /* the first error */
};

static void reader_fail(struct map_reader *r, const char *name, const char *what)
{
    if (r->code == 0)
        r->code = err_set(r->err, ERR_CORRUPT, "the map's member '%s' %s", name, what);
}

static struct map_reader reader_begin(struct map_reader *parent, const json_t *object)
{
    struct map_reader r = {parent->map, parent->err, object, 0, parent->code};

    if (r.code == 0 && !json_is_object(object))
        r.code = err_set(r.err, ERR_CORRUPT, "the map has another value where an object belongs");
    return r;
}

static void reader_end(struct map_reader *r, struct map_reader *parent)
{
    if (r->code == 0 && json_object_size(r->object) != r->read)
        r->code = err_set(r->err, ERR_CORRUPT, "the map has a member that is not known");
    if (parent && parent->code == 0)
        parent->code = r->code;
}

static const json_t *reader_member(struct map_reader *r, const char *name)
{
    const json_t *value = r->code == 0 ? json_object_get(r->object, name) : NULL;

    if (value)
        r->read++;
    else
        reader_fail(r, name, "is missing");
    return value;
}

static uint64_t reader_number(struct map_reader *r, const char *name, uint64_t max)
{
    const json_t *value = reader_member(r, name);

    if (!json_is_integer(value) || json_integer_value(value) < 0 ||
        (uint64_t)json_integer_value(value) > max) {
        reader_fail(r, name, "is not a number in its range");
        return 0;
    }
    return (uint64_t)json_integer_value(value);
}

static bool reader_bool(struct map_reader *r, const char *name)
{
    const json_t *value = reader_member(r, name);

    if (!json_is_boolean(value))
        reader_fail(r, name, "is neither true nor false");
    return json_is_true(value);
}

/* Decodes a string, which must be in the form that text_write() writes. False: it is not. */
static bool text_read(struct str text, char *out, size_t *len)
{
    *len = 0;
    for (size_t i = 0; i < text.len; i++) {
        if (text_is_plain(text.p[i])) {
            out[(*len)++] = text.p[i];
            continue;
        }
        if (text.p[i] != '%' || text.len - i < 3)
            return false;
        int byte = 0;
        for (int k = 1; k <= 2; k++) {
            int digit = hex_digit(text.p[i + k]);
            if (digit < 0 || (text.p[i + k] >= 'a' && text.p[i + k] <= 'f'))
                return false;
            byte = byte * 16 + digit;
        }
        if (text_is_plain((char)byte))
            return false;
        out[(*len)++] = (char)byte;
        i += 2;
    }
    return true;
}

static struct str reader_text(struct map_reader *r, const char *name)
{
    const json_t *value = reader_member(r, name);

    if (!json_is_string(value)) {
        reader_fail(r, name, "is not a string");
        return STR_EMPTY;
    }
    struct str text = str_n(json_string_value(value), json_string_length(value));
    char *bytes = arena_alloc(&map_body(r->map)->arena, text.len + 1);
    size_t len = 0;
    BUG_ON(!bytes); /* the text is smaller than the arena */
    if (!text_read(text, bytes, &len))
        reader_fail(r, name, "is not written in the form of a map");
    return str_n(bytes, r->code == 0 ? len : 0);
}

/* Reads the id. Only its one canonical text is accepted: decimal digits without a leading 0. */
static uint64_t reader_id(struct map_reader *r)
{
    struct str text = reader_text(r, "id");
    uint64_t id = 0;

    if (r->code == 0 && (text.len == 0 || text.p[0] == '0' || str_u64(text, &id) < 0))
        reader_fail(r, "id", "is not a decimal number above 0");
    return id;
}

static unsigned reader_choice(struct map_reader *r, const char *name, const char *const *names,
                              size_t count)
{
    struct str text = reader_text(r, name);

    for (size_t i = 0; i < count; i++)
        if (r->code == 0 && text.len && str_eq(text, str_z(names[i])))
            return (unsigned)i;
    reader_fail(r, name, "is not one of its words");
    return 0;
}

static struct shard_window reader_window(struct map_reader *r)
{
    struct str after = reader_text(r, "after");

    return (struct shard_window){after, reader_text(r, "upto")};
}

/* Returns the array; NULL: it is missing or too long. */
static const json_t *reader_array(struct map_reader *r, const char *name, size_t max)
{
    const json_t *array = reader_member(r, name);

    if (!json_is_array(array))
        reader_fail(r, name, "is not an array");
    else if (json_array_size(array) > max)
        reader_fail(r, name, "has too many entries");
    return r->code == 0 ? array : NULL;
}

static void reader_place(struct map_reader *parent, const json_t *object)
{
    struct map_reader r = reader_begin(parent, object);
    struct shard_place *p = map_push_place(r.map);

    p->number = (uint32_t)reader_number(&r, "number", UINT32_MAX);
    p->storage = reader_text(&r, "storage");
    p->bucket = reader_text(&r, "bucket");
    p->uploads = reader_bool(&r, "uploads");
    p->times = reader_bool(&r, "times");
    const json_t *unclean = reader_array(&r, "unclean", SHARD_UNCLEAN_MAX);
    size_t count = unclean ? json_array_size(unclean) : 0;
    p->unclean = arena_array(&map_body(r.map)->arena, size_max(count, 1), sizeof(*p->unclean));
    BUG_ON(!p->unclean);
    for (size_t i = 0; i < count && r.code == 0; i++) {
        struct map_reader window = reader_begin(&r, json_array_get(unclean, i));
        p->unclean[p->unclean_count++] = reader_window(&window);
        reader_end(&window, &r);
    }
    reader_end(&r, parent);
}

static void reader_segment(struct map_reader *parent, const json_t *object)
{
    struct map_reader r = reader_begin(parent, object);
    struct shard_segment *s = map_push_segment(r.map);

    s->after = reader_text(&r, "after");
    const struct shard_place *place =
        map_place(r.map, (uint32_t)reader_number(&r, "place", UINT32_MAX));
    if (place)
        s->place = (uint32_t)(place - r.map->places);
    else
        reader_fail(&r, "place", "is not the number of a shard");
    reader_end(&r, parent);
}

static void reader_head(struct map_reader *r)
{
    struct shard_map *m = r->map;

    m->number = reader_number(r, "number", INT64_MAX);
    m->home = reader_text(r, "home");
    m->bucket = reader_text(r, "bucket");
    m->owner = reader_text(r, "owner");
    m->id = reader_id(r);
    m->by = reader_text(r, "by");
    m->house = reader_text(r, "house");
    m->mark = reader_text(r, "mark");
    m->state = reader_choice(r, "state", state_names, ARRAY_SIZE(state_names));
    m->threshold = reader_number(r, "threshold", INT64_MAX);
    m->last_number = (uint32_t)reader_number(r, "last_number", UINT32_MAX);
}

static void reader_move(struct map_reader *parent)
{
    struct map_reader r = reader_begin(parent, reader_member(parent, "move"));
    struct shard_move *move = &r.map->move;

    move->id = reader_text(&r, "id");
    move->kind = reader_choice(&r, "kind", move_names, ARRAY_SIZE(move_names));
    move->from = (uint32_t)reader_number(&r, "from", UINT32_MAX);
    move->to = (uint32_t)reader_number(&r, "to", UINT32_MAX);
    move->window = reader_window(&r);
    if (move->id.len == 0)
        reader_fail(&r, "id", "is empty");
    reader_end(&r, parent);
}

static void reader_closed(struct map_reader *parent)
{
    struct map_reader r = reader_begin(parent, reader_member(parent, "closed"));

    r.map->closed = reader_choice(&r, "how", closed_names, ARRAY_SIZE(closed_names));
    r.map->closed_window = reader_window(&r);
    reader_end(&r, parent);
}

/* Reads all members of the map. The shards are read before the segments, which refer to them. */
static void reader_map(struct map_reader *r)
{
    const json_t *places, *segments;

    reader_head(r);
    if (r->code == 0 && json_object_get(r->object, "move"))
        reader_move(r);
    if (r->code == 0 && json_object_get(r->object, "closed"))
        reader_closed(r);
    places = reader_array(r, "places", SHARD_PLACES_MAX);
    segments = reader_array(r, "segments", SHARD_SEGMENTS_MAX);
    for (size_t i = 0; r->code == 0 && i < json_array_size(places); i++)
        reader_place(r, json_array_get(places, i));
    for (size_t i = 0; r->code == 0 && i < json_array_size(segments); i++)
        reader_segment(r, json_array_get(segments, i));
    reader_end(r, NULL);
}

int map_parse(struct shard_map **out, struct str text, struct err *err)
{
    struct map_reader r = {.err = err};
    json_t *json = NULL;
    int code = json_read(&json, text, err);

    if (code < 0)
        return code == ERR_NO_MEMORY ? code : err_wrap(err, ERR_CORRUPT, "the map");
    int64_t format = json_get_i64(json, "format", 0);
    if (format > MAP_FORMAT) {
        json_decref(json);
        return err_set(err, ERR_UNSUPPORTED, "a newer weir has written the map (format %lld)",
                       (long long)format);
    }
    r.map = map_new();
    r.object = json;
    if (!json_is_object(json) || format != MAP_FORMAT)
        r.code = err_set(err, ERR_CORRUPT, "the text is not a map");
    r.read = 1; /* the member "format" was read before */
    reader_map(&r);
    code = r.code == 0 ? map_check(r.map, err) : r.code;
    json_decref(json);
    if (code == 0)
        *out = r.map;
    else
        map_unref(r.map);
    return code;
}
