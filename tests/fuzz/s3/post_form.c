/* POST forms: however the input is split, the same fields, file and verdict; and policies, which
 * are what a field named "json" holds. The first byte says how to split. */
#include "meta/error.h"
#include "s3/gateway/form.h"
#include "unit/slow_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct result {
    struct arena a;
    struct form f;
    struct buf file;
    int opened, code;
};

static int find_key(void *ctx, struct str access_key, struct auth_key *out, struct err *err)
{
    out->secret_len = 4;
    return 0;
}

static void run(struct result *r, struct str in, size_t step)
{
    struct slow_reader slow = {{&slow_ops}, in, step};
    struct auth_options keys = {.find_key = find_key, .allow_v2 = true};
    struct form_options o = {STR("bucket"), 0, &keys};
    struct form_result result;

    r->opened = form_open(&r->f, &r->a, &slow.reader, STR("multipart/form-data; boundary=x"), NULL);
    if (r->opened < 0)
        return;
    r->code = form_check(&result, &r->f, &o, NULL);
    BUG_ON(r->code == 0 && result.kind != AUTH_ANONYMOUS);
    if (form_field(&r->f, "json").p)
        r->code = form_check_policy(&r->f, form_field(&r->f, "json"), &o, NULL);
    if (r->code == 0)
        r->code = reader_read_all(&r->f.file, &r->file, NULL);
    BUG_ON(r->code == 0 && (r->file.len < r->f.min || r->file.len > r->f.max));
}

static void release(struct result *r)
{
    form_close(&r->f);
    arena_release(&r->a);
    buf_release(&r->file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct result whole, split;

    if (size == 0)
        return 0;
    memset(&whole, 0, sizeof(whole));
    memset(&split, 0, sizeof(split));
    struct str in = str_n(data + 1, size - 1);
    run(&whole, in, size);
    run(&split, in, data[0] % 64 + 1u);
    BUG_ON(whole.opened != split.opened || whole.code != split.code);
    BUG_ON(whole.opened == 0 && whole.f.field_count != split.f.field_count);
    BUG_ON(whole.opened == 0 && whole.code == 0 &&
           !str_eq(buf_str(&whole.file), buf_str(&split.file)));
    release(&whole);
    release(&split);
    return 0;
}
