//! The files of the player's page, which are part of the binary.

use crate::page::{Module, modules};

/// The page itself.
pub(super) const PAGE: &str = include_str!("../../../web/index.html");

/// Its style.
pub(super) const STYLE: &str = concat!(
    include_str!("../../../web/style/kit.css"),
    include_str!("../../../web/style/base.css"),
    include_str!("../../../web/style/cluster.css"),
    include_str!("../../../web/style/time.css"),
);

/// The modules, each after those that it imports.
pub(super) const MODULES: [Module; 20] = modules![
    "dom.js",
    "words.js",
    "model.js",
    "geometry.js",
    "address.js",
    "scenario.js",
    "prediction.js",
    "compare.js",
    "server.js",
    "letters.js",
    "stage.js",
    "inspector.js",
    "scale.js",
    "spacetime.js",
    "transport.js",
    "thumbnail.js",
    "gallery.js",
    "branch.js",
    "player.js",
    "main.js",
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;

    use super::*;

    #[test]
    fn every_module_follows_those_that_it_imports() {
        let mut known = BTreeSet::new();
        for module in &MODULES {
            for import in module.text.split(" from './").skip(1) {
                let (imported, after) = import.split_once('\'').expect("a name in quotes");
                let is_type_only = after.starts_with(" */");
                let is_known = is_type_only || known.contains(imported);
                assert!(is_known, "{} comes before {imported}", module.name);
            }
            known.insert(module.name);
        }
    }

    #[test]
    fn every_module_of_the_folder_is_embedded() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("web/src");
        let files: BTreeSet<String> = fs::read_dir(folder)
            .expect("the folder of modules")
            .map(|entry| entry.expect("an entry"))
            .filter(|entry| entry.path().is_file())
            .map(|entry| entry.file_name().into_string().expect("a plain name"))
            .collect();
        let embedded: BTreeSet<String> = MODULES.iter().map(|it| it.name.to_owned()).collect();
        assert_eq!(embedded, files);
    }
}
