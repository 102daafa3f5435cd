use super::*;

fn key(text: &str) -> Key {
    text.parse().unwrap()
}

#[test]
fn the_shipped_keymap_reads_and_reaches_every_action() {
    let mut bindings = BTreeMap::new();
    read::merge(&mut bindings, DEFAULT).unwrap();
    let keymap = Keymap::default();
    for action in Action::ALL {
        assert!(
            Context::ALL
                .iter()
                .any(|context| keymap.key_for(*context, *action).is_some()),
            "{action} has no key"
        );
        assert_eq!(action.name().parse(), Ok(*action));
    }
    for context in Context::ALL {
        assert!(DEFAULT.contains(&format!("[{}]", context.name())));
        assert_eq!(context.name().parse(), Ok(*context));
    }
}

#[test]
fn the_place_speaks_first_then_global() {
    let keymap = Keymap::default();
    let at = |context, text| keymap.lookup(context, key(text));
    assert_eq!(at(Context::Tasks, "e"), Some(Action::TaskEdit));
    assert_eq!(at(Context::Config, "e"), Some(Action::ConfigEdit));
    assert_eq!(at(Context::Gpus, "e"), None);
    assert_eq!(at(Context::Tasks, "b"), Some(Action::RunBenchmark));
    assert_eq!(at(Context::Question, "b"), Some(Action::MeasureFirst));
    assert_eq!(at(Context::Question, "y"), Some(Action::Keep));
    assert_eq!(at(Context::Gpus, "y"), Some(Action::Copy));
    assert_eq!(at(Context::Help, "F1"), Some(Action::Help));
}

#[test]
fn nothing_of_the_panes_reaches_through_a_question_or_a_text() {
    let keymap = Keymap::default();
    for context in [
        Context::Question,
        Context::Confirm,
        Context::Recovery,
        Context::Cards,
    ] {
        for text in ["x", "c", "z", "1", "Enter", "L", ":"] {
            assert_eq!(
                keymap.lookup(context, key(text)),
                None,
                "{context:?} {text}"
            );
        }
        assert_eq!(keymap.lookup(context, key("Ctrl-c")), Some(Action::QuitNow));
    }
    for context in [Context::Text, Context::List] {
        for text in ["q", "x", "j", "?", "1", ":"] {
            assert_eq!(
                keymap.lookup(context, key(text)),
                None,
                "{context:?} {text}"
            );
        }
        assert_eq!(keymap.lookup(context, key("Ctrl-c")), Some(Action::QuitNow));
    }
}

#[test]
fn the_users_file_goes_over_the_shipped_one() {
    let keymap = Keymap::with_user(
        "[global]\nzoom = \"Z\"\nfreeze = \"none\"\nlog = [\"L\", \"Ctrl-l\"]\n[tasks]\nquit = \"Q\"\n",
    )
    .unwrap();
    assert_eq!(keymap.lookup(Context::Gpus, key("z")), None);
    assert_eq!(keymap.lookup(Context::Gpus, key("Z")), Some(Action::Zoom));
    assert_eq!(
        keymap.key_for(Context::Gpus, Action::Zoom).as_deref(),
        Some("Z")
    );
    assert_eq!(keymap.key_for(Context::Gpus, Action::Freeze), None);
    assert_eq!(
        keymap.lookup(Context::Gpus, key("Ctrl-l")),
        Some(Action::Log)
    );
    assert_eq!(keymap.lookup(Context::Tasks, key("Q")), Some(Action::Quit));
    assert_eq!(
        keymap.key_for(Context::Tasks, Action::Quit).as_deref(),
        Some("Q")
    );
}

#[test]
fn a_shown_key_does_what_it_says() {
    let keymap = Keymap::with_user("[tasks]\ntask-add = \"z\"\n").unwrap();
    assert_eq!(
        keymap.key_for(Context::Tasks, Action::Zoom),
        None,
        "z adds a task there"
    );
    for context in Context::ALL {
        for action in Action::ALL {
            if let Some(shown) = keymap.key_for(*context, *action) {
                assert_eq!(keymap.lookup(*context, key(&shown)), Some(*action));
            }
        }
    }
}

#[test]
fn a_wrong_file_says_where_and_what() {
    for (text, line, column, what) in [
        ("[global]\nzom = \"z\"\n", 2, 1, "is \"zoom\" meant?"),
        ("[globe]\n", 1, 2, "unknown place"),
        ("[global]\nquit = \"Hyper-q\"\n", 2, 8, "not a key"),
        (
            "[global]\n\nmove-up = [\"Up\", 7]\n",
            3,
            11,
            "text in quotes",
        ),
        ("[global]\nzoom = \"x\"\n", 2, 8, "x means"),
        ("[global]\nzoom = \n", 2, 8, ""),
        ("[confirm]\nyes = \"Enter\"\n", 2, 7, "Enter"),
        (
            "[question]\nkeep = [\"y\", \"Ctrl-Enter\"]\n",
            2,
            8,
            "Enter",
        ),
        ("global = 3\n", 1, 1, "table"),
    ] {
        let error = Keymap::with_user(text).unwrap_err();
        assert_eq!(
            (error.line, error.column),
            (line, column),
            "{text:?}: {error}"
        );
        assert!(error.what.contains(what), "{text:?}: {error}");
    }
}

#[test]
fn one_key_for_two_actions_may_be_swapped_in_one_file() {
    let keymap = Keymap::with_user("[global]\nzoom = \"x\"\nstop = \"z\"\n").unwrap();
    assert_eq!(keymap.lookup(Context::Gpus, key("x")), Some(Action::Zoom));
    assert_eq!(keymap.lookup(Context::Gpus, key("z")), Some(Action::Stop));
}
