//! `vramp init`: a commented profile to start from.

use super::{Common, Failure};
use crate::profile;

/// Writes the example where profiles are looked for. A file that is there stays as it is.
pub fn write(common: &Common, url: Option<&str>) -> Result<i32, Failure> {
    let path = common
        .config
        .clone()
        .or_else(profile::default_path)
        .ok_or_else(|| {
            Failure::new("cannot find your configuration directory; name the file with --config")
        })?;
    if path.exists() {
        return Err(Failure::new(format!(
            "{} exists and stays as it is; edit it, or name another with --config",
            path.display()
        )));
    }
    let text = match url {
        Some(url) => profile::example_for(url).map_err(Failure::wrong_use)?,
        None => profile::EXAMPLE.to_string(),
    };
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)
            .map_err(|error| Failure::new(format!("cannot make {}: {error}", folder.display())))?;
    }
    crate::host::write_atomic(&path, text.as_bytes()).map_err(Failure::new)?;
    println!("wrote {}", path.display());
    println!("Edit it (the comments say how), then start: vramp");
    Ok(0)
}
