/* Another preloaded allocator: every block carries a mark in front, and freeing a block
   without it aborts. It proves that what the cushion returns came from here. */
#define _GNU_SOURCE
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <errno.h>

#define MARK 0x616c6c6f63000001UL
struct front { size_t mark, whole, bytes, offset; };

static void *take(size_t alignment, size_t bytes) {
    if (bytes > (1UL << 46)) { errno = ENOMEM; return NULL; }
    if (alignment < 64) alignment = 64;
    size_t whole = (bytes + alignment + sizeof(struct front) + 4095) & ~4095UL;
    char *base = mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED) { errno = ENOMEM; return NULL; }
    size_t at = ((size_t)base + sizeof(struct front) + alignment - 1) & ~(alignment - 1);
    struct front *front = (struct front *)at - 1;
    *front = (struct front){MARK, whole, bytes, at - (size_t)base};
    return (void *)at;
}
void *malloc(size_t bytes) { return take(64, bytes); }
void *calloc(size_t count, size_t size) { return take(64, count * size); }
void *memalign(size_t alignment, size_t bytes) { return take(alignment, bytes); }
void *aligned_alloc(size_t alignment, size_t bytes) { return take(alignment, bytes); }
void *valloc(size_t bytes) { return take(4096, bytes); }
void *pvalloc(size_t bytes) { return take(4096, bytes); }
int posix_memalign(void **out, size_t alignment, size_t bytes) {
    void *block = take(alignment, bytes);
    if (!block) return ENOMEM;
    *out = block;
    return 0;
}
void free(void *block) {
    if (!block) return;
    struct front *front = (struct front *)block - 1;
    if (front->mark != MARK) abort();
    munmap((char *)block - front->offset, front->whole);
}
void *realloc(void *old, size_t bytes) {
    if (old && !bytes) { free(old); return NULL; }
    void *block = take(64, bytes);
    if (block && old) {
        struct front *front = (struct front *)old - 1;
        if (front->mark != MARK) abort();
        memcpy(block, old, front->bytes < bytes ? front->bytes : bytes);
        free(old);
    }
    return block;
}
