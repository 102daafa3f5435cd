//! Where the database lies.

use super::StoreError;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

/// Makes the directory of the database if it is missing; what it holds is the operator's own.
pub(super) fn prepare(path: &Path) -> Result<(), StoreError> {
    let directory = directory(path);
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)
        .map_err(|error| StoreError::Directory {
            path: path.to_path_buf(),
            what: format!("its directory cannot be made ({error})"),
        })
}

fn directory(path: &Path) -> &Path {
    path.parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}

/// Whether the file system may be shared over a network, where the shared memory of a write-ahead log does not work. FUSE counts: it
/// carries sshfs and its like.
pub(super) fn is_network(path: &Path) -> bool {
    rustix::fs::statfs(directory(path)).is_ok_and(|stat| {
        // The kernel's field differs in width and sign between machines; the magic numbers are 32 bits.
        NETWORK.contains(&(stat.f_type as u32))
    })
}

/// File systems by their magic number (`statfs(2)`, `linux/magic.h`).
const NETWORK: [u32; 14] = [
    0x0000_6969, // NFS
    0x0000_517B, // SMB
    0xFF53_4D42, // CIFS
    0xFE53_4D42, // SMB2
    0x6573_5546, // FUSE
    0x0102_1997, // 9P
    0x00C3_6400, // Ceph
    0x5346_414F, // AFS
    0x6B41_4653, // AFS in the kernel
    0x7375_7245, // Coda
    0x0BD0_0BD3, // Lustre
    0x4750_4653, // GPFS
    0x1983_0326, // BeeGFS
    0x0116_1970, // GFS2
];
