//! What launchers say in the environment: that of Open MPI, of MPICH (PMI), of SLURM's steps and of torchrun.

/// What a launcher said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Launch {
    /// Which variable says how many.
    variable: &'static str,
    /// Processes.
    pub(crate) world: usize,
    /// The number of this one.
    pub(crate) rank: Option<usize>,
    /// The number of this one among those of its host.
    pub(crate) local: Option<usize>,
    /// Where rank 0 is, as torchrun says it.
    address: Option<String>,
}

/// Number of processes, of this one, and of this one on its host.
const NAMES: [(&str, &str, &str); 4] = [
    ("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK"),
    ("PMI_SIZE", "PMI_RANK", "MPI_LOCALRANKID"),
    // Not SLURM_NTASKS: a batch script has that too, and runs once.
    ("SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "SLURM_LOCALID"),
    ("WORLD_SIZE", "RANK", "LOCAL_RANK"),
];

/// What the launcher of this process said, if it has one.
pub(crate) fn told(variable: impl Fn(&str) -> Option<String>) -> Option<Launch> {
    NAMES.iter().find_map(|&(size, rank, local)| {
        let number = |name: &str| variable(name)?.trim().parse().ok();
        let address = variable("MASTER_ADDR");
        let (rank, local) = (number(rank), number(local));
        Some(Launch { variable: size, world: number(size)?, rank, local, address })
    })
}

impl Launch {
    /// Why a process that finds no others does not train.
    pub(crate) fn refusal(&self, has_mpi: bool) -> String {
        let Self { variable, world, .. } = self;
        let rank = self.rank.map_or_else(String::new, |rank| format!(" (this is number {rank})"));
        let address = self.address.as_ref().map_or_else(String::new, |a| format!(", with rank 0 at {a}"));
        let help = if has_mpi {
            "but MPI finds no others: start it with `mpirun -n K`, or with `srun --mpi=pmix`"
        } else {
            "and this build has no MPI: build it with `--features mpi`, and start it with `mpirun -n K`"
        };
        format!("{variable} = {world}{rank}{address}: {world} processes were started, {help}")
    }

    /// Whether a world of another size is not the one that was started.
    #[cfg(feature = "mpi")]
    pub(crate) fn is(&self, world: usize) -> bool {
        self.world == world
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pairs: &[(&str, &str)]) -> Option<Launch> {
        told(|name| pairs.iter().find(|p| p.0 == name).map(|p| p.1.to_owned()))
    }

    #[test]
    fn launchers_are_read() {
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[("RANK", "1")]), None);
        assert_eq!(of(&[("SLURM_NTASKS", "8"), ("SLURM_PROCID", "0")]), None);
        let open = of(&[("OMPI_COMM_WORLD_SIZE", "3"), ("OMPI_COMM_WORLD_RANK", "2"), ("WORLD_SIZE", "9")]);
        assert_eq!(open.as_ref().map(|l| (l.world, l.rank)), Some((3, Some(2))));
        let torch = of(&[("WORLD_SIZE", "4"), ("RANK", "0"), ("MASTER_ADDR", "node-1")]).unwrap();
        let words = torch.refusal(false);
        assert!(words.contains("WORLD_SIZE = 4 (this is number 0), with rank 0 at node-1"), "{words}");
        assert!(words.contains("--features mpi"));
        assert!(of(&[("SLURM_STEP_NUM_TASKS", "2")]).unwrap().refusal(true).contains("srun --mpi=pmix"));
        assert_eq!(of(&[("PMI_SIZE", "many")]), None);
        let local = of(&[("SLURM_STEP_NUM_TASKS", "16"), ("SLURM_PROCID", "11"), ("SLURM_LOCALID", "3")]);
        assert_eq!(local.and_then(|l| l.local), Some(3));
    }
}
