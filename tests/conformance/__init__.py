"""The conformance suite: under `antifreeze run` a program behaves as it does alone.

Each entry of the table is a program, or a situation in which a program is started. It is run alone, under `antifreeze
run --quiet`, and under `antifreeze run`, each time in the same empty folders. What was observed is compared by aspect:
exit status, standard output and standard error, signals that stopped it, the files that the run made, and the
processes, cgroups, sockets, shared memory and temporary files that were left behind; for the program `facts` also the
environment, resource limits, niceness, umask, descriptors, signal mask and dispositions, process group, session and
terminal.

An aspect that differs fails the entry, unless the entry lists it as a known difference, with the value under
antifreeze and the reason. A known difference that is not observed any more, or has another value, fails the entry as
well, so that the list stays true.

| file | subject |
|---|---|
| `entry.py` | what an entry of the table says |
| `table/` | the entries, one file for each kind of program |
| `programs/` | programs that the entries run and that are not installed on every machine |
| `needs.py` | what an entry needs, and why it is skipped |
| `folders.py` | the folders of a run, and what was left in them |
| `observe.py` | one run: starts the supervisor and reads its result |
| `supervise.py` | the parent of one run, in a process of its own |
| `own_lines.py` | which lines of the output are antifreeze's |
| `compare.py` | two observations: what differs, and which differences were known |
| `suite.py` | the command line, and the summary |
| `test_faults.py` | the suite fails where it should |
"""
