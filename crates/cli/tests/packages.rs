//! Every package in Cargo.lock builds with the oldest supported compiler, and our own can be
//! published: they contain their licences and the files that they include.
//!
//! Licences and sources of other packages are checked by cargo-deny (`.ci/run`).

use std::fs;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    version: String,
    rust_version: Option<String>,
    source: Option<String>,
    manifest_path: PathBuf,
    /// `None` if it may be published anywhere.
    publish: Option<Vec<String>>,
    readme: Option<String>,
    keywords: Vec<String>,
    categories: Vec<String>,
}

/// All packages in Cargo.lock that are built on Linux, with all features.
fn packages() -> Vec<Package> {
    let mut command = Command::new(env!("CARGO"));
    command
        .current_dir(root())
        .args(["metadata", "--format-version", "1"])
        .args(["--locked", "--all-features"]);
    for target in ["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"] {
        command.args(["--filter-platform", target]);
    }
    let output = command.output().expect("cargo runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let metadata: Metadata = serde_json::from_slice(&output.stdout).expect("cargo's metadata");
    assert!(metadata.packages.len() > 100, "they are all there");
    metadata.packages
}

/// Our packages that are published.
fn published() -> Vec<Package> {
    let mut packages = packages();
    packages.retain(|package| package.source.is_none() && package.publish.is_none());
    assert!(packages.len() > 8, "they are all there");
    packages
}

/// `1.90` or `1.90.0`.
fn rust(version: &str) -> Vec<u32> {
    let mut numbers: Vec<u32> = version
        .split('.')
        .map(|number| number.parse().expect("a number"))
        .collect();
    numbers.resize(3, 0);
    numbers
}

#[test]
fn packages_build_with_the_oldest_supported_rust() {
    let oldest = rust(env!("CARGO_PKG_RUST_VERSION"));
    for package in packages() {
        let Package { name, version, .. } = &package;
        if let Some(needed) = &package.rust_version {
            assert!(
                rust(needed) <= oldest,
                "{name} {version} needs Rust {needed}, and {oldest:?} is promised"
            );
        }
    }
}

#[test]
fn our_packages_have_licences_a_readme_and_search_terms() {
    for package in published() {
        let folder = package.manifest_path.parent().expect("a folder");
        for licence in ["LICENSE-MIT", "LICENSE-APACHE"] {
            let text = fs::read_to_string(folder.join(licence)).unwrap_or_default();
            let original = fs::read_to_string(root().join(licence)).expect("a licence");
            assert_eq!(text, original, "{} has no {licence}", package.name);
        }
        assert!(package.readme.is_some(), "{}", package.name);
        assert!(!package.keywords.is_empty(), "{}", package.name);
        assert!(!package.categories.is_empty(), "{}", package.name);
    }
}

/// All Rust files below a folder.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|end| end == "rs") {
            found.push(path);
        }
    }
}

/// Returns whether `path`, relative to `folder`, leads out of `package`.
fn leads_out(package: &Path, folder: &Path, path: &str) -> bool {
    let inside = folder.strip_prefix(package).expect("below the package");
    let mut depth = inside.components().count();
    Path::new(path).components().any(|component| {
        match component {
            Component::ParentDir if depth == 0 => return true,
            Component::ParentDir => depth -= 1,
            _ => depth += 1,
        }
        false
    })
}

#[test]
fn our_packages_include_no_file_of_others() {
    let mut inclusions = 0;
    for package in published() {
        let folder = package.manifest_path.parent().expect("a folder");
        let mut files = Vec::new();
        sources(&folder.join("src"), &mut files);
        for file in files {
            let text = fs::read_to_string(&file).expect("text");
            // Tests and the documents that they read stay in the repository.
            let shipped = text
                .split("#[cfg(test)]\nmod tests")
                .next()
                .expect("a part");
            for macro_name in ["include_str!(\"", "include_bytes!(\""] {
                for (start, found) in shipped.match_indices(macro_name) {
                    let path = shipped[start + found.len()..].split('"').next();
                    let is_doctest = shipped[..start].ends_with("#[cfg(doctest)]\n#[doc = ");
                    let source = file.parent().expect("a folder");
                    assert!(
                        is_doctest || !leads_out(folder, source, path.expect("a path")),
                        "{} includes {path:?}, which its package does not contain",
                        file.display()
                    );
                    inclusions += 1;
                }
            }
        }
    }
    assert!(inclusions > 5, "inclusions are found");
}
