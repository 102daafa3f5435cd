use super::*;

fn none(_: &str) -> Option<String> {
    None
}

fn load(name: &str, depth: Depth) -> Theme {
    Theme::load(name, &none, depth, GlyphSet::Unicode).unwrap()
}

#[test]
fn every_shipped_theme_reads_and_names_every_role() {
    for (name, _) in SHIPPED {
        let looks = read::resolve(name, &none).unwrap();
        for role in Role::ALL {
            assert!(
                looks.roles.contains_key(role),
                "{name} lacks {}",
                role.name()
            );
        }
        assert!(!looks.cards.is_empty(), "{name} has no hue for cards");
    }
    assert!(SHIPPED.iter().any(|(name, _)| *name == DEFAULT));
}

#[test]
fn without_colours_nothing_is_coloured_and_the_selection_still_shows() {
    for (name, _) in SHIPPED {
        let theme = load(name, Depth::None);
        for role in Role::ALL {
            let style = theme.style(*role);
            assert!(
                matches!(style.fg, None | Some(Color::Reset)),
                "{name} {role:?}"
            );
            assert!(
                matches!(style.bg, None | Some(Color::Reset)),
                "{name} {role:?}"
            );
        }
        for role in [Role::Selection, Role::Input, Role::Match] {
            assert!(
                theme.style(role).add_modifier.contains(Modifier::REVERSED),
                "{name} {role:?}"
            );
        }
    }
}

#[test]
fn the_selection_shows_at_every_depth() {
    for (name, _) in SHIPPED {
        for depth in [Depth::Ansi16, Depth::Ansi256, Depth::True] {
            let style = load(name, depth).style(Role::Selection);
            let seen = style.bg.is_some() || style.add_modifier.contains(Modifier::REVERSED);
            assert!(seen, "{name} {depth:?}");
        }
    }
}

#[test]
fn a_theme_inherits_and_changes() {
    let user = |name: &str| {
        (name == "mine").then(|| {
            "inherits = \"nord\"\n[palette]\nhot = \"#ff0000\"\n[roles]\nbad = { fg = \"hot\", bold = true }\ngood = \"frost0\"\n"
                .to_string()
        })
    };
    let theme = Theme::load("mine", &user, Depth::True, GlyphSet::Ascii).unwrap();
    let nord = load("nord", Depth::True);
    assert_eq!(theme.style(Role::Bad).fg, Some(Color::Rgb(255, 0, 0)));
    assert_eq!(
        theme.style(Role::Good).fg,
        Some(Color::Rgb(0x8f, 0xbc, 0xbb))
    );
    assert_eq!(theme.style(Role::Warn), nord.style(Role::Warn));
    assert_eq!(theme.card(0), nord.card(0));
    assert_eq!(theme.glyphs.done, "+");
}

#[test]
fn an_own_theme_may_go_over_a_shipped_one_of_its_name() {
    let user = |name: &str| {
        (name == "nord").then(|| "inherits = \"nord\"\n[roles]\nbad = \"red\"\n".to_string())
    };
    let theme = Theme::load("nord", &user, Depth::Ansi16, GlyphSet::Unicode).unwrap();
    assert_eq!(
        theme.style(Role::Bad).fg,
        Some(Color::Rgb(0xbf, 0x61, 0x6a)).map(|c| Depth::Ansi16.nearest(c))
    );
    assert_eq!(
        theme.style(Role::Warn),
        load("nord", Depth::Ansi16).style(Role::Warn)
    );
}

#[test]
fn hues_of_cards_are_the_same_everywhere_and_repeat() {
    let theme = load(DEFAULT, Depth::True);
    assert_ne!(theme.card(0), theme.card(1));
    assert_eq!(theme.card(0), theme.card(16));
}

#[test]
fn a_wrong_theme_says_where_and_what() {
    for (text, line, column, what) in [
        ("[roles]\nbadd = \"red\"\n", 2, 1, "unknown role"),
        ("[roles]\nbad = \"reddish\"\n", 2, 7, "no colour"),
        ("[roles]\nbad = { fg = \"#12345\" }\n", 2, 14, "no colour"),
        ("[roles]\nbad = { bold = 1 }\n", 2, 16, "true or false"),
        ("[roles]\nbad = { blink = true }\n", 2, 17, "unknown part"),
        ("[rolls]\n", 1, 2, "unknown entry"),
        ("cards = []\n", 1, 9, "list of colours"),
        ("cards = [300]\n", 1, 10, "no colour"),
        ("a = \n", 1, 5, ""),
    ] {
        let error = Theme::load(
            "t",
            &|_| Some(text.to_string()),
            Depth::True,
            GlyphSet::Unicode,
        )
        .unwrap_err();
        let ThemeError::Wrong {
            line: l,
            column: c,
            what: w,
            ..
        } = &error
        else {
            panic!("{text:?}: {error}")
        };
        assert_eq!((*l, *c), (line, column), "{text:?}: {error}");
        assert!(w.contains(what), "{text:?}: {error}");
    }
}

#[test]
fn rings_and_unknown_names_are_errors() {
    let ring = |name: &str| match name {
        "a" => Some("inherits = \"b\"".to_string()),
        "b" => Some("inherits = \"a\"".to_string()),
        _ => None,
    };
    let load = |name| Theme::load(name, &ring, Depth::True, GlyphSet::Unicode).unwrap_err();
    assert!(matches!(load("a"), ThemeError::Ring { .. }));
    assert!(load("nowhere").to_string().contains("default-dark"));
}
