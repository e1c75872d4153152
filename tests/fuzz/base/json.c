/* json: what reads is written back by our writer and reads equal; the limits hold. */
#include "base/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void write_value(struct json_out *w, json_t *v, size_t depth);

static void write_members(struct json_out *w, json_t *object, size_t depth)
{
    for (void *it = json_object_iter(object); it; it = json_object_iter_next(object, it)) {
        json_out_key(w, json_object_iter_key(it));
        write_value(w, json_object_iter_value(it), depth);
    }
}

static void write_container(struct json_out *w, json_t *v, size_t depth)
{
    bool object = json_is_object(v);

    BUG_ON(depth == JSON_MAX_DEPTH);
    json_out_open(w, object ? '{' : '[');
    if (object)
        write_members(w, v, depth + 1);
    for (size_t i = 0; i < json_array_size(v); i++)
        write_value(w, json_array_get(v, i), depth + 1);
    json_out_close(w, object ? '}' : ']');
}

static void write_value(struct json_out *w, json_t *v, size_t depth)
{
    switch (json_typeof(v)) {
    case JSON_OBJECT:
    case JSON_ARRAY:
        write_container(w, v, depth);
        break;
    case JSON_STRING:
        json_out_str(w, str_n(json_string_value(v), json_string_length(v)));
        break;
    case JSON_INTEGER:
        json_out_i64(w, json_integer_value(v));
        break;
    case JSON_REAL:
        json_out_f64(w, json_real_value(v));
        break;
    case JSON_NULL:
        json_out_null(w);
        break;
    default:
        json_out_bool(w, json_is_true(v));
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err err = {0};
    struct buf out = {0};
    struct json_out w;
    json_t *v = NULL, *back = NULL;
    int code = json_read(&v, str_n(data, size), &err);

    BUG_ON((code == 0) != (v != NULL));
    if (code < 0) {
        BUG_ON(code != ERR_PARSE && code != ERR_TOO_LARGE);
        BUG_ON(err.text[0] == '\0');
        return 0;
    }
    json_out_init(&w, &out);
    write_value(&w, v, 0);
    BUG_ON(json_read(&back, buf_str(&out), &err) < 0);
    BUG_ON(!json_equal(v, back));
    json_decref(v);
    json_decref(back);
    buf_release(&out);
    return 0;
}
