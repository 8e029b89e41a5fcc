"""Starts programs as the users of the guest, as a desktop does.

`u` is the user who trains, `other` is another user. With systemd each program gets its own scope
under its user's manager, as a terminal or a browser does on a desktop, because some guards act on
cgroups.
"""

import os
import pwd
import signal
import subprocess

HAS_SYSTEMD = os.path.isdir("/run/systemd/system")


def start_program(user, name, argv, properties=(), environment=None, **popen):
    """Returns the process of the program. `name` and `properties` are those of the scope; without a name there is
    no scope."""
    return subprocess.Popen(
        # Only conduct.py is exempt from the OOM killer.
        ["choom", "-n", "0", "--"]
        + ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups", "--"]
        + (_scope(name, properties) if HAS_SYSTEMD and name else [])
        + list(argv),
        env=environment_of(user) | (environment or {}),
        cwd=pwd.getpwnam(user).pw_dir,
        stdin=subprocess.DEVNULL,
        **popen,
    )


def kill_processes_of(user):
    """Kills every process of the user; workers may have outlived their trainer."""
    uid = pwd.getpwnam(user).pw_uid
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.stat(f"/proc/{pid}").st_uid == uid:
                os.kill(int(pid), signal.SIGKILL)
        except (FileNotFoundError, ProcessLookupError):
            pass


def environment_of(user):
    account = pwd.getpwnam(user)
    environment = {
        "HOME": account.pw_dir,
        "USER": user,
        "LOGNAME": user,
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "PYTHONUNBUFFERED": "1",
    }
    if HAS_SYSTEMD:
        environment["XDG_RUNTIME_DIR"] = f"/run/user/{account.pw_uid}"
        environment["DBUS_SESSION_BUS_ADDRESS"] = f"unix:path=/run/user/{account.pw_uid}/bus"
    return environment


def _scope(name, properties):
    settings = [word for setting in properties for word in ("-p", setting)]
    scope = ["systemd-run", "--user", "--scope", "--quiet", "--collect", f"--unit={name}"]
    return [*scope, *settings, "--"]
