/* bencode: what reads is written back by our writer, and is byte for byte what was read; so each
 * value has one form. */
#include "swarm/bencode.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void write_value(struct bencode_out *w, const struct bencode *v);

static void write_container(struct bencode_out *w, const struct bencode *v)
{
    struct str inside = v->inside, key;
    struct bencode one;

    bencode_open(w, v->kind == BENCODE_DICT ? 'd' : 'l');
    while (bencode_next(v, &inside, &key, &one)) {
        if (v->kind == BENCODE_DICT) {
            bencode_key(w, key);
            BUG_ON(bencode_find(v, &(struct bencode){0}, key, one.kind) < 0);
        }
        write_value(w, &one);
    }
    bencode_close(w);
}

static void write_value(struct bencode_out *w, const struct bencode *v)
{
    switch (v->kind) {
    case BENCODE_INT:
        bencode_int(w, v->num);
        break;
    case BENCODE_STR:
        bencode_str(w, v->str);
        break;
    default:
        write_container(w, v);
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err err = {0};
    struct buf out = {0};
    struct bencode_out w;
    struct bencode v;
    struct str rest = str_n(data, size);
    int code = bencode_read(&v, &rest, &err);

    BUG_ON(code < 0 && (code != ERR_PARSE || err.text[0] == '\0' || rest.len != size));
    if (code < 0 || size > 4096) /* the walk is quadratic in keys */
        return 0;
    BUG_ON(v.bytes.len + rest.len != size);
    bencode_out_init(&w, &out);
    write_value(&w, &v);
    BUG_ON(!str_eq(buf_str(&out), v.bytes));
    buf_release(&out);
    return 0;
}
