use super::*;

#[test]
fn the_rounding_of_the_server_is_known() {
    let engine = |asked, slots| {
        let endpoint = Endpoint {
            url: "http://127.0.0.1:1".into(),
            model: None,
            key: None,
            kind: Some(Kind::LlamaCpp),
        };
        let client = Client::new(&endpoint).expect("client");
        LlamaCpp::new(client, endpoint).expected_context(asked, slots)
    };
    assert_eq!(engine(2048, 4), 2048);
    assert_eq!(engine(8192, 1), 8192);
    assert_eq!(engine(1000, 1), 1024);
    assert_eq!(engine(1000, 4), 1024);
    assert_eq!(engine(2100, 4), 2304);
    assert_eq!(engine(2048, 0), 2048);
}
