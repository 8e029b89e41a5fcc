/* A library whose constructor waits for a thread that allocates. The loader holds its lock meanwhile. */
#define _GNU_SOURCE
#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static void *allocate(void *unused) {
    void *block = NULL;
    (void)unused;
    if (posix_memalign(&block, 64, 1000)) _exit(9);
    free(block);
    free(memalign(64, 1000));
    free(aligned_alloc(64, 1024));
    return NULL;
}

__attribute__((constructor)) static void wait_for_a_thread(void) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, allocate, NULL)) _exit(8);
    pthread_join(thread, NULL);
}
