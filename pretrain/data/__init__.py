"""Training data, from the corpus directory to batches on the device: every stage, and
the type that it yields.

    stage        yields
    sources      `TrainingData`: a corpus and its two vector tables, opened and checked
    windows      `Group`, the text that is shuffled together, and of each group its
                 `Window`s: token ids uint32 [B, T + 1] in the reading order of each
                 direction, and the position of the next window
    candidates   the same `Window` with the types [U] that its targets are told from,
                 where the output layer asks for them
    batches      `Batch`: a window with the vectors [n, E] of its n distinct types
    loader       the same `Batch` on the device, made ahead of time by a background
                 thread (`stream_batches` in batches.py)

Each stage but the last is the file of its name. A window is followed through
`TrainingData.windows`, which asks for candidates, and `stream_batches`, to `TrainStep`
(pretrain/step.py).

Words: a shard is a file of the corpus, a slice is a part of a shard, a group is the
slices that are shuffled together, a stream is one of the B rows that a group's text is
cut into, and a window is T consecutive tokens of every stream.
Letters: B streams, T time, E word-vector width, V lexicon size, U candidates, D
directions. The backward direction reads the text reversed. No vector table of size V is
ever on the device.
"""
