"""Interop: an `ElmoC` in the place of other tools' models, and their models in the
place of an `ElmoC`.

    original_elmo     options.json and weights.hdf5 of bilm-tf and AllenNLP, both ways
    many_langs        the directories of ELMoForManyLangs, read
    flair, spacy      embeddings for flair's taggers, a component of spaCy's pipelines
    sklearn           a transformer of raw texts for scikit-learn's pipelines
    token_vectors     the vectors that both adapters give to tokens

Models are imported and exported by commands of `elmoc`. A user of flair or spaCy
imports the adapter.
"""
