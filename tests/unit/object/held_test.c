/* Bodies whose end is held back. */
#include "object/held.h"
#include "unit/slow_reader.h"
#include "unit/test.h"

static int agree(void *ctx, struct err *err)
{
    (void)err;
    ++*(int *)ctx;
    return 0;
}

static int refuse(void *ctx, struct err *err)
{
    ++*(int *)ctx;
    return err_set(err, ERR_INVALID, "no");
}

/* Everything that comes out of `len` bytes of `body`, by steps of two. */
static int read_held(struct held_reader *h, struct str body, uint64_t len, struct buf *out,
                     struct err *err)
{
    struct slow_reader slow = {{&slow_ops}, body, 2};
    struct held_reader made;

    held_reader_init(&made, &slow.reader, len);
    made.prove = h->prove;
    made.ctx = h->ctx;
    int code = reader_read_all(&made.reader, out, err);
    h->failed = made.failed;
    h->left = made.left;
    return code;
}

TEST(held_reader, the_last_bytes_come_when_the_proof_holds)
{
    int asked = 0;
    struct held_reader h = {.prove = agree, .ctx = &asked};
    struct buf out = BUF_INIT(0);
    struct err err = {0};

    CHECK_OK(read_held(&h, STR("12345"), 5, &out, &err));
    CHECK_STR(buf_str(&out), STR("12345"));
    CHECK_INT(asked, 1);
    CHECK_INT(h.left, 0);
    CHECK_INT(h.failed, 0);
    buf_release(&out);
}

TEST(held_reader, the_last_bytes_stay_when_it_does_not)
{
    int asked = 0;
    struct held_reader h = {.prove = refuse, .ctx = &asked};
    struct buf out = BUF_INIT(0);
    struct err err = {0};

    CHECK_ERR(read_held(&h, STR("12345"), 5, &out, &err), ERR_INVALID);
    CHECK_STR(buf_str(&out), STR("1234"));
    CHECK_INT(asked, 1);
    CHECK_INT(h.left, 1);
    CHECK_INT(h.failed, ERR_INVALID);
    buf_release(&out);
}

TEST(held_reader, an_early_end_is_not_asked_about)
{
    int asked = 0;
    struct held_reader h = {.prove = agree, .ctx = &asked};
    struct buf out = BUF_INIT(0);
    struct err err = {0};

    CHECK_ERR(read_held(&h, STR("12345"), 6, &out, &err), ERR_CLOSED);
    CHECK_INT(asked, 0);
    CHECK_INT(h.failed, ERR_CLOSED);
    buf_release(&out);
}

TEST(held_reader, an_end_that_is_not_known_is_the_source_s)
{
    int asked = 0;
    struct held_reader h = {.prove = refuse, .ctx = &asked};
    struct buf out = BUF_INIT(0);
    struct err err = {0};

    CHECK_OK(read_held(&h, STR("12345"), UINT64_MAX, &out, &err));
    CHECK_STR(buf_str(&out), STR("12345"));
    CHECK_INT(asked, 0);
    buf_release(&out);
}
