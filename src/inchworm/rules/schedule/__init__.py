"""When things run again: the states of a job, its timetable, retries, repetition, messages that did not arrive.

The moves between states are tables. Start with `states`; `occurrence` says what becomes of a job besides.
"""
