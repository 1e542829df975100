//! The files of the dashboard's page, which are part of the binary.

use crate::page::{Module, modules};

const PAGE: &str = include_str!("../../web/dashboard.html");

const STYLE: &str = concat!(
    include_str!("../../web/style/kit.css"),
    include_str!("../../web/style/dashboard.css"),
    include_str!("../../web/style/dashboard-figures.css"),
    include_str!("../../web/style/dashboard-narrow.css"),
);

/// The manual, which the page quotes.
const MANUAL: &str = include_str!("../../web/operations.md");

/// The modules of the page's script.
const MODULES: [Module; 17] = modules![
    "dom.js",
    "dashboard/changed.js",
    "dashboard/figures.js",
    "dashboard/format.js",
    "dashboard/incident.js",
    "dashboard/lanes.js",
    "dashboard/lock.js",
    "dashboard/locks.js",
    "dashboard/login.js",
    "dashboard/main.js",
    "dashboard/manual.js",
    "dashboard/messages.js",
    "dashboard/model.js",
    "dashboard/parts.js",
    "dashboard/session.js",
    "dashboard/turns.js",
    "dashboard/well.js",
];

/// The type and the content of a file, by its path below `/ui/`.
pub(crate) fn file(path: &str) -> Option<(&'static str, &'static str)> {
    match path {
        "" => Some(("text/html", PAGE)),
        "style.css" => Some(("text/css", STYLE)),
        "operations.md" => Some(("text/markdown", MANUAL)),
        _ => {
            let name = path.strip_prefix("src/")?;
            let module = MODULES.iter().find(|module| module.name == name)?;
            Some(("text/javascript", module.text))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;

    use super::*;

    #[test]
    fn every_module_of_the_folder_is_embedded() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("web/src/dashboard");
        let files: BTreeSet<String> = fs::read_dir(folder)
            .expect("the folder of modules")
            .map(|entry| entry.expect("an entry").file_name())
            .map(|name| format!("dashboard/{}", name.into_string().expect("a plain name")))
            .collect();
        let embedded = MODULES.iter().map(|module| module.name.to_owned());
        let embedded: BTreeSet<String> = embedded.filter(|name| name.contains('/')).collect();
        assert_eq!(embedded, files);
    }

    #[test]
    fn imports_and_links_of_the_page_exist() {
        for module in &MODULES {
            for import in module.text.split(" from '").skip(1) {
                let (path, _) = import.split_once('\'').expect("a name in quotes");
                let name = match path.strip_prefix("../") {
                    Some(name) => name.to_owned(),
                    None => path.replacen("./", "dashboard/", 1),
                };
                assert!(
                    file(&format!("src/{name}")).is_some(),
                    "{}: {path}",
                    module.name
                );
            }
        }
        for link in ["style.css", "src/dashboard/main.js"] {
            assert!(PAGE.contains(&format!("\"{link}\"")), "{link}");
            assert!(file(link).is_some(), "{link}");
        }
        assert!(file("../Cargo.toml").is_none());
    }
}
