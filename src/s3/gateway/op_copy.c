/* CopyObject. Also finds the source for CopyObject and UploadPartCopy. */
#include "s3/gateway/bucket_name.h"
#include "s3/gateway/gateway_int.h"

static int decode_part(struct call *c, struct str in, struct str *out)
{
    struct buf b = BUF_INIT(HTTP_MAX_HEAD);
    int code = url_decode(&b, in, false);

    *out = arena_str(c->a, buf_str(&b));
    buf_release(&b);
    return code;
}

/* Reads x-amz-copy-source, such as "/bucket/key%20name?versionId=x". The first slash is optional,
 * and the whole text is percent-encoded. */
int copy_source_parse(struct call *c, struct copy_source *out, struct err *err)
{
    const struct http_header *h = http_header_next(c->head, "x-amz-copy-source", NULL);
    struct str text = h ? h->value : STR_EMPTY, version, bucket;
    ptrdiff_t at = str_find(text, STR("?versionId="));

    if (h && http_header_next(c->head, "x-amz-copy-source", h))
        return err_set(err, S3_INVALID_ARGUMENT, "There is more than one Copy Source");
    version = at < 0 ? STR_EMPTY : str_skip(text, (size_t)at + 11);
    if (at >= 0)
        text = str_head(text, (size_t)at);
    if (at >= 0 && !version.len)
        return err_set(err, S3_INVALID_ARGUMENT, "Version id cannot be the empty string");
    bool decoded = decode_part(c, text, &text) == 0 && decode_part(c, version, &out->version) == 0;
    if (str_starts(text, STR("/")))
        text = str_skip(text, 1);
    if (!decoded || !str_cut(text, '/', &bucket, &out->key) || !bucket.len || !out->key.len)
        return err_set(err, S3_INVALID_ARGUMENT,
                       "Copy Source must mention the source bucket and key: "
                       "sourcebucket/sourcekey");
    int code = bucket_name_read(&out->bucket, bucket, err);
    return code < 0 ? code : object_key_check(out->key, c->g->o.routes, out->bucket, err);
}

int copy_source_find(struct call *c, struct err *err)
{
    struct copy_source *s = c->source ? c->source : arena_new(c->a, struct copy_source);

    if (c->source)
        return 0;
    int code = s ? copy_source_parse(c, s, err) : err_code(err, ERR_NO_MEMORY);
    if (code < 0)
        return code;
    struct route_ask ask = {.bucket = s->bucket, .sides = c->g->o.sides};
    code = call_locate(c, &s->target, &ask, err);
    if (code < 0)
        return code;
    c->source = s;
    return call_choose_source(c, s, err);
}

int copy_source_text(struct call *c, struct str *out, struct err *err)
{
    struct buf text = BUF_INIT(0);
    int code = copy_source_find(c, err);

    if (code < 0)
        return code;
    const struct copy_source *s = c->source;
    buf_append_char(&text, '/');
    url_encode(&text, s->bucket, false);
    buf_append_char(&text, '/');
    url_encode(&text, s->key, true);
    if (s->version.len) {
        buf_append_z(&text, "?versionId=");
        url_encode(&text, s->version, false);
    }
    *out = arena_str(c->a, buf_str(&text));
    buf_release(&text);
    return arena_error(c->a) < 0 ? err_code(err, ERR_NO_MEMORY) : 0;
}

/* Checks access to the source. The source's version comes from x-amz-copy-source, not from the
 * request's versionId. */
static int need_source(struct call *c, struct copy_source *s, enum s3_action action,
                       const struct object_info *object, struct err *err)
{
    struct call_item item = {.version = s->version};

    c->item = &item;
    int code = call_need(c, &s->target, action, s->key, object, err);
    c->item = NULL;
    return code;
}

static int judge_source(struct call *c, struct copy_source *s, int code, struct err *err)
{
    enum s3_action action = s->version.len ? S3_ACTION_GET_OBJECT_VERSION : S3_ACTION_GET_OBJECT;
    /* If only a condition failed, the info of the source is filled in all the same: it has a key or
     * an ETag. An object of a lake's repository may have no ETag. */
    bool there =
        code != ERR_NOT_FOUND && (code == 0 || s->head.info.key.len || s->head.info.etag.len);
    int may = need_source(c, s, action, there ? &s->head.info : NULL, err);

    if (may < 0)
        return may;
    if (code == ERR_NOT_FOUND && s->head.info.is_marker && s->version.len)
        return err_set(err, S3_INVALID_REQUEST,
                       "The source of a copy request may not specifically refer to a delete "
                       "marker by version id.");
    if (code == ERR_NOT_FOUND)
        return call_absent(c, &s->target, s->key, s->version.len > 0, err);
    return code == ERR_NOT_MODIFIED ? err_code(err, ERR_PRECONDITION) : code;
}

