"""What the words of the reports mean: each report carries the definitions that it needs."""

from __future__ import annotations

DEFINITIONS = {
    "outcome": "class of a sample by the 95 % interval of its speed-up: faster (all of it above 1), on_par (it "
    "contains 1) or slower; emulated (correct on an emulated GPU, not timed); wrong (failed at any stage), refused, "
    "compiled or not_judged. A problem has the class of "
    "its fastest correct sample; without one it is refused if any sample was, else compiled, else wrong",
    "solved": "some sample is correct with a speed-up of at least 1.0 by its estimate, whatever the interval; exit "
    "codes and the end of a problem go by it. A problem can be solved and on a par. On an emulated GPU, where nothing "
    "is timed, a correct sample solves its problem",
    "own": "share of the work that the candidate's own kernels did, without copies, fills and the interpreter; of a "
    "problem, its best sample's. null: not profiled, as of every sample that failed before it was timed. "
    "`ownership` says whose work it was",
    "ownership": "own (the candidate's kernels did at least half of the work, and others' computation took no more "
    "than track own allows), not_own, or not_established: this machine or device gives no evidence of it. own_kernels "
    "counts the three apart",
    "correct": "some sample passed every trial of the comparison",
    "judged": "some sample reached a verdict on its correctness; shares are of the judged problems, so that "
    "a failing machine or service is not a failing model",
    "compiled": "some sample was built for an architecture and, in a run of --build-only, not run: neither solved nor "
    "failed. Nothing is measured in such a run, so that fast_p and pass_at_k are null; a problem is judged there only "
    "when every sample failed before it could be run",
    "speedup": "median time of the baseline / median time of the candidate; never of an incorrect kernel",
    "fast_p": "share of the judged problems whose best correct sample has a speed-up > p, as in KernelBench (p = 0: "
    "that have a correct sample); by the estimate, whatever the interval",
    "over_baselines": "speed-up over a further baseline of --baseline: that over eager / the baseline's over eager; "
    "overall the geometric mean over the best samples that were timed against it. compile is torch.compile of the "
    "reference, best the problem's ModelBest",
    "fast_p_over_best": "as fast_p, with the speed-up over the fastest of a problem's baselines, eager included; null "
    "unless every best sample was timed against a further one",
    "sol": "the least time that the device can take (floor) / the kernel's, 0 to 1; overall the geometric mean over "
    "the best correct samples with a floor. bound says how near a perfect kernel can come: tight (the floor counts at "
    "least 90 % of what one pass has to move, or its products at their own rate), loose (it counts less), unknown. "
    "Comparisons rank by the mean over all common problems, 0 where no kernel is correct or no floor is known",
    "pass_at_k": "chance that at least one of k samples of attempt 1 (drawn from one prompt, before any "
    "feedback) is correct: unbiased estimator 1 - C(n-c, k) / C(n, k) over the n judged samples, c of them "
    "correct; overall the mean over the problems with n >= k",
    "geometric_mean_speedup": "over the best correct sample of each correct problem, slow ones included; the "
    "interval is a 95 % percentile bootstrap over problems, absent for fewer than two",
    "geometric_mean_speedup_all": "over all judged problems, with 1 where no kernel is correct and faster (the "
    "reference is kept): unlike the mean over the correct ones it compares runs that are correct on different problems",
    "tokens": "of all replies, the judge's and replayed ones included; total is of the replies that reported the "
    "figure, null when none did; reasoning is part of output, cached_input of input",
    "cost": "of the model calls by the price in facts (of the judge's by judge_price), for a million tokens of input, "
    "cached input and output (reasoning included); replayed replies cost nothing. total is of the replies whose cost "
    "is known, null when none is: it needs a price, and a service that said input and output; cached input that it did "
    "not say is taken as not cached. What failed tries and calls cost is not known and not in it",
    "cost_per_solved": "cost of all calls / solved problems; null when a part of the cost is not known, or no problem "
    "is solved",
    "roles": "calls by what the model was asked as: coder writes kernels, judge and the reasoners say what to change; "
    "tokens, cost, calls and generation_seconds elsewhere are of all. usage.csv has a row a call",
    "advice": "what the judge or a reasoner (role) answered before the prompt of that attempt, and of which sample "
    "(about); said is what was read in it, null where it could not be used",
    "decisions": "what the strategy chose where it could have chosen otherwise, from that attempt on",
    "budget": "strategy staged, by category: stages that were worked, skipped by a rule, and left out by an exit of "
    "rules (not those that attempts ran out for). saved is an estimate: so many stages times the mean of the "
    "category's worked stages in this run (attempts; input and output tokens and cost where every call told them; "
    "seconds of model calls and evaluations, summed), null where none was worked. What it might have cost is an "
    "estimate too: of the same stage where it was worked in the same category in this run, in how many of how many the "
    "best so far rose (gained of worked; from no correct kernel to one counts), and by what factor, as a geometric "
    "mean over those that began with a correct kernel, 1 where nothing was gained; null where there is none. The "
    "problems that rules stopped differ from those that went on, so neither says what would have happened",
    "model_failures": "verdicts on candidates that are not correct, by stage and kind",
    "refused": "the answers of a sample were right, but the clocks did not agree, it was faster than the device can "
    "be, or the work was not its own kernels'; counted among the judged, never correct",
    "weak": "a problem whose check passes an answer that was made without doing the work (`hkbench audit`, "
    "docs/weak_problems.md); without_weak gives the headlines over the other problems, null where no problem of "
    "the run is known to be weak",
    "languages": "what the kernels of the samples are written in, whatever backend was asked for: by the kernels that "
    "a trace saw run, of a sample that was built only by its source; HipKittens where kittens.cuh is included and an "
    "operation on tiles or vectors stands in one of these kernels; unknown where no such kernel was seen, as of every "
    "sample that failed on a device that is not emulated",
    "machine_failures": "failures of the service or the machine; never counted against the model",
    "cards": "of a cluster, or of a host with several devices: lent is the time for which a card was lent to "
    "evaluations that came to a verdict, timed the part of it in which baseline and candidate were timed, busy lent / "
    "the time from when the card took part to the session's end; efficiency is the same of all cards together. What a "
    "card did for nothing, since it was lost, is not lent. failures: how often it was given up, never a candidate's",
    "wall_seconds": "while the run was alive; the time between a crash and the resume is not in it",
}

