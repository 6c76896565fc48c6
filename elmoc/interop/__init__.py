"""Interop: an `ElmoC` in the place of other tools' models, and their models in the
place of an `ElmoC`.

    original_elmo     options.json and weights.hdf5 of bilm-tf and AllenNLP, both ways
    many_langs        the directories of ELMoForManyLangs, read
    imported          what both make: a model directory with its character CNN
    allennlp          the module that AllenNLP's `Elmo` takes
    flair, spacy      what flair's taggers and spaCy's pipelines take

Models are imported and exported by commands of `elmoc`; adapters are imported by who
uses the other library.
"""
