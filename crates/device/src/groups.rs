//! The part of the machine's memory that the control groups of this process, such as a container's,
//! allow.
//!
//! Versions 1 and 2 are read. The result is the least limit of the group and all visible groups
//! above it. A limit that cannot be read or makes no sense does not count.

use std::fs;
use std::path::{Path, PathBuf};

/// Limits at or above this are how version 1 says that there is none.
const NO_LIMIT: u64 = 1 << 62;
/// Where a process finds its groups, and where their trees are mounted.
const GROUPS: &str = "proc/self/cgroup";
const MOUNTS: &str = "proc/self/mountinfo";

/// The least memory limit of the groups that the process belongs to, bytes, as the files below
/// `root` have them: `/` for those of this process. `None`: there is none.
pub(crate) fn memory_limit_under(root: &Path) -> Option<u64> {
    let groups = fs::read_to_string(root.join(GROUPS)).ok()?;
    let mounts = fs::read_to_string(root.join(MOUNTS)).unwrap_or_default();
    let trees = mounts.lines().filter_map(Tree::parse);
    trees.filter_map(|tree| tree.limit(root, &groups)).min()
}

/// A tree of control groups that has memory limits.
struct Tree {
    /// The group that is mounted.
    top: String,
    /// Where it is.
    mounted: String,
    limits: &'static [&'static str],
    version: Version,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

impl Tree {
    /// From a line of `mountinfo`, if it is of such a tree.
    fn parse(line: &str) -> Option<Tree> {
        let (mount, of) = line.split_once(" - ")?;
        let mut mount = mount.split(' ').skip(3);
        let (top, mounted) = (unescaped(mount.next()?), unescaped(mount.next()?));
        let mut of = of.split(' ');
        let (kind, options) = (of.next()?, of.nth(1).unwrap_or_default());
        let (version, limits): (_, &[&str]) = match kind {
            "cgroup2" => (Version::Two, &["memory.max", "memory.high"]),
            "cgroup" if options.split(',').any(|option| option == "memory") => {
                (Version::One, &["memory.limit_in_bytes"])
            }
            _ => return None,
        };
        Some(Tree { top, mounted, limits, version })
    }

    /// The least limit of the process's group in it and those above, where `groups` says which.
    fn limit(&self, root: &Path, groups: &str) -> Option<u64> {
        let group = groups.lines().find_map(|line| self.group_of(line))?;
        let top = self.top.trim_end_matches('/');
        // A name that the mount does not explain is one of another namespace: only the top is seen.
        let below = group
            .strip_prefix(top)
            .filter(|below| (below.is_empty() || below.starts_with('/')) && !below.contains(".."));
        let mounted = root.join(self.mounted.trim_start_matches('/'));
        let own = mounted.join(below.unwrap_or_default().trim_start_matches('/'));
        let above = own.ancestors().take_while(|folder| folder.starts_with(&mounted));
        let files = above.flat_map(|folder| self.limits.iter().map(|name| folder.join(name)));
        files.filter_map(|file: PathBuf| limit_in(&fs::read_to_string(file).ok()?)).min()
    }

    /// The group that a line of the process's groups names, if it is of this tree.
    fn group_of<'a>(&self, line: &'a str) -> Option<&'a str> {
        let (number, rest) = line.split_once(':')?;
        let (controllers, group) = rest.split_once(':')?;
        let here = match self.version {
            Version::One => controllers.split(',').any(|controller| controller == "memory"),
            Version::Two => number == "0" && controllers.is_empty(),
        };
        here.then_some(group)
    }
}

/// A limit as its file has it; `None` for `max` and what stands for none.
fn limit_in(text: &str) -> Option<u64> {
    text.trim().parse().ok().filter(|limit| (1..NO_LIMIT).contains(limit))
}

/// A path of `mountinfo`, where a blank is an octal number.
fn unescaped(path: &str) -> String {
    path.replace("\\040", " ").replace("\\011", "\t").replace("\\134", "\\")
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;
    const TWO: &str = "31 23 0:27 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw\n";
    const ONE: &str = "35 30 0:31 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
                       36 30 0:32 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n";

    /// A made-up system with these files.
    fn limit(name: &str, files: &[(&str, &str)]) -> Option<u64> {
        let root = std::env::temp_dir().join(format!("entresol-groups-{}", std::process::id()));
        let root = root.join(name);
        for (path, text) in files {
            let path = root.join(path);
            fs::create_dir_all(path.parent().expect("a file is in a folder")).expect("made");
            fs::write(path, text).expect("written");
        }
        let limit = memory_limit_under(&root);
        fs::remove_dir_all(&root).expect("removed");
        limit
    }

    // A server in a container of 300 MB took 512 MiB for its cap, and was killed.
    #[test]
    fn the_least_limit_of_all_groups_counts() {
        let group = (GROUPS, "0::/pods/one/main\n");
        let mounts = (MOUNTS, TWO);
        let at = |path: &'static str| format!("sys/fs/cgroup/{path}");
        let main = (&*at("pods/one/main/memory.max"), "max\n");
        assert_eq!(limit("none", &[group, mounts, main]), None);
        let one = (&*at("pods/one/memory.max"), "314572800\n");
        assert_eq!(limit("above", &[group, mounts, main, one]), Some(300 * MIB));
        let pods = (&*at("pods/memory.high"), "209715200\n");
        assert_eq!(limit("high", &[group, mounts, main, one, pods]), Some(200 * MIB));
        let other = (&*at("pods/two/memory.max"), "1048576\n");
        assert_eq!(limit("beside", &[group, mounts, main, one, other]), Some(300 * MIB));
    }

    #[test]
    fn groups_of_the_first_version_count_and_those_of_other_controllers_do_not() {
        let groups = (GROUPS, "7:cpu,cpuacct:/a\n5:memory:/a/b\n0::/\n");
        let mounts = (MOUNTS, ONE);
        let own = ("sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", "9223372036854771712\n");
        assert_eq!(limit("v1-none", &[groups, mounts, own]), None);
        let above = ("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "134217728\n");
        assert_eq!(limit("v1", &[groups, mounts, own, above]), Some(128 * MIB));
    }

    #[test]
    fn a_container_sees_its_own_group_at_the_top_of_the_mount() {
        let own = ("sys/fs/cgroup/memory.max", "104857600\n");
        // With a namespace of its own, and without one.
        assert_eq!(limit("own", &[(GROUPS, "0::/\n"), (MOUNTS, TWO), own]), Some(100 * MIB));
        let mounts = TWO.replace(" / /sys", " /docker/ab /sys");
        let found = [(GROUPS, "0::/docker/ab\n"), (MOUNTS, &*mounts), own];
        assert_eq!(limit("host", &found), Some(100 * MIB));
        let found = [(GROUPS, "0::/../elsewhere\n"), (MOUNTS, &*mounts), own];
        assert_eq!(limit("foreign", &found), Some(100 * MIB));
    }

    #[test]
    fn what_cannot_be_read_limits_nothing() {
        assert_eq!(limit("empty", &[("unrelated", "")]), None);
        let own = ("sys/fs/cgroup/memory.max", "much\n");
        assert_eq!(limit("words", &[(GROUPS, "0::/\n::\n"), (MOUNTS, TWO), own]), None);
        assert_eq!(limit("mounts", &[(GROUPS, "0::/\n"), (MOUNTS, "x - \n - cgroup2\n")]), None);
    }
}
