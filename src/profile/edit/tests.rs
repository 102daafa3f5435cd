use super::*;
use std::path::PathBuf;

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Folder(tempfile::tempdir().unwrap())
    }

    fn file(&self, text: &str) -> PathBuf {
        let path = self.0.path().join("vramp.toml");
        std::fs::write(&path, text).unwrap();
        path
    }
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

fn pairs(env: &[(&str, &str)]) -> Vec<(String, String)> {
    env.iter()
        .map(|(n, v)| (n.to_string(), v.to_string()))
        .collect()
}

fn words(argv: &[&str]) -> Vec<String> {
    argv.iter().map(|word| word.to_string()).collect()
}

#[test]
fn one_number_changes_and_every_other_byte_stays() {
    let folder = Folder::new();
    for (before, after) in [
        (
            "[profile.a]\nurl = 'http://h'   # where\nproduction =  32768 # confirmed\n",
            "[profile.a]\nurl = 'http://h'   # where\nproduction =  65536 # confirmed\n",
        ),
        (
            "[profile.a]\r\nurl='http://h'\r\nproduction=\"32K\"\r\n# end",
            "[profile.a]\r\nurl='http://h'\r\nproduction=65536\r\n# end",
        ),
        (
            "[profile.a]\r\n\turl='http://h' # x\r\n\r\n[profile.b]\r\nurl='http://i'\r\n",
            "[profile.a]\r\n\turl='http://h' # x\r\n\tproduction = 65536\r\n\r\n[profile.b]\r\nurl='http://i'\r\n",
        ),
        (
            "profile.a.url = 'http://h'",
            "profile.a.url = 'http://h'\nprofile.a.production = 65536",
        ),
        (
            "profile.a = { url = 'http://h', engine = 'vllm' }\n",
            "profile.a = { url = 'http://h', production = 65536, engine = 'vllm' }\n",
        ),
        (
            "profile = { a = { url = 'http://h' } } # odd\n",
            "profile = { a = { url = 'http://h', production = 65536 } } # odd\n",
        ),
    ] {
        let file = folder.file(before);
        set_production(&file, "a", 65_536).unwrap();
        assert_eq!(read(&file), after);
        // Once more: only the digits move.
        set_production(&file, "a", 131_072).unwrap();
        assert_eq!(read(&file), after.replace("65536", "131072"));
    }
}

#[test]
fn the_shipped_example_keeps_its_comments() {
    let folder = Folder::new();
    let file = folder.file(load::EXAMPLE);
    set_production(&file, "llama", 65_536).unwrap();
    assert_eq!(
        read(&file),
        load::EXAMPLE.replace("production = 16384", "production = 65536")
    );
}

#[test]
fn what_cannot_be_done_leaves_the_file_alone() {
    let folder = Folder::new();
    let text = "[profile.a]\nurl='http://h'\n";
    let file = folder.file(text);
    let error = set_production(&file, "b", 4096).unwrap_err().to_string();
    assert!(error.contains("no profile \"b\""), "{error}");
    let error = set_launch(&file, "a", &words(&["x", "{context}"]), &[])
        .unwrap_err()
        .to_string();
    assert!(error.contains("has no process"), "{error}");
    assert_eq!(read(&file), text);
    assert!(matches!(
        set_production(&folder.0.path().join("absent.toml"), "a", 1),
        Err(ProfileError::Unread { .. })
    ));
}

const SERVER: &str = r#"[profile.a]
url = "http://h"
[profile.a.process]
argv = [
  "serve", # the program
  "--ctx", "{context}",
  "--host", "127.0.0.1", # only here
  "--port", 8080,
]
env = { A = "1", B = "2" } # both
"#;

fn launched(before: &str, argv: &[&str], env: &[(&str, &str)]) -> String {
    let folder = Folder::new();
    let file = folder.file(before);
    set_launch(&file, "a", &words(argv), &pairs(env)).unwrap();
    read(&file)
}