COMPARISON_DEFINITIONS = {
    **{
        word: DEFINITIONS[word]
        for word in (
            "outcome",
            "geometric_mean_speedup_all",
            "solved",
            "correct",
            "judged",
            "speedup",
            "fast_p",
            "pass_at_k",
            "weak",
            "cost",
            "cost_per_solved",
        )
    },
    "common": "problems that every run finished and judged, with the same file: runs[].figures and the figures drawn "
    "are over these",
    "compared": "of two runs: the problems that both finished and judged, with the same file, each by its best correct "
    "sample; against[] is over these",
    "own": "the headlines of a run over all of its own judged problems, as in its own report",
    "difference": "mean over the compared problems of B - A (of shares: 0.1 is ten points), for speed-ups the "
    "geometric mean of B / A over the problems correct in both; the interval is a 95 % percentile bootstrap over "
    "problems, expanded for few of them (Hesterberg 2015, section 4.3), absent for fewer than three or where none "
    "differs",
    "against[].whole": "a and b of a pair are means in A and in B over the problems of the difference",
    "settled": "better or worse: at least six problems differ and the interval leaves out no difference; else open",
    "worse": "B solves fewer problems or has slower kernels than A, by what settled says of solved and speedup over "
    "all compared problems",
    "share intervals": "of solved, correct and fast_p of a run: Wilson's 95 % score interval over problems; of pass@k "
    "and the mean speed-up: a 95 % percentile bootstrap over problems",
}