int copy_source_open(struct call *c, struct copy_source **out, struct err *err)
{
    struct object_conditions conditions;
    int code = copy_source_find(c, err);
    struct copy_source *s = *out = c->source;

    if (code == 0)
        code = call_open(c, &s->target, s->bucket, err);
    if (code == 0)
        code = conditions_read(c, "x-amz-copy-source-", &conditions, err);
    if (code < 0)
        return code;
    struct bucket *b = s->target.bucket;
    code = b->ops->head(b, c->a, s->key, s->version, &conditions, &s->head, err);
    return judge_source(c, s, code, err);
}

/* Reads the header `name`, whose value is the directive REPLACE or COPY. Without the header the
 * directive is COPY. */
static int directive(struct call *c, const char *name, bool *replace, struct err *err)
{
    struct str text = http_header(c->head, name);

    *replace = str_eq(text, STR("REPLACE"));
    if (text.len && !*replace && !str_eq(text, STR("COPY")))
        return err_set(err, S3_INVALID_ARGUMENT, "Unknown %s.", name);
    return 0;
}

/* Copies the source's tags, for which the user needs the right to read tags and to set them. The
 * right to put the object was checked before its tags were known. So it is checked again, because a
 * policy may have a condition on tags. */
static int take_tags(struct call *c, struct copy_source *s, struct object_meta *out,
                     struct err *err)
{
    const struct object_info *from = &s->head.info;
    enum s3_action action =
        s->version.len ? S3_ACTION_GET_OBJECT_VERSION_TAGGING : S3_ACTION_GET_OBJECT_TAGGING;

    out->tags = from->meta.tags;
    if (!from->meta.tags.len)
        return 0;
    int code = need_source(c, s, action, from, err);
    if (code < 0)
        return code;
    c->new_tags = from->meta.tags;
    code = call_need(c, &c->target, s3_operations[c->op->id].action, c->key, NULL, err);
    return code < 0 ? code : call_need_tagging(c, err);
}

static int copied_meta(struct call *c, struct copy_source *s, struct object_meta *out,
                       struct err *err)
{
    const struct object_meta *from = &s->head.info.meta;
    bool replace, replace_tags, itself;
    int code = directive(c, "x-amz-metadata-directive", &replace, err);

    if (code == 0)
        code = directive(c, "x-amz-tagging-directive", &replace_tags, err);
    if (code == 0)
        code = meta_from_request(c, out, err);
    if (code == 0)
        code = meta_common(c, out, err);
    if (code < 0)
        return code;
    itself = str_eq(s->key, c->key) && str_eq(s->target.info.name, c->target.info.name);
    if (itself && !replace && !s->version.len && !http_header(c->head, "x-amz-storage-class").p &&
        !http_header(c->head, "x-amz-website-redirect-location").p && !sse_given(c->head) &&
        !http_header(c->head, "x-amz-checksum-algorithm").len)
        return err_set(err, S3_INVALID_REQUEST,
                       "This copy request is illegal because it is trying to copy an object to "
                       "itself without changing the object's metadata, storage class, website "
                       "redirect location or encryption attributes.");
    if (!replace) {
        out->headers = from->headers;
        out->header_count = from->header_count;
    }
    out->checksum = from->checksum;
    return replace_tags ? 0 : take_tags(c, s, out, err);
}

int copy_source_get(struct call *c, struct copy_source *s, const struct object_range *range,
                    struct get_result *out, struct err *err)
{
    struct bucket *from = s->target.bucket;
    const struct object_info *info = &s->head.info;
    struct object_conditions same = {.if_match =
                                         arena_fmt(c->a, "\"" STR_FMT "\"", STR_ARG(info->etag))};
    int code = from->ops->get(from, c->a, s->key, info->version, &same, range, out, err);

