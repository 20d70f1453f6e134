//! The comparison of samples: medians, the exact Mann-Whitney test, verdicts.
