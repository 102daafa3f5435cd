//! The exit code, and nothing else.

fn main() {
    let hook = color_eyre::config::HookBuilder::default()
        .display_env_section(false)
        .install();
    if let Err(error) = hook {
        eprintln!("vramp: no readable panic reports: {error}");
    }
    vramp::runtime::terminal::install_panic_hook();
    std::process::exit(vramp::cli::main());
}