    return code == ERR_PRECONDITION ? err_code(err, ERR_CONFLICT) : code;
}

bool copy_source_is_versioned(const struct copy_source *s)
{
    if (target_is_foreign(&s->target.at))
        return s->head.info.version.len && !str_eq(s->head.info.version, STR("null"));
    return s->target.info.versions != VERSIONS_NEVER;
}

bool copy_shares(const struct call *c, const struct copy_source *s)
{
    const struct target *from = &s->target.at, *to = &c->target.at;
    bool here =
        from->kind == TARGET_HERE && to->kind == TARGET_HERE && from->storage == to->storage;

    /* A bucket of a space finds out itself whether it can copy from the source's bucket. Two
     * buckets with the same home can share bytes even if one of them lies over several storages. */
    return (s->target.bucket->ops == c->target.bucket->ops || to->kind == TARGET_SPACE || here) &&
           (from->storage == to->storage || !target_is_foreign(from));
}

/* Finds the kind of checksum that the copy needs and its source does not have; DIGEST_MD5: none.
 * The source's own checksum is copied, unless the request asks for another kind. */
static int checksum_to_make(struct call *c, struct put_options *o, enum digest_kind *out,
                            struct err *err)
{
    struct object_checksum *sum = &o->meta.checksum;
    int code = checksum_asked(c, out, err);

    if (code < 0)
        return code;
    /* A checksum that weir made by itself is not copied to an object that hides its MD5. */
    bool unwanted = *out == DIGEST_MD5 && sse_checksum(c->encryption.kind) == DIGEST_MD5 &&
                    sum->kind == DIGEST_CRC64NVME;
    bool other = *out != DIGEST_MD5 && !checksum_is_whole(sum, *out);
    if (*out != DIGEST_MD5 && !other)
        *out = DIGEST_MD5;
    if (unwanted || other)
        *sum = (struct object_checksum){0};
    return 0;
}

static int copy_source_unlock(struct call *c, struct copy_source *s, struct get_result *got,
                              struct err *err)
{
    struct object_range all = {.kind = RANGE_ALL};
    int code = copy_source_get(c, s, &all, got, err);

    return code < 0 ? code : encrypt_source_unlock(c, s, got, err);
}

/* Computes the checksum for a copy that moves no bytes, or whose storage needs the checksum before
 * the bytes. */
static int copy_know_checksum(struct call *c, struct copy_source *s, enum digest_kind kind,
                              struct object_checksum *out, struct err *err)
{
    struct get_result got = {0};
    int code = copy_source_unlock(c, s, &got, err);

    if (code == 0)
        code = checksum_compute(c->a, got.body, kind, out, err);
    reader_close(got.body);
    return code;
}

/* Asks replication whether the copy may still be made (docs/replication.md, E2). */
static int may_end(void *ctx, struct object_meta *meta, struct err *err)
{
    (void)meta;
    return call_may_send(ctx, err);
}

/* Makes the copy by reading the source and putting its bytes. This is for copies between storages,
 * and where bytes must be encrypted or decrypted. `make` is the kind of checksum that was asked
 * for. If no checksum was asked for, a source without a checksum of all its bytes gets one while it
 * streams. */
static int read_and_put(struct call *c, struct copy_source *s, struct put_options *o,
                        enum digest_kind make, struct put_result *out, struct err *err)
{
    struct bucket *to = c->target.bucket;
    struct object_checksum *sum = &o->meta.checksum;
    struct get_result got = {0};
    struct summed summed = {0};

    if (make == DIGEST_MD5 && sum->type != CHECKSUM_FULL_OBJECT &&
        !target_is_foreign(&c->target.at))
        make = sum->type == CHECKSUM_COMPOSITE ? sum->kind : sse_checksum(c->encryption.kind);
    if (sum->type == CHECKSUM_COMPOSITE) /* made of parts' checksums, but the copy has no parts */
        *sum = (struct object_checksum){0};
    if (target_is_foreign(&c->target.at)) {
        o->verify = may_end;
        o->ctx = c;
    }
    int code = copy_source_unlock(c, s, &got, err);
    if (code == 0) {
        struct reader *body = summed_open(&summed, c->a, got.body, make, o);
        code = to->ops->put(to, c->a, c->key, body, got.len, o, out, err);
    }
    if (make != DIGEST_MD5)
        *sum = summed.checksum;
    summed_close(&summed);
    reader_close(got.body);
    return code;
}

