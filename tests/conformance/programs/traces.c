/* Follows a program by ptrace(2) as a recording debugger does: every system call of all its processes, with
   exec, fork and clone followed, and some single steps. Prints how it ended. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int count, char **words) {
    if (count < 2) return 2;
    pid_t root = fork();
    if (root == 0) {
        ptrace(PTRACE_TRACEME, 0, 0, 0);
        raise(SIGSTOP);
        execvp(words[1], words + 1);
        _exit(127);
    }
    int status, stops = 0, result = -1;
    waitpid(root, &status, 0);
    ptrace(PTRACE_SETOPTIONS, root, 0,
           PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEEXEC | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE |
               PTRACE_O_EXITKILL);
    ptrace(PTRACE_SYSCALL, root, 0, 0);
    for (;;) {
        pid_t pid = waitpid(-1, &status, __WALL);
        if (pid < 0) break;
        if (!WIFSTOPPED(status)) {
            if (pid == root) result = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
            continue;
        }
        int signal = WSTOPSIG(status);
        int is_own = signal == (SIGTRAP | 0x80) || signal == SIGTRAP || signal == SIGSTOP;
        stops++;
        ptrace(stops % 50 ? PTRACE_SYSCALL : PTRACE_SINGLESTEP, pid, 0, is_own ? 0 : signal);
    }
    printf("stopped often: %s, ended with %d\n", stops > 50 ? "yes" : "no", result);
    return result;
}
