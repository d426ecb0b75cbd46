"""The trusted side: owns inputs, reference, comparison, statistics and the verdict. Never imports a candidate."""
