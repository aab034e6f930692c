"""What can be done: one object for each act that changes something.

Acts may use every read, the engine and the sinks. `plan` decides which run a session works on; `start` has it worked on
in this process, `jobs.hand_over` leaves that to the service. `jobs` is about jobs, `content` about what leaves a crawl
for somewhere else. Start with `start`.
"""
