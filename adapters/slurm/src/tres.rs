//! How much a run held, from Slurm's list of trackable resources: `billing=4,cpu=4,gres/gpu:a100=2,gres/gpu=2,node=1`.

/// What was allocated to a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Allocated {
    pub(crate) cpus: u64,
    pub(crate) nodes: u64,
    pub(crate) gpus: u64,
}

impl Allocated {
    /// Reads the list. Sites account for GPUs in total, by type, or both; they are counted once.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut allocated = Self::default();
        let (mut in_total, mut by_type) = (None, 0u64);
        for part in text.split(',').filter(|part| !part.is_empty()) {
            let (name, amount) = part.split_once('=').ok_or_else(|| format!("`{part}` has no amount"))?;
            // Amounts of memory and energy have units, and are not needed.
            let amount = || amount.parse::<u64>().map_err(|_| format!("`{part}` has no whole amount"));
            match name {
                "cpu" => allocated.cpus = amount()?,
                "node" => allocated.nodes = amount()?,
                "gres/gpu" => in_total = Some(amount()?),
                _ if name.starts_with("gres/gpu:") => {
                    by_type = by_type.checked_add(amount()?).ok_or("too many GPUs")?;
                }
                _ => {}
            }
        }
        allocated.gpus = in_total.unwrap_or(by_type);
        Ok(allocated)
    }
}

#[cfg(test)]
mod tests {
    use super::Allocated;

    #[test]
    fn gpus_are_counted_once() {
        let gpus = |text| Allocated::parse(text).map(|allocated| allocated.gpus);
        assert_eq!(gpus("billing=1,cpu=1,gres/gpu:a100=2,gres/gpu=2,node=1"), Ok(2));
        assert_eq!(gpus("cpu=8,gres/gpu=4,mem=64G,node=2"), Ok(4));
        assert_eq!(gpus("gres/gpu:a100=2,gres/gpu:h100=1"), Ok(3));
        assert_eq!(gpus("gres/gpumem=80G,gres/gpuutil=50,cpu=1"), Ok(0));
        assert_eq!(gpus(""), Ok(0));
        assert_eq!(Allocated::parse("cpu=8,node=2,energy=12"), Ok(Allocated { cpus: 8, nodes: 2, gpus: 0 }));
        for wrong in ["cpu", "gres/gpu=two", "node=-1", "gres/gpu:a=18446744073709551615,gres/gpu:b=1"] {
            assert!(gpus(wrong).is_err(), "{wrong}");
        }
    }
}
