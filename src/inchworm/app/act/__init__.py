"""What can be done: one object for each act that changes something.

Acts may use every read, the engine and the sinks. What starts a session is planned once, in `plan`, whoever asks for
it; then `work` has it worked on in this process, or `jobs.hand_over` leaves it to the service. Both ask `choice` which
run that means, and what is refused. `jobs` is about jobs, `content` about what leaves a crawl for somewhere else. Start
with `plan`.
"""
