/* Refusals of git servers: whatever a server says becomes words that may stand in an object and on
 * a terminal. The first two bytes are the status; a line of Retry-After comes before the body. */
#include "archive/fault.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fault_check(const struct fetch_fault *f)
{
    struct str words = str_z(f->words);

    BUG_ON(f->code <= ARCHIVE_OK || f->code >= ARCHIVE_CODES);
    BUG_ON(f->retry_after_s < -1 || f->retry_after_s > FETCH_RETRY_AFTER_MAX_S);
    BUG_ON(words.len >= FETCH_WORDS_MAX || !str_is_utf8(words));
    while (words.len) {
        BUG_ON(str_utf8_is_control(words));
        words = str_skip(words, str_utf8_len(words));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct http_header retry = {.name = STR("Retry-After")};
    struct client_response head = {.headers = &retry, .header_count = 1};
    struct fetch_fault f;
    struct str body;

    if (size < 2)
        return 0;
    head.status = data[0] << 8 | data[1];
    str_cut(str_n(data + 2, size - 2), '\n', &retry.value, &body);
    fetch_fault_answer(&f, &head, body);
    fault_check(&f);
    fetch_fault_words(&f, body);
    fault_check(&f);
    return 0;
}
