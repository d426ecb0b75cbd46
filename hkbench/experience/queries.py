"""What the database is asked, as SQL with parameters. `held` is the connection's own table of what is left out."""

from __future__ import annotations

HELD = "CREATE TEMP TABLE held (run TEXT, problem TEXT, PRIMARY KEY (run, problem)) WITHOUT ROWID"

KERNEL = """
SELECT run.name, kernel.problem, attempt, sample, sha256, code, device_name, arch, status, speedup, low, high
FROM (
    SELECT kernel.run, kernel.problem
    FROM problem JOIN kernel ON kernel.run = problem.run AND kernel.problem = problem.name
    JOIN run ON run.id = problem.run
    WHERE problem.facts = ? AND run.backend = ? AND run.device = ? AND (run.device = 'cpu' OR run.arch IS ?)
        AND run.track = ? AND run.rules = ?
        AND NOT EXISTS (SELECT 1 FROM held WHERE held.run = kernel.run AND held.problem = kernel.problem)
    ORDER BY unsettled, low DESC, run.started DESC, run.id LIMIT 1
) AS best JOIN kernel ON kernel.run = best.run AND kernel.problem = best.problem JOIN run ON run.id = best.run
"""

# Of a common error the latest tries have to do: a look-up takes no longer as the file grows. With one MIN, SQLite takes
# the other columns from the row that has it.
REMEDIES_OF_FINGERPRINT = """
SELECT text, SUM(helped), SUM(tried), SUM(helped * (kind = 'remedy')), SUM(tried * (kind = 'remedy')),
    MIN(run.started || run.id), run.name, latest.problem, attempt, sample
FROM (
    SELECT * FROM remedy
    WHERE fingerprint = ? AND backend = ? AND kind != 'rule'
        AND NOT EXISTS (SELECT 1 FROM held WHERE held.run = remedy.run AND held.problem = remedy.problem)
    ORDER BY rowid DESC LIMIT 1000
) AS latest JOIN run ON run.id = latest.run
GROUP BY text
"""
REMEDIES_OF_SYMBOL = REMEDIES_OF_FINGERPRINT.replace("fingerprint = ?", "symbol = ?")

# Of the latest changes that mended an error, bounded as above.
PITFALLS = """
SELECT fingerprint, MIN(latest.symbol), COUNT(DISTINCT problem), MIN(error.text)
FROM (
    SELECT run, fingerprint, symbol, problem FROM remedy
    WHERE backend = ?1 AND kind IN ('change', 'remedy')
        AND NOT EXISTS (SELECT 1 FROM held WHERE held.run = remedy.run AND held.problem = remedy.problem)
    ORDER BY rowid DESC LIMIT 5000
) AS latest JOIN error USING (run, fingerprint)
GROUP BY fingerprint HAVING COUNT(DISTINCT problem) >= ?2
ORDER BY COUNT(DISTINCT problem) DESC, COUNT(*) DESC, fingerprint LIMIT ?3
"""

SIMILAR = """
SELECT classes, dtype, elements, facts, run.name, kernel.problem, kernel.attempt, kernel.sample, run.backend,
    device_name, kernel.status, kernel.speedup, move
FROM problem JOIN kernel ON kernel.run = problem.run AND kernel.problem = problem.name JOIN run ON run.id = problem.run
LEFT JOIN sample ON sample.run = kernel.run AND sample.problem = kernel.problem AND sample.attempt = kernel.attempt
    AND sample.sample = kernel.sample
WHERE facts IS NOT NULL AND (?1 IS NULL OR run.backend = ?1)
    AND NOT EXISTS (SELECT 1 FROM held WHERE held.run = kernel.run AND held.problem = kernel.problem)
"""

MOVES = """
SELECT move, bottleneck, COUNT(*), SUM(log_gain IS NULL), SUM(gained), SUM(gained * log_gain), AVG(log_gain)
FROM sample JOIN run ON run.id = sample.run
WHERE move IS NOT NULL AND (?1 IS NULL OR run.backend = ?1) AND (?2 IS NULL OR run.model = ?2)
    AND NOT EXISTS (SELECT 1 FROM held WHERE held.run = sample.run AND held.problem = sample.problem)
GROUP BY move, bottleneck ORDER BY COUNT(*) DESC, move, bottleneck
"""

PROBLEMS = "SELECT run, name, sha256, facts FROM problem"

TRAITS = """
SELECT DISTINCT problem.sha256, run.sizes, facts, classes, dtype, elements
FROM problem JOIN run ON run.id = problem.run WHERE facts IS NOT NULL
"""

ERRORS = """
SELECT sample.fingerprint, COUNT(*), COUNT(mend.run), AVG(mend.steps), AVG(mend.added + mend.removed),
    MIN(error.kind), MIN(error.stage), MIN(error.symbol), MIN(error.text)
FROM sample JOIN run ON run.id = sample.run
JOIN error ON error.run = sample.run AND error.fingerprint = sample.fingerprint
LEFT JOIN mend ON mend.run = sample.run AND mend.problem = sample.problem AND mend.attempt = sample.attempt
    AND mend.sample = sample.sample
WHERE (?1 IS NULL OR run.backend = ?1) AND (?2 IS NULL OR run.model = ?2)
GROUP BY sample.fingerprint ORDER BY COUNT(*) DESC, sample.fingerprint LIMIT ?3
"""
HINTS_OF_ERROR = """
SELECT kind, text, SUM(helped), SUM(tried) FROM remedy JOIN run ON run.id = remedy.run
WHERE fingerprint = ?1 AND (?2 IS NULL OR run.backend = ?2) AND (?3 IS NULL OR run.model = ?3)
GROUP BY kind, text ORDER BY kind, text
"""
MODELS = """
SELECT run.model, run.backend, run.strategy, COUNT(DISTINCT run.id), COUNT(*), SUM(sample.kind IS NULL),
    SUM(sample.fingerprint IS NOT NULL AND sample.stage IN ('parse', 'build', 'load')), AVG(sample.build_seconds),
    SUM(sample.tokens), SUM(sample.cost), MIN(run.currency), COUNT(DISTINCT run.currency)
FROM sample JOIN run ON run.id = sample.run
WHERE (?1 IS NULL OR run.backend = ?1) AND (?2 IS NULL OR run.model = ?2)
GROUP BY run.model, run.backend, run.strategy ORDER BY COUNT(*) DESC, run.model, run.backend, run.strategy
"""