const SAME: [&str; 7] = [
    "serve",
    "--ctx",
    "{context}",
    "--host",
    "127.0.0.1",
    "--port",
    "8080",
];
const ENV: [(&str, &str); 2] = [("A", "1"), ("B", "2")];

#[test]
fn arguments_that_stay_keep_their_bytes() {
    assert_eq!(launched(SERVER, &SAME, &ENV), SERVER);
    let mut argv = SAME.to_vec();
    argv[4] = "0.0.0.0";
    assert_eq!(
        launched(SERVER, &argv, &ENV),
        SERVER.replace("127.0.0.1", "0.0.0.0")
    );
    argv = SAME.to_vec();
    argv.splice(3..3, ["--metrics", "--np", "2"]);
    assert_eq!(
        launched(SERVER, &argv, &ENV),
        SERVER.replace(
            "\"{context}\",",
            "\"{context}\",\n  \"--metrics\",\n  \"--np\", \"2\","
        )
    );
    argv = SAME.to_vec();
    argv.drain(3..5);
    assert_eq!(
        launched(SERVER, &argv, &ENV),
        SERVER.replace("\"--host\", \"127.0.0.1\", # only here\n  ", "")
    );
    assert_eq!(
        launched(SERVER, &SAME[..5], &ENV),
        SERVER.replace("\n  \"--port\", 8080,", "")
    );
    argv = SAME.to_vec();
    argv.insert(0, "nice");
    assert_eq!(
        launched(SERVER, &argv, &ENV),
        SERVER.replace("\"serve\"", "\"nice\", \"serve\"")
    );
    assert!(launched(SERVER, &["say \"{context}\"\n"], &ENV).contains("# both"));
}

#[test]
fn environment_changes_in_every_form() {
    let set = |env: &[(&str, &str)]| launched(SERVER, &SAME, env);
    assert_eq!(
        set(&[("A", "1"), ("B", "x y")]),
        SERVER.replace("\"2\"", "\"x y\"")
    );
    assert_eq!(set(&[("B", "2"), ("A", "1")]), SERVER);
    assert_eq!(set(&[("A", "1")]), SERVER.replace(", B = \"2\"", ""));
    assert_eq!(set(&[]), SERVER.replace("{ A = \"1\", B = \"2\" }", "{}"));

    let none = SERVER.replace("env = { A = \"1\", B = \"2\" } # both\n", "");
    assert_eq!(
        launched(&none, &SAME, &[("C", "3")]),
        format!("{none}env = {{ C = \"3\" }}\n")
    );

    let table = format!("{none}[profile.a.process.env] # more\nA = \"1\" # one\nB = \"2\"\n");
    let set = |env: &[(&str, &str)]| launched(&table, &SAME, env);
    assert_eq!(
        set(&[("A", "9"), ("B", "2")]),
        table.replace("\"1\"", "\"9\"")
    );
    assert_eq!(set(&[("B", "2")]), table.replace("A = \"1\" # one\n", ""));
    assert_eq!(
        set(&[("A", "1"), ("C", "3")]),
        table.replace("B = \"2\"", "C = \"3\"")
    );
    assert_eq!(
        set(&[("A", "1"), ("B", "2"), ("C", "3"), ("D", "4")])
            .lines()
            .count(),
        table.lines().count() + 2
    );
    let emptied = set(&[]);
    assert!(emptied.ends_with("[profile.a.process.env] # more\n"));
    assert!(launched(&emptied, &SAME, &[("Z", "1")]).ends_with("# more\nZ = \"1\"\n"));
}

#[test]
fn a_launch_that_could_not_be_raised_is_refused() {
    let folder = Folder::new();
    let file = folder.file(SERVER);
    let error = set_launch(&file, "a", &words(&["serve"]), &[])
        .unwrap_err()
        .to_string();
    assert!(error.contains("no {context}"), "{error}");
    assert_eq!(read(&file), SERVER);
}