/* Sets up the copy's encryption. If source and copy are both encrypted, the sealed bytes stay as
 * they are, and the copy's envelope gets their key (docs/encryption.md, E6). */
static int copy_encryption(struct call *c, struct copy_source *s, struct put_options *o,
                           struct err *err)
{
    bool sealed = s->head.info.meta.encryption.len > 0;
    struct sealed_key data = {0};
    int code = encrypt_source(c, s, &data, err);

    if (code == 0)
        code = encrypt_new(c, sealed ? &data : NULL, o, err);
    secure_zero(&data, sizeof(data));
    if (code == 0 && c->encryption.kind != SSE_NONE && c->encryption.kind != SSE_S3)
        o->etag = encrypt_etag(c);
    return code;
}

static int copy_move_bytes(struct call *c, struct copy_source *s, struct put_options *o,
                           struct put_result *out, struct err *err)
{
    struct bucket *b = c->target.bucket;
    bool shares = copy_shares(c, s) && !s->head.info.meta.encryption.len == !o->meta.encryption.len;
    enum digest_kind make;
    int code = checksum_to_make(c, o, &make, err);

    if (code == 0 && make != DIGEST_MD5 && (shares || target_is_foreign(&c->target.at))) {
        code = copy_know_checksum(c, s, make, &o->meta.checksum, err);
        make = DIGEST_MD5;
    }
    if (code == 0)
        code = call_may_send(c, err);
    if (code < 0)
        return code;
    code = shares ? b->ops->copy(b, c->a, c->key, s->target.bucket, &s->head.info, o, out, err)
                  : ERR_UNSUPPORTED;
    return code == ERR_UNSUPPORTED ? read_and_put(c, s, o, make, out, err) : code;
}

/* Makes the copy. `o` gets the options that the copy was made with. */
static int copy_object_make(struct call *c, struct put_options *o, struct put_result *out,
                            struct err *err)
{
    struct copy_source *s;
    int code = copy_source_open(c, &s, err);

    if (code == 0 && s->head.info.size > CALL_PUT_MAX)
        code = err_set(err, S3_INVALID_REQUEST,
                       "The specified copy source is larger than the maximum allowable size for "
                       "a copy source: 5368709120");
    if (code == 0)
        code = copied_meta(c, s, &o->meta, err);
    o->conditions.if_match = http_header(c->head, "if-match");
    o->conditions.if_none_match = http_header(c->head, "if-none-match");
    if (code == 0)
        code = copy_encryption(c, s, o, err);
    if (code == 0)
        code = call_note(c, S3_EVENT_CREATED_COPY, c->key, &o->note, err);
    if (code < 0) {
        call_not_captured(c);
        return code;
    }
    code = copy_move_bytes(c, s, o, out, err);
    struct err late = {0};
    int told =
        call_captured(c, code == 0 ? OUTCOME_DONE : OUTCOME_UNKNOWN, code == 0 ? err : &late);
    if (code == 0)
        code = told;
    if (code == 0)
        call_told(c);
    return code;
}

int op_copy_object(struct call *c, struct err *err)
{
    struct put_options o = {0};
    struct put_result out = {0};
    struct buf xml = BUF_INIT(CALL_OUT_MAX);
    int code = copy_object_make(c, &o, &out, err);

    if (code == 0) {
        c->has_size = true;
        c->size = out.size;
        document_open(&xml, "CopyObjectResult");
        xml_time(&xml, "LastModified", out.modified_ms);
        xml_etag(&xml, out.etag);
        xml_checksum(&xml, &o.meta.checksum);
        xml_checksum_type(&xml, &o.meta.checksum);
        xml_close(&xml, "CopyObjectResult");
        respond_begin(c, 200);
        respond_put_expiration(c, &out, &o.meta);
        respond_header(c, "Content-Type", STR("application/xml"));
        respond_new_version(c, out.version);
        respond_encryption(c);
        if (copy_source_is_versioned(c->source))
            respond_header(c, "x-amz-copy-source-version-id", c->source->head.info.version);
        c->begun = true;
        code = http_send(c->http, buf_str(&xml));
    }
    buf_release(&xml);
    call_log_copied(c, code);
    return code;
}
