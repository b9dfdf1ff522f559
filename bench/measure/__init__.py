"""How to measure: threads and pauses, interleaved rounds, peaks of the CPU, fresh processes. It knows no case."""
