//! Tests of the fence gate in SQL: the statements in `docs/fencing.md`, run by SQLite.

use std::path::Path;
use std::thread;
use std::time::Duration;

use proptest::prelude::*;
use rusqlite::{Connection, named_params};
use soloist_client::Fence;

/// The SQL of the page: the table, the upsert, and the update.
fn page() -> [String; 3] {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/fencing.md");
    let page = std::fs::read_to_string(path).unwrap();
    let blocks = page.split("```sql\n").skip(1);
    let blocks = blocks.map(|rest| rest.split_once("```").unwrap().0.to_owned());
    let blocks: Vec<String> = blocks.collect();
    blocks.try_into().expect("the page has three blocks of SQL")
}

/// Runs a statement of the page. Returns whether it changed a row.
fn write(database: &Connection, statement: &str, body: &str, fence: i64) -> bool {
    let values = named_params! { ":name": "daily", ":body": body, ":fence": fence };
    match database.execute(statement, values).unwrap() {
        0 => false,
        1 => true,
        more => panic!("{more} rows changed"),
    }
}

fn read(database: &Connection) -> Vec<(String, i64)> {
    let mut query = database.prepare("SELECT body, fence FROM report").unwrap();
    let rows = query.query_map([], |row| Ok((row.get(0)?, row.get(1)?)));
    rows.unwrap().map(Result::unwrap).collect()
}

#[test]
fn each_is_one_statement_that_compares_fences() {
    let [_, upsert, update] = page();
    for statement in [upsert, update] {
        let whole = statement.trim();
        assert_eq!(whole.matches(';').count(), 1, "{whole}");
        assert!(whole.ends_with(';'), "{whole}");
    }
}

#[test]
fn late_fences_change_nothing() {
    let [table, upsert, update] = page();
    let database = Connection::open_in_memory().unwrap();
    database.execute_batch(&table).unwrap();
    assert!(
        !write(&database, &update, "nobody", 1),
        "there is no row yet"
    );
    assert!(write(&database, &upsert, "first", 33));
    for statement in [&upsert, &update] {
        assert!(write(&database, statement, "again", 33), "the same holder");
        assert!(!write(&database, statement, "late", 32));
        assert_eq!(read(&database), [("again".to_owned(), 33)]);
    }
    assert!(write(&database, &update, "second", 34));
    assert!(write(&database, &upsert, "highest", i64::MAX));
    assert!(!write(&database, &upsert, "late", i64::MAX - 1));
    assert_eq!(read(&database), [("highest".to_owned(), i64::MAX)]);
}

#[test]
fn many_connections_at_once() {
    let [table, upsert, _] = page();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("report.db");
    let open = || {
        let database = Connection::open(&path).unwrap();
        database.busy_timeout(Duration::from_secs(60)).unwrap();
        database.pragma_update(None, "synchronous", "off").unwrap();
        database
    };
    open().execute_batch(&table).unwrap();
    thread::scope(|scope| {
        for first in 0..4 {
            let (open, upsert) = (&open, &upsert);
            scope.spawn(move || {
                let database = open();
                for fence in (first..200).step_by(4) {
                    let admitted = write(&database, upsert, &fence.to_string(), fence);
                    let (body, highest) = read(&database).remove(0);
                    assert_eq!(body, highest.to_string(), "body and fence belong together");
                    assert!(highest >= fence, "{highest} after {fence}");
                    assert!(
                        admitted || highest > fence,
                        "{fence} was refused below {highest}"
                    );
                }
            });
        }
    });
    assert_eq!(read(&open()), [("199".to_owned(), 199)]);
}

proptest! {
    #[test]
    fn as_the_gate_in_memory(fences in prop::collection::vec(0..20u32, 0..30)) {
        let [table, upsert, update] = page();
        let database = Connection::open_in_memory().unwrap();
        database.execute_batch(&table).unwrap();
        let gate = soloist_client::gate::Gate::new();
        for (index, fence) in fences.into_iter().enumerate() {
            let statement = if index % 3 == 1 { &update } else { &upsert };
            let admitted = write(&database, statement, "x", fence.into());
            prop_assert_eq!(admitted, gate.admit(Fence::from_number(fence.into())).is_ok());
        }
    }
}
