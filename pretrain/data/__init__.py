"""Training data: every stage from the corpus directory to batches on the device, and what it yields.

sources    `TrainingData`: the corpus and its two vector tables, opened and checked
groups     `Group`: the parts of shards whose text is shuffled together, all sources in proportion
windows    `Window`: ids [B, T + A] of each direction and the position after it, in the order of training
candidates `CandidateSampler`: the types among which targets are told, where an output layer asks for them
batches    `Tables`: the distinct rows of a window's ids are gathered, or found in tables that are on the device
           `Batch`: ids, and the vectors that they stand for, on the device
loader     `Slot`: a ring of buffers in which they travel, filled by a background thread ahead of time

Letters: B streams, T time, A words ahead that targets reach (1: the next word), V lexicon size. No vector table of size
V is ever on the device, unless `data.tables_on_device` says so.
"""
