//! Shows a desktop notification, if there is a desktop, for the few events that a person must not miss.

use antifreeze_record::event::EventKind;
use std::process::{Command, Stdio};

pub fn deserves_notification(kind: &EventKind) -> bool {
    matches!(
        kind,
        EventKind::Paused { .. } | EventKind::StopSent { .. } | EventKind::KillSent { .. }
    )
}

/// Shows a notification, without waiting for it.
pub fn notify(sentence: &str) {
    let desktop = ["DISPLAY", "WAYLAND_DISPLAY"]
        .iter()
        .any(|name| std::env::var_os(name).is_some());
    if !desktop || std::env::var_os("DBUS_SESSION_BUS_ADDRESS").is_none() {
        return;
    }
    let spawned =
        quiet(Command::new("notify-send").args(["--app-name=antifreeze", "antifreeze", sentence]));
    if spawned.is_err() {
        // systemd's client is there where notify-send is not.
        let place = "/org/freedesktop/Notifications";
        let name = "org.freedesktop.Notifications";
        let _ = quiet(
            Command::new("busctl")
                .args([
                    "--user",
                    "--quiet",
                    "call",
                    name,
                    place,
                    name,
                    "Notify",
                    "susssasa{sv}i",
                ])
                .args([
                    "antifreeze",
                    "0",
                    "",
                    "antifreeze",
                    sentence,
                    "0",
                    "0",
                    "-1",
                ]),
        );
    }
}

fn quiet(command: &mut Command) -> std::io::Result<()> {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map(|_| ())
}
