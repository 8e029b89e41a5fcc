use crate::parse::{cgroup_memberships, mount_holding, mounts, unescape_mount_path};

const TABLE: &[u8] = b"27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard\n\
22 27 0:21 / /proc rw,relatime - proc proc rw\n\
50 27 0:40 /@home /home rw,relatime shared:1 master:2 - btrfs /dev/nvme0n1p2 rw,subvol=/@home\n\
51 50 0:41 / /home/ann/my\\040data rw - fuse.sshfs ann@host:/data rw,user_id=0\n\
52 50 0:42 / /home/ann/work rw - nfs4 host:/work rw\n\
53 50 0:43 / /home/ann/work rw - tmpfs tmpfs rw\n";

#[test]
fn optional_fields_do_not_shift_the_others() {
    let home = mounts(TABLE).nth(2).unwrap();
    assert_eq!((home.root, home.point), (&b"/@home"[..], &b"/home"[..]));
    assert_eq!(
        (home.kind, home.source),
        (&b"btrfs"[..], &b"/dev/nvme0n1p2"[..])
    );
    assert_eq!(home.options, b"rw,subvol=/@home");
}

#[test]
fn a_path_is_on_its_deepest_mount() {
    let kind = |path: &[u8]| mount_holding(TABLE, path).unwrap().kind;
    assert_eq!(kind(b"/"), b"ext4");
    assert_eq!(kind(b"/homestead"), b"ext4");
    assert_eq!(kind(b"/home"), b"btrfs");
    assert_eq!(kind(b"/home/ann"), b"btrfs");
    assert_eq!(kind(b"/home/ann/my data/set"), b"fuse.sshfs");
}

#[test]
fn of_two_mounts_at_one_place_the_later_covers_the_earlier() {
    assert_eq!(
        mount_holding(TABLE, b"/home/ann/work").unwrap().kind,
        b"tmpfs"
    );
}

#[test]
fn escapes_are_octal_and_others_stay() {
    let plain = |path: &[u8]| unescape_mount_path(path).collect::<Vec<_>>();
    assert_eq!(plain(b"/a\\040b\\134c\\011"), b"/a b\\c\t");
    assert_eq!(plain(b"/a\\9\\4"), b"/a\\9\\4");
    assert_eq!(plain(b"\\777"), b"\\777");
}

#[test]
fn cgroup_paths_may_hold_colons() {
    let all: Vec<_> = cgroup_memberships(b"4:memory:/a:b\n0::/user.slice\nnonsense\n").collect();
    assert_eq!(all.len(), 2);
    assert_eq!(
        (all[0].hierarchy, all[0].controllers, all[0].path),
        (4, &b"memory"[..], &b"/a:b"[..])
    );
    assert_eq!(
        (all[1].hierarchy, all[1].controllers, all[1].path),
        (0, &b""[..], &b"/user.slice"[..])
    );
}
