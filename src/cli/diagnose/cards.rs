//! The cards as a CSV of `nvidia-smi` shows them, read by its header.

use crate::engine::start::Load;

/// The tool's own words where the driver does not answer: they are evidence, not a table.
pub fn broken_driver(text: &str) -> Option<&str> {
    let first = text.lines().find(|line| !line.trim().is_empty())?.trim();
    let known = [
        "Failed to initialize NVML",
        "NVIDIA-SMI has failed",
        "NVIDIA-SMI couldn't",
    ];
    known
        .iter()
        .any(|words| first.starts_with(words))
        .then_some(first)
}

/// One card a row. A cell that is not a number (`[N/A]`) is unknown, not zero.
pub fn read(text: &str) -> Result<Vec<Load>, String> {
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    let header: Vec<&str> = cells(lines.next().ok_or("it is empty")?);
    let column = |name: &str| {
        header
            .iter()
            .position(|title| title.split([' ', '[']).next() == Some(name))
    };
    let index = column("index");
    let total = column("memory.total");
    let used = column("memory.used");
    let busy = column("utilization.gpu");
    if total.or(used).or(busy).is_none() {
        return Err(format!(
            "its first line names neither memory.total, memory.used nor utilization.gpu: {:?}",
            crate::units::clean(&header.join(", "))
        ));
    }
    let mut cards = Vec::new();
    for (row, line) in (0..).zip(lines) {
        let cells = cells(line);
        if cells.len() != header.len() {
            return Err(format!(
                "row {} has {} cells, its header {}",
                row + 1,
                cells.len(),
                header.len()
            ));
        }
        let number = |column: Option<usize>| {
            let cell = cells.get(column?)?;
            cell.split(' ').next()?.parse::<u64>().ok()
        };
        let bytes = |column| number(column).and_then(|mib| mib.checked_mul(1 << 20));
        cards.push(Load {
            index: number(index)
                .and_then(|n| u32::try_from(n).ok())
                .unwrap_or(row),
            busy_pct: number(busy).and_then(|n| u32::try_from(n).ok()),
            used: bytes(used),
            total: bytes(total),
        });
    }
    match cards.is_empty() {
        true => Err("it lists no card".to_string()),
        false => Ok(cards),
    }
}

fn cells(line: &str) -> Vec<&str> {
    line.split(',').map(str::trim).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_read_with_units_and_without() {
        let plain = "index, name, memory.total [MiB], memory.used [MiB], utilization.gpu [%]\n0, NVIDIA RTX A6000, 49140, 46010, 0\n1, NVIDIA RTX A6000, 49140 MiB, [N/A], 97 %\n";
        let cards = read(plain).expect("read");
        assert_eq!(cards[0].used, Some(46_010 << 20));
        assert_eq!(
            (cards[1].index, cards[1].used, cards[1].busy_pct),
            (1, None, Some(97))
        );
        for wrong in [
            "",
            "hello\n",
            "index, memory.total [MiB]\n",
            "index, memory.total\n0\n",
        ] {
            assert!(read(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_broken_driver_is_told_from_a_table() {
        let words = "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 580.119\n";
        assert!(broken_driver(words).is_some());
        assert!(broken_driver("index, memory.total\n").is_none());
    }
}
