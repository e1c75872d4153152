/* Dump and load of rows as JSON lines: {"partition":...,"key":...,"value":...}, each in base64. */
#ifndef KV_DUMP_H
#define KV_DUMP_H

#include "kv/kv.h"

/* Receives one line, without a newline; the line is borrowed until the function returns. */
typedef int kv_line_fn(void *ctx, struct str line, struct err *err);

/* Calls `fn` with every row of a partition as a line, in the order of the keys. */
int kv_dump(struct kv *kv, struct kv_view *view, struct str partition, kv_line_fn *line, void *ctx,
            struct err *err) MUST_CHECK;

/* Puts the row of one line. ERR_PARSE: the line is not from a dump. */
int kv_load_line(struct kv *kv, struct str line, struct err *err) MUST_CHECK;

#endif
