"""How to measure: threads and pauses, interleaved rounds, peaks of the CPU, fresh processes.

It does not depend on the cases.
"""
