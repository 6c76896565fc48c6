"""Peers: what people would train instead, trained for a given time on the same text, and their feature files.

python -m downstream.peers.NAME train TEXT… OUT --max-time 100m
python -m downstream.peers.NAME dump OUT SENTENCES FEATURES.h5

    masked_lm       NAME: a BERT with a WordPiece vocabulary, trained by the Trainer of Hugging Face transformers
    character_lm    NAME: flair's forward and backward character language models
    many_langs      NAME: ELMoForManyLangs, a bidirectional LSTM over characters and words

    command         the two commands of every peer, and what it gives them (`Peer`)
    clock           how long a training has gone on, its learning rate, its log
    record          the directory of a peer: its record, what is kept of an unfinished one, and checksums
    text            texts in blocks of random order, so that any part of a pass sees every kind of text
    dumping         how sentences become a feature file
    subwords        which subwords belong to a word, and how long sentences are cut
    many_langs_training, character_training    how the trainers of these packages are led
"""
