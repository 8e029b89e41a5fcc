/* Reserves far more address space than there is memory, starts threads with large stacks, and uses little of it. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { THREADS = 100 };

static pthread_barrier_t all_started;

static void *use_a_little(void *unused) {
    char block[65536];
    memset(block, 1, sizeof block);
    pthread_barrier_wait(&all_started);
    return unused;
}

static void reserve(size_t bytes, int protection, int flags) {
    char *at = mmap(NULL, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
    printf("%zu GB: %s\n", bytes >> 30, at == MAP_FAILED ? strerror(errno) : "reserved");
    if (at != MAP_FAILED && protection & PROT_WRITE) at[bytes / 2] = 1;
}

int main(void) {
    pthread_t threads[THREADS];
    pthread_attr_t attributes;
    reserve((size_t)30 << 30, PROT_READ | PROT_WRITE, MAP_NORESERVE);
    reserve((size_t)1 << 40, PROT_READ | PROT_WRITE, MAP_NORESERVE);
    reserve((size_t)1 << 40, PROT_NONE, 0);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 256 << 20);
    pthread_barrier_init(&all_started, NULL, THREADS + 1);
    for (int i = 0; i < THREADS; i++) {
        int code = pthread_create(&threads[i], &attributes, use_a_little, NULL);
        if (code) return printf("thread %d: %s\n", i, strerror(code)), 1;
    }
    pthread_barrier_wait(&all_started);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    puts("all threads");
    return 3;
}
