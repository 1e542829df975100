//! A run as one file that opens without a server: the page, its style, its script and the run.
//!
//! A page from a file may not import modules, so the script is all modules in one scope. The page's
//! policy names the hashes of the script and of the style, and allows nothing else.

use ring::digest::{SHA256, digest};

use super::assets::{MODULES, PAGE, STYLE};

const STYLE_LINK: &str = r#"<link rel="stylesheet" href="style.css" />"#;
const SCRIPT_LINK: &str = r#"<script type="module" src="src/main.js"></script>"#;

/// The page with a run, given as JSON.
pub(super) fn page(run: &str) -> String {
    let script = bundle();
    let policy = format!(
        "default-src 'none'; script-src 'sha256-{}'; style-src 'sha256-{}'; img-src data:; \
         base-uri 'none'; form-action 'none'",
        base64(digest(&SHA256, script.as_bytes()).as_ref()),
        base64(digest(&SHA256, STYLE.as_bytes()).as_ref()),
    );
    // Nothing in a JSON string can end the element.
    let run = run.replace('<', "\\u003c");
    let style = format!(
        r#"<meta http-equiv="Content-Security-Policy" content="{policy}" /><style>{STYLE}</style>"#
    );
    let script = format!(
        r#"<script type="application/json" id="run">{run}</script><script type="module">{script}</script>"#
    );
    PAGE.replacen(STYLE_LINK, &style, 1)
        .replacen(SCRIPT_LINK, &script, 1)
}

/// All modules as one script: without imports, and without `export`.
fn bundle() -> String {
    let mut script = String::new();
    for module in &MODULES {
        let mut is_import = false;
        for line in module.text.lines() {
            is_import |= line.starts_with("import ");
            if is_import {
                is_import = !line.ends_with(';');
                continue;
            }
            script += line.strip_prefix("export ").unwrap_or(line);
            script.push('\n');
        }
    }
    script
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for group in bytes.chunks(3) {
        let mut padded = [0; 4];
        padded[1..=group.len()].copy_from_slice(group);
        let bits = u32::from_be_bytes(padded);
        for i in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * i)) as usize & 63];
            text.push(if i <= group.len() { digit as char } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_rfc_4648() {
        let cases = [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foobar", "Zm9vYmFy"),
        ];
        for (plain, encoded) in cases {
            assert_eq!(base64(plain.as_bytes()), encoded);
        }
    }

    #[test]
    fn an_export_refers_to_no_other_file() {
        let page = page("{}");
        for link in [
            STYLE_LINK,
            SCRIPT_LINK,
            "src=\"",
            "href=\"/",
            "\nimport ",
            "\nexport ",
        ] {
            assert!(!page.contains(link), "{link:?} is left");
        }
        assert!(
            page.contains("script-src 'sha256-"),
            "the policy names the script"
        );
    }

    #[test]
    fn a_run_cannot_end_its_element() {
        let page = page(r#"{"names":["</script><script>alert(1)</script>"]}"#);
        assert!(page.contains(r#"["\u003c/script>\u003cscript>alert(1)\u003c/script>"]"#));
        assert_eq!(
            page.matches("<script").count(),
            2,
            "the data and the script"
        );
        assert_eq!(page.matches("</script").count(), 2);
    }
}
