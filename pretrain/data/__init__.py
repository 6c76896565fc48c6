"""Training data: every stage from the corpus directory to batches on the device, and
what it yields.

    stage        yields
    file sources      `TrainingData`: a corpus and its two vector tables, opened and
    checked          sources.py groups       `Group`: slices of shards whose text is
    shuffled together                       windows.py windows      `Window`: token ids
    uint32 [B, T + 1] of each direction, and where to go on     windows.py candidates
    `Window` with the types [U] that each target is told from, where a layer asks
    candidates.py batches      `Batch`: on the device, token ids [B, T + 1] and the
    vectors [n, E] of the      batches.py
                 window's n distinct types, made ahead of time by a background thread

Letters: B streams, T time, E word-vector width, V lexicon size, U candidates, D
directions. The backward direction reads the text reversed. No vector table of size V is
ever on the device.
"""
