"""home.db: which crawls there are, what is asked of their owners, jobs and executions, events, who may come in.

Many processes write here, each for a moment. Start with `home`, which is the file. Each other module has what can be asked
of one noun: `crawls`, `inbox` (what is asked of owners), `jobs`, `claims` (who carries jobs out), `executions`, `slots`,
`logs`, `events`, `services`, `outbox`, `access`. `job_rows` knows how jobs and executions are written down.

A job is a row, an execution a process. Whoever finds a job due locks it by a token, in the transaction that also makes
its execution; so each planned time is claimed once, however many services share the home. The child process shows by
itself that it lives, writes its own log, and says in one transaction what came of it and what its job does next. A
token that lost its job cannot write any more. Nobody's clock has to be right: whether somebody stood still is judged
by how long its heartbeat has not moved on one's own clock. A try that crashed goes on as the next attempt at the same
planned time; if only its last word was lost, nothing is crawled again. One that got nothing leaves its run open for
the next. Nobody is waited for blindly: whoever stands still, be it in the middle of a write, is ended before others
write.
"""
