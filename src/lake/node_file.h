/* The layout of weir's node files, shared by their writer and their reader (docs/lake-trees.md,
 * "The file"). */
#ifndef LAKE_NODE_FILE_H
#define LAKE_NODE_FILE_H

#define NODE_MAGIC "weirTRE1"

enum {
    NODE_MAGIC_LEN = 8,
    NODE_HEADER = 16, /* magic, level, 7 zeros */
    NODE_HEADER_LEVEL = 8,
    NODE_FOOTER = 64,
    NODE_BLOCK_END = 5, /* type and CRC after each block */
};

/* Offsets in the footer; the numbers are little-endian and have four bytes. */
enum {
    FOOTER_ID = 0, /* 32 bytes */
    FOOTER_INDEX_AT = 32,
    FOOTER_INDEX_STORED = 36,
    FOOTER_INDEX_RAW = 40,
    FOOTER_RECORDS = 44,
    FOOTER_BYTES = 48, /* hashed bytes of keys and values */
    FOOTER_CRC = 52,   /* covers the header, and the footer up to here */
    FOOTER_MAGIC = 56,
};

enum node_block_type { NODE_BLOCK_RAW = 0, NODE_BLOCK_ZSTD = 1 };

#endif
