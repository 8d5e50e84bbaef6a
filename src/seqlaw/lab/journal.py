"""Which journal SQLite can keep, by the file system that a folder lies on."""

from __future__ import annotations

from pathlib import Path

# SQLite's write-ahead log needs shared memory between processes, which these file systems do not give.
_NETWORK = (
    "nfs", "cifs", "smb", "lustre", "gpfs", "beegfs", "ceph", "afs", "9p", "fuse", "glusterfs", "pvfs",
)  # fmt: skip


def journal_for(folder: Path) -> str:
    """`wal` on a local disk, `delete` (a rollback journal) on a network file system."""
    return "delete" if file_system(folder).startswith(_NETWORK) else "wal"


def file_system(folder: Path, mounts: Path = Path("/proc/self/mountinfo")) -> str:
    """The type of the file system that holds a folder; empty where the system does not say."""
    try:
        lines = mounts.read_text().splitlines()
    except OSError:
        return ""
    target, best, kind = str(folder.resolve()), -1, ""
    for line in lines:
        before, _, after = line.partition(" - ")
        point = before.split()[4].replace("\\040", " ")
        inside = target == point or target.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= best:
            best, kind = len(point), after.split()[0]
    return kind
