//! Rules of the workspace itself: which crate may depend on which, what pure crates may use, licences of dependencies,
//! and links in the documents.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the tests crate lies in the workspace").to_owned()
}

fn metadata(extra: &[&str]) -> Value {
    let out = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version=1", "--locked"])
        .args(extra)
        .current_dir(root())
        .output()
        .expect("cargo runs");
    assert!(out.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&out.stderr));
    serde_json::from_slice(&out.stdout).expect("cargo metadata prints JSON")
}

/// Normal (not dev, not build) dependencies of each workspace crate.
fn direct_dependencies() -> BTreeMap<String, BTreeSet<String>> {
    let meta = metadata(&["--no-deps"]);
    let packages = meta["packages"].as_array().expect("packages");
    packages
        .iter()
        .map(|p| {
            let name = p["name"].as_str().expect("name").to_owned();
            let deps = p["dependencies"].as_array().expect("dependencies");
            let normal = deps.iter().filter(|d| d["kind"].is_null());
            (name, normal.map(|d| d["name"].as_str().expect("name").to_owned()).collect())
        })
        .collect()
}

#[test]
fn dependencies_point_down_only() {
    let allowed: BTreeMap<&str, &[&str]> = BTreeMap::from([
        ("sluice-model", &[][..]),
        ("sluice-sched", &["sluice-model"]),
        ("sluice-engine", &["sluice-sched", "sluice-model"]),
        ("sluice-proto", &["sluice-model"]),
        ("sluice-identity", &["sluice-proto", "sluice-model"]),
        ("sluice-ctld", &["sluice-engine", "sluice-sched", "sluice-model", "sluice-proto", "sluice-identity"]),
        ("sluice-sim", &["sluice-engine", "sluice-sched", "sluice-model"]),
        ("sluice-noded", &["sluice-model", "sluice-proto", "sluice-identity"]),
        ("sluice-cli", &["sluice-model", "sluice-proto", "sluice-identity"]),
    ]);
    for (name, deps) in direct_dependencies() {
        if name == "sluice-tests" {
            continue;
        }
        let allowed: BTreeSet<&str> = allowed[name.as_str()].iter().copied().collect();
        let ours = deps.iter().map(String::as_str).filter(|d| d.starts_with("sluice-"));
        let wrong: Vec<&str> = ours.filter(|d| !allowed.contains(d)).collect();
        assert!(wrong.is_empty(), "{name} must not depend on {wrong:?}");
    }
}

const PURE: [&str; 3] = ["model", "sched", "engine"];

#[test]
fn pure_crates_use_no_runtime_and_no_storage() {
    let forbidden = ["tokio", "tonic", "prost", "sled", "nix", "libc", "tracing", "rand", "hyper-util"];
    let deps = direct_dependencies();
    for name in PURE {
        let name = format!("sluice-{name}");
        let wrong: Vec<&String> = deps[&name].iter().filter(|d| forbidden.contains(&d.as_str())).collect();
        assert!(wrong.is_empty(), "{name} is pure and must not depend on {wrong:?}");
    }
}

fn sources(dir: &Path, out: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).expect("a source folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, out);
        } else if path.extension().is_some_and(|e| e == "rs") {
            out.push(path);
        }
    }
}

#[test]
fn pure_crates_read_no_clock_no_file_and_have_no_hash_ordered_map() {
    let forbidden = [
        "SystemTime",
        "Instant::now",
        "std::fs",
        "std::env",
        "std::net",
        "HashMap",
        "HashSet",
        "Zoned::now",
        "Timestamp::now",
    ];
    for name in PURE {
        let mut files = Vec::new();
        sources(&root().join(name).join("src"), &mut files);
        assert!(!files.is_empty());
        for file in files {
            let text = std::fs::read_to_string(&file).expect("a source file");
            // Tests inside a module may do as they like.
            let text = text.split("#[cfg(test)]").next().unwrap_or_default();
            for (number, line) in text.lines().enumerate() {
                let code = line.split("//").next().unwrap_or_default();
                for word in forbidden {
                    assert!(!code.contains(word), "{}:{}: {word} in a pure crate", file.display(), number + 1);
                }
            }
        }
    }
}

#[test]
fn every_dependency_has_a_permissive_licence() {
    let allowed: BTreeSet<&str> = [
        "Apache-2.0",
        "MIT",
        "BSD-2-Clause",
        "BSD-3-Clause",
        "ISC",
        "Unicode-3.0",
        "Zlib",
        "CC0-1.0",
        "Unlicense",
        "BSL-1.0",
        "Apache-2.0 WITH LLVM-exception",
        "CDLA-Permissive-2.0",
        "0BSD",
        "MIT-0",
    ]
    .into();
    let meta = metadata(&[]);
    // Weak copyleft, file by file, used unmodified: docs/decisions/0003-dependencies.md says why they are here.
    let exceptions = ["imbl", "imbl-sized-chunks"];
    let mut problems = Vec::new();
    for package in meta["packages"].as_array().expect("packages") {
        let name = package["name"].as_str().unwrap_or_default();
        if exceptions.contains(&name) {
            continue;
        }
        let licence = package["license"].as_str().unwrap_or_default().replace('/', " OR ");
        if !permitted(&licence, &allowed) {
            problems.push(format!("{name}: {licence:?}"));
        }
    }
    assert!(problems.is_empty(), "licences that are not on the list of deny.toml: {problems:#?}");
}

/// An SPDX expression of AND, OR and parentheses: every AND part needs one allowed alternative.
fn permitted(expression: &str, allowed: &BTreeSet<&str>) -> bool {
    let flat = expression.replace(['(', ')'], "");
    flat.split(" AND ").all(|part| part.split(" OR ").any(|one| allowed.contains(one.trim())))
}

#[test]
fn the_licence_rule_refuses_what_is_not_listed() {
    let allowed: BTreeSet<&str> = ["MIT"].into();
    assert!(permitted("MIT OR GPL-3.0", &allowed));
    assert!(!permitted("GPL-3.0", &allowed));
    assert!(!permitted("MIT AND GPL-3.0", &allowed));
    assert!(!permitted("", &allowed));
}

#[test]
fn links_in_documents_lead_somewhere() {
    let mut documents: Vec<PathBuf> = Vec::new();
    for dir in ["", "docs", "docs/decisions", "packaging", "tests/vm"] {
        let Ok(entries) = std::fs::read_dir(root().join(dir)) else { continue };
        documents.extend(
            entries.filter_map(|e| e.ok().map(|e| e.path())).filter(|p| p.extension().is_some_and(|e| e == "md")),
        );
    }
    assert!(documents.iter().any(|d| d.ends_with("README.md")), "no README.md");
    let mut broken = Vec::new();
    for document in documents {
        let text = std::fs::read_to_string(&document).expect("a document");
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let target = link.split('#').next().unwrap_or_default();
            if target.is_empty() || target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            let path = document.parent().expect("a folder").join(target);
            if !path.exists() {
                broken.push(format!("{}: {link}", document.display()));
            }
        }
    }
    assert!(broken.is_empty(), "broken links: {broken:#?}");
}
