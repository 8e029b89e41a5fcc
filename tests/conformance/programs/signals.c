/* Waits for signals:
   `signals catch`    blocks all of them and names the first that comes;
   `signals handle`   handles all of them, names each, and ends with SIGUSR2;
   `signals default`  leaves the default action;
   `signals ignore`   ignores all of them until SIGRTMIN+3 comes;
   `signals read`     waits for none, and reads its input to the end. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static volatile sig_atomic_t ended;

static void handle(int number) {
    char text[64];
    int length = snprintf(text, sizeof text, "got signal %d\nready\n", number);
    if (write(STDOUT_FILENO, text, length) != length || number == SIGUSR2) ended = 1;
}

int main(int count, char **arguments) {
    const char *mode = count > 1 ? arguments[1] : "default";
    struct rlimit none = {0, 0};
    sigset_t all, empty, last;
    int number = 0;
    sigfillset(&all);
    sigemptyset(&empty);
    sigemptyset(&last);
    sigaddset(&last, SIGRTMIN + 3);
    setrlimit(RLIMIT_CORE, &none);
    if (strcmp(mode, "default") && strcmp(mode, "read")) sigprocmask(SIG_BLOCK, &all, NULL);
    if (!strcmp(mode, "handle"))
        for (number = 1; number < 65; number++) signal(number, handle);
    if (!strcmp(mode, "ignore")) {
        for (number = 1; number < 65; number++)
            if (number != SIGRTMIN + 3) signal(number, SIG_IGN);
        sigprocmask(SIG_SETMASK, &last, NULL);
    }
    puts("ready");
    fflush(stdout);
    if (!strcmp(mode, "default"))
        for (;;) pause();
    if (!strcmp(mode, "catch")) {
        sigwait(&all, &number);
        printf("got signal %d\n", number);
        return 0;
    }
    if (!strcmp(mode, "handle")) {
        while (!ended) sigsuspend(&empty);
        return 7;
    }
    if (!strcmp(mode, "ignore")) sigwait(&last, &number);
    else
        while (getchar() != EOF) {}
    puts("still running");
    return 0;
}
