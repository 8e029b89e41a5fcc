"""Starting programs as the people of the guest, the way a desktop starts them.

`u` is the person who trains, `other` is somebody else. With systemd each program gets a scope of
its own under its user's manager, as a terminal or a browser does on a desktop, so that guards that
think in cgroups see what they would see there. The process that is returned is the program itself.
"""

import os
import pwd
import signal
import subprocess

HAS_SYSTEMD = os.path.isdir("/run/systemd/system")


def start(user, name, argv, properties=(), environment=None, **popen):
    """`name` names the scope, and without one there is none; `properties` are systemd's, for the scope."""
    return subprocess.Popen(
        # The conductor is exempt from the kernel's out-of-memory killer; nobody else may be.
        ["choom", "-n", "0", "--"]
        + ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups", "--"]
        + (_scope(name, properties) if HAS_SYSTEMD and name else [])
        + list(argv),
        env=environment_of(user) | (environment or {}),
        cwd=pwd.getpwnam(user).pw_dir,
        stdin=subprocess.DEVNULL,
        **popen,
    )


def end_all_of(user):
    """At once, whatever it is; a trainer's workers may have outlived it."""
    number = pwd.getpwnam(user).pw_uid
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.stat(f"/proc/{pid}").st_uid == number:
                os.kill(int(pid), signal.SIGKILL)
        except (FileNotFoundError, ProcessLookupError):
            pass


def environment_of(user):
    person = pwd.getpwnam(user)
    environment = {
        "HOME": person.pw_dir,
        "USER": user,
        "LOGNAME": user,
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "PYTHONUNBUFFERED": "1",
    }
    if HAS_SYSTEMD:
        environment["XDG_RUNTIME_DIR"] = f"/run/user/{person.pw_uid}"
        environment["DBUS_SESSION_BUS_ADDRESS"] = f"unix:path=/run/user/{person.pw_uid}/bus"
    return environment


def _scope(name, properties):
    settings = [word for setting in properties for word in ("-p", setting)]
    scope = ["systemd-run", "--user", "--scope", "--quiet", "--collect", f"--unit={name}"]
    return [*scope, *settings, "--"]
