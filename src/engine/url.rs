//! What an operator types as the address of a server.

/// Turns `host:port`, a bare port, `http://host:port/v1/chat/completions` and the like into the base URL of an [`super::Endpoint`]:
/// scheme, host, port and a leading path, without `/v1` and without a trailing slash. The error is in words for the operator.
pub fn normalise_url(text: &str) -> Result<String, String> {
    let typed = text.trim();
    let fail = |why: &str| {
        format!(
            "cannot read {typed:?} as the address of a server: {why}; write for example http://127.0.0.1:30000"
        )
    };
    if typed.is_empty() {
        return Err(fail("it is empty"));
    }
    let with_scheme = match typed.strip_prefix(':').unwrap_or(typed) {
        port if port.parse::<u16>().is_ok() => format!("http://127.0.0.1:{port}"),
        _ if typed.contains("://") => typed.to_string(),
        _ => format!("http://{typed}"),
    };
    let mut url = url::Url::parse(&with_scheme).map_err(|e| fail(&e.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(fail("only http and https are spoken"));
    }
    if url.host_str().is_none_or(str::is_empty) {
        return Err(fail("it names no host"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(fail(
            "a name or password in it would be shown on screen; name the key's environment variable or file in the profile",
        ));
    }
    let kept: Vec<String> = url
        .path()
        .split('/')
        .filter(|segment| !segment.is_empty())
        .take_while(|segment| *segment != "v1")
        .map(str::to_string)
        .collect();
    url.set_path(&kept.join("/"));
    url.set_query(None);
    url.set_fragment(None);
    Ok(url.as_str().trim_end_matches('/').to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_people_paste_becomes_one_form() {
        for (typed, expected) in [
            ("http://127.0.0.1:30000", "http://127.0.0.1:30000"),
            (" http://127.0.0.1:30000/ ", "http://127.0.0.1:30000"),
            ("http://gpu1:8000/v1", "http://gpu1:8000"),
            ("http://gpu1:8000/v1///", "http://gpu1:8000"),
            ("http://gpu1:8000/v1/chat/completions", "http://gpu1:8000"),
            ("gpu1:8000/v1/models", "http://gpu1:8000"),
            ("gpu1", "http://gpu1"),
            ("localhost:8080", "http://localhost:8080"),
            ("8080", "http://127.0.0.1:8080"),
            (":8080", "http://127.0.0.1:8080"),
            ("[::1]:8080", "http://[::1]:8080"),
            (
                "https://api.example.com/openai/v1/?a=b#c",
                "https://api.example.com/openai",
            ),
            (
                "https://api.example.com/qwen/",
                "https://api.example.com/qwen",
            ),
        ] {
            assert_eq!(normalise_url(typed).as_deref(), Ok(expected), "{typed:?}");
        }
    }

    #[test]
    fn what_is_no_address_is_refused_in_words() {
        for bad in [
            "",
            "  ",
            "ftp://x",
            "http://",
            "http://a:b@host:1",
            "http://host:99999",
            "a b",
        ] {
            let error = normalise_url(bad).expect_err(bad);
            assert!(error.contains("http://127.0.0.1:30000"), "{error}");
        }
        assert!(
            !normalise_url("http://host:1/")
                .expect("good")
                .ends_with('/')
        );
    }
}
