//! RocksDB is the system's: `librocksdb-dev` on Debian. The link line stands with its declarations;
//! here is only the word for people who lack it.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let wanted = std::env::var_os("CARGO_FEATURE_ROCKSDB").is_some();
    if wanted && !std::path::Path::new("/usr/include/rocksdb/c.h").exists() {
        println!(
            "cargo::warning=rocksdb/c.h is not there: install librocksdb-dev, or build without the \
             feature `rocksdb`"
        );
    }
}
