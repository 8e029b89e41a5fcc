//! A kernel older than 5.4, as far as `madvise` shows it: a seccomp filter refuses `MADV_PAGEOUT` with EINVAL.

use libc::{sock_filter, sock_fprog};
use std::mem::offset_of;

const SECCOMP_SET_MODE_FILTER: u32 = 1;
const SECCOMP_FILTER_FLAG_TSYNC: u32 = 1;

/// For this process and all that it starts. Programs that only compute see no difference.
pub fn refuse_pageout_advice() {
    let number = offset_of!(libc::seccomp_data, nr) as u32;
    // The low half of the third argument.
    let advice = (offset_of!(libc::seccomp_data, args) + 2 * size_of::<u64>()) as u32;
    let load = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    let equals = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    let answer = (libc::BPF_RET | libc::BPF_K) as u16;
    let instruction = |code, k, jt, jf| sock_filter { code, jt, jf, k };
    let mut filter = [
        instruction(load, number, 0, 0),
        instruction(equals, libc::SYS_madvise as u32, 0, 3),
        instruction(load, advice, 0, 0),
        instruction(equals, libc::MADV_PAGEOUT as u32, 0, 1),
        instruction(answer, libc::SECCOMP_RET_ERRNO | libc::EINVAL as u32, 0, 0),
        instruction(answer, libc::SECCOMP_RET_ALLOW, 0, 0),
    ];
    let program = sock_fprog {
        len: filter.len() as u16,
        filter: filter.as_mut_ptr(),
    };
    // SAFETY: the program and its instructions live until the calls return; the kernel copies them.
    let refused = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        libc::syscall(
            libc::SYS_seccomp,
            SECCOMP_SET_MODE_FILTER,
            SECCOMP_FILTER_FLAG_TSYNC,
            &raw const program,
        );
        let error = libc::madvise(std::ptr::null_mut(), 0, libc::MADV_PAGEOUT);
        error == -1 && *libc::__errno_location() == libc::EINVAL
    };
    assert!(refused, "the filter was not installed");
}
